/**
 * The files that tasks have left: which task lists which content.
 *
 * A file is known by the hash of its content; its bytes lie outside the log. The index says which contents are still
 * listed by a task that can be read: those are kept, and whoever may read one of these tasks may read the file.
 */

import type { FileRef } from "../model/events.ts";
import type { ReadonlyTask } from "../model/read-only.ts";
import { hasEnded, type State, type Task } from "../model/state.ts";
import { extraOf } from "./labels.ts";

/** The task has these files from here on, and no others. */
export function putFiles(state: State, task: Task, files: readonly FileRef[]): void {
  dropFiles(state, task);
  extraOf(task).files = files.length === 0 ? null : files;
  for (const { hash } of files) {
    const tasks = state.files.get(hash);
    if (tasks === undefined) state.files.set(hash, new Set([task]));
    else tasks.add(task);
  }
}

/** The task's record goes, or it has other files. */
export function dropFiles(state: State, task: Task): void {
  for (const { hash } of task.extra?.files ?? []) {
    const tasks = state.files.get(hash);
    tasks?.delete(task);
    if (tasks?.size === 0) state.files.delete(hash);
  }
}

/** Whether a task has ended and left a file of this name: an input artifact of its children. */
export const hasLeft = (task: ReadonlyTask | undefined, path: string | null): boolean =>
  task !== undefined && hasEnded(task) && task.extra?.files?.some((file) => file.path === path) === true;
