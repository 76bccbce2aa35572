/**
 * How an attempt ends, in one word, and the colour of a state that it is shown in.
 */
import type { EventKind } from "../../protocol/generated/index.ts";

export const ENDS: Readonly<Partial<Record<EventKind, string>>> = {
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

const TONES: Readonly<Record<string, string>> = {
  lost: "failed",
  stopped: "cancelled",
  again: "done",
  "not known": "waiting",
};
export const toneOf = (outcome: string): string => TONES[outcome] ?? outcome;
