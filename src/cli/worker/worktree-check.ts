/**
 * Whether git worktrees can be made, asked before a worker joins and before a plan begins.
 *
 * A worker that cannot make one would take every task it is offered and fail it for good. In a plan an earlier task may
 * make what a later one stands on (a branch, a commit, a clone), so only what needs no other is looked at in full; of
 * the others only that a directory which is there is in a repository. What is done already is not asked again.
 */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { ExecOptions } from "../../worker/index.ts";
import { findRepository, probeWorktree, WorkspaceRefusal } from "../../worker/worktree/index.ts";

import type { PlanTask } from "../plan/plan-file.ts";
import { type Known, placeTasks } from "../run/identity.ts";
import { usageProblem } from "../shell/problem.ts";
import { programInTree } from "./program-check.ts";

export async function checkWorktree(options: Omit<ExecOptions, "data">, cwd: string): Promise<void> {
  if (options.isolation !== "worktree") return;
  const where = { cwd: options.cwd ?? cwd, base: options.base ?? "HEAD", program: programInTree(options) };
  const why = await refusalOf(() => probeWorktree(where));
  if (why === null) return;
  throw usageProblem(`${why}: this worker could run nothing`, "without --worktree tasks run in the directory itself");
}

/** `known` is asked only if something is wrong: it is read from the log. */
export async function checkWorktrees(
  tasks: readonly PlanTask[],
  directory: string,
  known: () => readonly Known[] | Promise<readonly Known[]>,
): Promise<void> {
  const answers = new Map<string, string | null>();
  const bad: { readonly task: PlanTask; readonly why: string }[] = [];
  for (const task of tasks) {
    const { cwd, worktree } = task.work;
    if (worktree === null) continue;
    const place = resolve(directory, cwd);
    const isFirst = task.needs.length === 0;
    const key = JSON.stringify([place, worktree.base, isFirst]);
    if (!answers.has(key)) answers.set(key, await refusalOf(() => probe(place, worktree.base, isFirst)));
    const why = answers.get(key) ?? null;
    if (why !== null) bad.push({ task, why });
  }
  if (bad.length === 0) return;
  // A log that cannot be read is complained of where it is opened.
  const before = await Promise.resolve(known()).catch(() => []);
  const left = placeTasks(tasks, before).placed.filter(({ phase }) => phase !== "done");
  const wanted = new Set(left.map(({ task }) => task.name));
  const [first] = bad.filter(({ task }) => wanted.has(task.name));
  if (first === undefined) return;
  throw usageProblem(
    `task ${first.task.name} wants a worktree: ${first.why}`,
    "nothing was started; without worktree: a task runs in the directory itself",
  );
}

async function probe(cwd: string, base: string, isFirst: boolean): Promise<void> {
  if (isFirst) await probeWorktree({ cwd, base });
  else if (existsSync(cwd)) await findRepository(cwd);
}

async function refusalOf(probe: () => Promise<unknown>): Promise<string | null> {
  try {
    await probe();
    return null;
  } catch (error) {
    if (error instanceof WorkspaceRefusal) return error.message;
    throw error;
  }
}
