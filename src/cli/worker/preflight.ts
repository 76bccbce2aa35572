/**
 * What must be there before a worker joins: its program, its worktrees, its directory.
 *
 * A worker that can run nothing would take every task it is offered and fail it for good.
 */
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { argvOf } from "../../plan/work/index.ts";
import { makeOwnDirectory } from "../../std/index.ts";
import { createTaskCommands, type TaskCommandOptions } from "../../worker/exec/index.ts";
import { createExecHandler, type ExecHandler, type ExecOptions } from "../../worker/index.ts";
import { findRepository, probeWorktree, WorkspaceRefusal } from "../../worker/worktree/index.ts";
import { CliProblem, EXIT, usageProblem } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";

export const handlerFrom = (options: ExecOptions, verb: "serve" | "worker"): ExecHandler =>
  orUsage(() => createExecHandler(options), verb);

/** What tasks bring is run, and nothing else. */
export const commandsFrom = (options: TaskCommandOptions, verb: "serve" | "worker"): ExecHandler =>
  orUsage(() => createTaskCommands(options), verb);

function orUsage<Made>(make: () => Made, verb: string): Made {
  try {
    return make();
  } catch (error) {
    throw usageProblem((error as Error).message, `drover help ${verb} has examples`);
  }
}

/** Refuses a program that is not there. What a shell is to run cannot be known beforehand. */
export function checkProgram(options: Omit<ExecOptions, "data">, { cwd, env }: Pick<Terminal, "cwd" | "env">): void {
  const name = programOf(options);
  if (name === null) return;
  const isPath = name.includes("/");
  if (programInTree(options) !== null) return;
  const paths = isPath ? [resolve(cwd, name)] : (env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  if (paths.some(isExecutable)) return;
  const hint = isPath ? "name a program that may be executed" : "install it, or put its directory on PATH";
  throw usageProblem(`the program ${name} was not found, so this worker could run nothing`, hint);
}

/** A program that is named by a path from the directory, where that is a worktree. */
function programInTree(options: Omit<ExecOptions, "data">): string | null {
  const name = options.isolation === "worktree" ? programOf(options) : null;
  return name === null || !name.includes("/") || isAbsolute(name) ? null : name;
}

function programOf({ command, preset, shell }: Omit<ExecOptions, "data">): string | null {
  if (typeof preset === "string") return preset;
  if (command === undefined || shell === true) return null;
  try {
    return argvOf(command)[0] ?? null;
  } catch {
    return null; // What is wrong with the command is said where it is read.
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Refuses worktrees that git could not make, or that would not have the program. */
export async function checkWorktree(options: Omit<ExecOptions, "data">, cwd: string): Promise<void> {
  if (options.isolation !== "worktree") return;
  const where = { cwd: options.cwd ?? cwd, base: options.base ?? "HEAD", program: programInTree(options) };
  const why = await refusalOf(() => probeWorktree(where));
  if (why === null) return;
  throw usageProblem(`${why}: this worker could run nothing`, "without --worktree tasks run in the directory itself");
}

/** Why no task of this directory can have a worktree; null if one might: tasks may name a repository inside it. */
export async function whyNoTree(cwd: string): Promise<string | null> {
  const inside = await readdir(cwd);
  if (inside.some((name) => existsSync(join(cwd, name, ".git")))) return null;
  return (await refusalOf(() => findRepository(cwd)))?.replace(NO_REPOSITORY, "") ?? null;
}

/** Git says once more what our sentence says. Whatever else it says, such as whose the directory is, stays. */
const NO_REPOSITORY = /: git rev-parse \S+ failed: (?:fatal: not a git repository|Stopping at filesystem boundary).*$/;

/** What keeps a worktree from being made, in a sentence; null if nothing does. */
export async function refusalOf(probe: () => Promise<unknown>): Promise<string | null> {
  try {
    await probe();
    return null;
  } catch (error) {
    if (error instanceof WorkspaceRefusal) return error.message;
    throw error;
  }
}

/**
 * Makes the directory of logs and worktrees, so that git does not see it: a worker is mostly started in the checkout it
 * works on, and what it writes there would end up in a commit one day.
 */
export function makeWorkerData(data: string): void {
  try {
    makeOwnDirectory(data);
  } catch (error) {
    const message = `cannot make the data directory ${data}: ${inWords(error as NodeJS.ErrnoException)}`;
    const hint = "another directory: --data DIR";
    throw new CliProblem({ message, code: "io", exit: EXIT.broken, hint });
  }
}

const WORDS: ReadonlyMap<string | undefined, string> = new Map([
  ["EEXIST", "a file of that name is there"],
  ["ENOTDIR", "a part of its path is a file"],
  ["EACCES", "no permission"],
  ["EROFS", "the file system is read-only"],
]);

const inWords = ({ code, message }: NodeJS.ErrnoException): string => WORDS.get(code) ?? message;
