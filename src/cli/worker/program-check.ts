/**
 * Whether a program is there, asked before a worker joins.
 *
 * A worker that can run nothing would take every task it is offered and fail it for good. What a shell is to run cannot
 * be known beforehand. Whether a worktree will have it is asked of the commit (`worktree-check.ts`).
 */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { argvOf } from "../../worker/exec/index.ts";

import type { ExecOptions } from "../../worker/index.ts";
import { usageProblem } from "../shell/problem.ts";

type Place = { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> };

export function checkProgram(options: Omit<ExecOptions, "data">, { cwd, env }: Place): void {
  const name = programOf(options);
  if (name === null) return;
  const isPath = name.includes("/");
  if (programInTree(options) !== null) return;
  const places = isPath ? [resolve(cwd, name)] : (env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  if (places.some(isExecutable)) return;
  const hint = isPath ? "name a program that may be executed" : "install it, or put its directory on PATH";
  throw usageProblem(`the program ${name} was not found, so this worker could run nothing`, hint);
}

/** A program that is named by a path from the directory, where that is a worktree. */
export function programInTree(options: Omit<ExecOptions, "data">): string | null {
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
