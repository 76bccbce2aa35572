/**
 * How an attempt ends, in one word, and the colour of a state that it is shown in.
 */
import type { EventJson, EventKind } from "../../protocol/generated/index.ts";

const ENDS: Readonly<Partial<Record<EventKind, string>>> = {
  "task-done": "done",
  "attempt-done": "done",
  "task-failed": "failed",
  "attempt-failed": "failed",
  "attempt-lost": "lost",
  "attempt-stopped": "stopped",
  "task-cancelled": "cancelled",
  "task-skipped": "skipped",
  "round-ended": "again",
  "task-parked": "parked",
};

/** The kinds of events that end an attempt. */
export const END_KINDS = Object.keys(ENDS) as readonly EventKind[];

/** Of an attempt that its worker has given back before it began: it cost nothing and did nothing. */
export const NOT_BEGUN = "given back, not begun";
export const isGivenBack = ({ payload }: Pick<EventJson, "payload">): boolean =>
  payload.kind === "attempt-lost" && payload.cause === "not-begun";

/** Of one that its worker has handed back on purpose: it asks for it later, or its provider had no room. */
export const HANDED_BACK = "given back";
export const isHandedBack = ({ payload }: Pick<EventJson, "payload">): boolean =>
  payload.kind === "attempt-lost" && (payload.cause === "requeue" || payload.cause === "rate-limited");

/** How an attempt has ended with this event; undefined if it goes on. */
export function endIn(event: Pick<EventJson, "kind" | "payload">): string | undefined {
  if (isGivenBack(event)) return NOT_BEGUN;
  return isHandedBack(event) ? HANDED_BACK : ENDS[event.kind];
}

const TONES: Readonly<Record<string, string>> = {
  lost: "failed",
  [NOT_BEGUN]: "waiting",
  [HANDED_BACK]: "waiting",
  stopped: "cancelled",
  again: "done",
  "not known": "waiting",
};
export const toneOf = (outcome: string): string => TONES[outcome] ?? outcome;
