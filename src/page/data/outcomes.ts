/**
 * How an attempt ends, in one word, and the colour of a state that it is shown in.
 */
import type { EventJson, EventKind } from "../../protocol/generated/index.ts";
import { HANDED_BACK, NOT_BEGUN, PUT_BACK } from "../../protocol/wire/index.ts";

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

/** Before it began; also where its task had ended meanwhile. */
export const isGivenBack = ({ payload }: Pick<EventJson, "payload">): boolean =>
  (payload.kind === "attempt-lost" && payload.cause === "not-begun") ||
  (payload.kind === "attempt-stopped" && payload.unbegun);

export const isHandedBack = ({ payload }: Pick<EventJson, "payload">): boolean =>
  payload.kind === "attempt-lost" && (payload.cause === "requeue" || payload.cause === "rate-limited");

/** Its worker has left in good order. */
export const isPutBack = ({ payload }: Pick<EventJson, "payload">): boolean =>
  payload.kind === "attempt-lost" && payload.cause === "worker-left";

/** How an attempt has ended with this event; undefined if it goes on. */
export function endIn(event: Pick<EventJson, "kind" | "payload">): string | undefined {
  if (isGivenBack(event)) return NOT_BEGUN;
  if (isPutBack(event)) return PUT_BACK;
  return isHandedBack(event) ? HANDED_BACK : ENDS[event.kind];
}

const TONES: Readonly<Record<string, string>> = {
  lost: "failed",
  [NOT_BEGUN]: "waiting",
  [HANDED_BACK]: "waiting",
  [PUT_BACK]: "waiting",
  stopped: "cancelled",
  again: "done",
  "not known": "waiting",
};
export const toneOf = (outcome: string): string => TONES[outcome] ?? outcome;
