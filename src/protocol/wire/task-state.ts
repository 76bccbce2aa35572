/**
 * The states of a task, and how long a caller may wait for its end.
 */

export type TaskState =
  | ("waiting" | "queued" | "assigned" | "running" | "parked")
  | ("done" | "failed" | "cancelled" | "skipped" | "rejected");

export const TASK_STATES: readonly TaskState[] = [
  ...(["waiting", "queued", "assigned", "running", "parked"] as const),
  ...(["done", "failed", "cancelled", "skipped", "rejected"] as const),
];
const END_STATES: readonly TaskState[] = ["done", "failed", "cancelled", "skipped", "rejected"];

export const isEnded = (state: TaskState): boolean => END_STATES.includes(state);

export const WAIT_MS_MAX = 60_000;
export const WAIT_MS_DEFAULT = 30_000;
