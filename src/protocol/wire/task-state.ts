/**
 * The states of a task, how long a caller may wait for its end, and in words why it went to its worker.
 */
import type { Event, Reason } from "../../core/model/index.ts";

/** Where a task stands. */
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

/** The page and the commands say it alike. A rule that is added tomorrow is told by its name. */
export function reasonInWords(reason: Reason): string {
  switch (reason.type) {
    case "least-loaded":
      return `the least loaded, with ${reason.queueDepth} ${reason.queueDepth === 1 ? "task" : "tasks"}`;
    case "resource-fit":
      return "the best fit";
    case "round-robin":
      return "next in the round";
    case "random":
      return "drawn by its hash";
    case "only-worker-available":
      return "the only worker with room";
    case "affinity":
      return `it knows the work: ${reason.reason}`;
    default:
      return (reason as Reason).type;
  }
}

type Lost = Extract<Event, { kind: "attempt-lost" }>;
/** Of an attempt that its worker has given back before it began: it cost nothing and did nothing. */
export const NOT_BEGUN = "given back, not begun";
/** Of one that its worker has handed back on purpose: it asks for it later, or its provider had no room. */
export const HANDED_BACK = "given back";
/** Of one whose worker has left in good order. */
export const PUT_BACK = "put back, its worker left";

/** What its worker gave back: nothing was lost, and nobody is to be warned. Null where something was. */
export function givenBackInWords({ cause, reason }: Pick<Lost, "cause" | "reason">): string | null {
  if (cause === "not-begun") return NOT_BEGUN;
  const said = reason === null || reason === "" ? "" : `: ${reason}`;
  if (cause === "worker-left") return `${PUT_BACK}${said}`;
  if (cause !== "requeue" && cause !== "rate-limited") return null;
  return `${HANDED_BACK}${cause === "requeue" ? "" : ", rate limited"}${said}`;
}
