/**
 * The states of a task, and how long a caller may wait for its end.
 */

export type TaskState =
  | ("waiting" | "queued" | "assigned" | "running")
  | ("done" | "failed" | "cancelled" | "skipped" | "rejected");

/** The states by which tasks can be looked for: a rejected one was never let in. */
export const FILTER_STATES: readonly TaskState[] = [
  ...(["waiting", "queued", "assigned", "running"] as const),
  ...(["done", "failed", "cancelled", "skipped"] as const),
];
export const TASK_STATES: readonly TaskState[] = [...FILTER_STATES, "rejected"];
export const END_STATES: readonly TaskState[] = ["done", "failed", "cancelled", "skipped", "rejected"];

export const isEnded = (state: TaskState): boolean => END_STATES.includes(state);

export const WAIT_MS_MAX = 60_000;
export const WAIT_MS_DEFAULT = 30_000;
