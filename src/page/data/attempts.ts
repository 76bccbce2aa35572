/**
 * The attempts of a task as its events tell of them: who ran each, when, how it ended and what it said then.
 */
import type { EventJson } from "../../protocol/generated/index.ts";
import { endIn, isGivenBack, isHandedBack, isPutBack } from "./outcomes.ts";

export type AttemptStory = {
  readonly number: number;
  /** Where the log tells of it no more, only its number is known. */
  readonly worker?: string;
  readonly startedAt?: string;
  endedAt?: string;
  outcome: string;
  /** Why it did not go well, in the words of who ended it. */
  error?: string;
  /** What it has used so far, where it has said so. */
  tokens?: number;
};

/** So many are listed, the last ones. */
const LISTED_MAX = 200;

/** What an event says of why an attempt is over; nothing of one that went well. */
function errorIn(event: EventJson): string {
  if (isGivenBack(event)) return "";
  const { payload } = event;
  switch (payload.kind) {
    case "attempt-failed":
      return payload.error;
    case "attempt-lost":
      if (isHandedBack(event) || isPutBack(event)) return payload.reason ?? "";
      return payload.reason === null ? payload.cause : `${payload.cause}: ${payload.reason}`;
    case "attempt-stopping":
      return `told to stop: ${payload.cause}`;
    case "task-failed":
    case "task-cancelled":
    case "task-skipped":
      return payload.reason;
    default:
      return "";
  }
}

/** Each attempt up to the last, in order; of one that no event tells of, the outcome is `unknown`. */
export function attemptsIn(events: readonly EventJson[], last: number, unknown: string): readonly AttemptStory[] {
  const told: AttemptStory[] = [];
  for (const event of events) {
    const { payload, at } = event;
    if (payload.kind === "task-assigned")
      told.push({ number: payload.attempt, worker: payload.worker, startedAt: at, outcome: "running" });
    const now = told.at(-1);
    if (now === undefined || now.endedAt !== undefined) continue;
    if (payload.kind === "attempt-used") now.tokens = payload.tokens;
    const error = errorIn(event);
    if (error !== "") now.error = error;
    const end = endIn(event);
    if (end === undefined) continue;
    now.endedAt = at;
    now.outcome = end;
  }
  const byNumber = new Map(told.map((one) => [one.number, one]));
  const most = Math.max(last, told.at(-1)?.number ?? 0);
  const first = Math.max(1, most - LISTED_MAX + 1);
  return Array.from(
    { length: most - first + 1 },
    (_, index): AttemptStory => byNumber.get(first + index) ?? { number: first + index, outcome: unknown },
  );
}
