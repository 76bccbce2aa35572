/**
 * What an event of the log says about a task of a plan; null if it says nothing that a run shows.
 */
import { EXEC_WORKTREE } from "../../core/fleet/index.ts";
import type { AnyEvent } from "../../protocol/index.ts";
import { asTyped } from "../shell/problem.ts";
import { type Fact, newRow, type Row } from "./state.ts";

export function factOf({ at, payload }: Pick<AnyEvent<number>, "at" | "payload">): Fact | null {
  switch (payload.kind) {
    case "task-assigned":
      return { kind: "started", id: payload.task, at, attempt: payload.attempt };
    case "task-done":
      return { kind: "done", id: payload.task, at };
    case "task-retried":
      return { kind: "retried", id: payload.task, at };
    case "attempt-done":
      return { kind: "awaiting", id: payload.task, at };
    case "attempt-failed":
      return { kind: "again", id: payload.task, at, why: payload.error, until: payload.restUntil };
    case "task-parked":
      return { kind: "parked", id: payload.task, at, why: payload.question ?? "" };
    case "task-approved":
      return { kind: "approved", id: payload.task, at };
    case "round-ended":
      return { kind: "round", id: payload.task, at, note: payload.note };
    case "attempt-lost":
      return payload.cause === "worker-left" || payload.cause === "not-begun"
        ? { kind: "stopped", id: payload.task, at }
        : {
            kind: "again",
            id: payload.task,
            at,
            why: payload.reason ?? LOSSES[payload.cause],
            until: payload.restUntil ?? at,
          };
    case "attempt-usage":
      return { kind: "used", id: payload.task, at, usage: payload };
    case "task-failed":
      return { kind: "failed", id: payload.task, at, why: payload.reason };
    case "task-skipped":
      return { kind: "skipped", id: payload.task, at, dependency: payload.dependency, why: payload.reason };
    case "task-cancelled":
      return { kind: "cancelled", id: payload.task, at, why: payload.reason };
    default:
      return null;
  }
}

/** The row of a task that a running one has submitted; null if the event is about something else. */
export function grownIn({ payload }: Pick<AnyEvent<unknown>, "payload">): Row | null {
  if (payload.kind !== "task-submitted" || !payload.ofRunning) return null;
  const { task: id, parent, maxAttempts, maxRounds, action, needs } = payload;
  return childRow({ id, parent, maxAttempts, maxRounds, hasWorktree: action === EXEC_WORKTREE, needs });
}

type Child = Pick<Row, "id" | "parent" | "maxAttempts" | "hasWorktree" | "needs"> & { readonly maxRounds: number };
export const childRow = ({ maxRounds, ...child }: Child): Row =>
  newRow({ ...child, name: child.id, maxRounds: maxRounds === 0 ? null : maxRounds });

const LOSSES: Readonly<Record<"worker-lost" | "requeue" | "rate-limited" | "budget", string>> = {
  "worker-lost": "its worker was lost",
  requeue: "it asks to come back later",
  "rate-limited": "its provider said to wait",
  budget: "its budget is used up",
};

// ------------------------------------------------------------- the plan itself

export type PausedBy = "asked" | "failed" | null;

/** What a person asked for is told; that a failure has paused it is told by the end of the run. */
export function pauseAfter(
  { payload }: Pick<AnyEvent<unknown>, "payload">,
  plan: string,
  before: PausedBy,
  noted: (text: string) => void,
): PausedBy {
  if (!("plan" in payload) || payload.plan !== plan) return before;
  switch (payload.kind) {
    case "plan-paused":
      if (payload.cause === "asked")
        noted(`the plan is paused, and what runs may end: ${asTyped(`drover plan ${plan} --resume`)}`);
      return payload.cause;
    // Who puts it again after a failure wants it to go on; what somebody has paused stays so.
    case "plan-put":
      if (before !== "failed") return before;
      break;
    case "plan-resumed":
      break;
    default:
      return before;
  }
  noted("the plan goes on");
  return null;
}
