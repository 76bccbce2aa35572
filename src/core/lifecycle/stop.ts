/**
 * Stopping what runs.
 *
 * An attempt that must stop is notified and keeps everything it holds until its worker confirms, or until
 * the kill grace is over. What the stop was for decides what becomes of the task then: cancelled and past
 * its deadline it has ended already; timed out, it has failed once; out of budget, it goes back to the
 * queue and counts as a loss, with an estimate that has grown to what it used, so that it is not
 * started again into the same wall.
 */

import { after, type Instant } from "../base/brand.ts";
import type { AttemptReport } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { ReadonlyAttempt, ReadonlyState } from "../model/read-only.ts";
import { isAffordable } from "../turn/budget.ts";
import { failed, type Loss, loseAttempt, restOf } from "./loss.ts";

/** When a stop counts as done whatever the worker says. One over the wire may hear of it a lease later. */
export function stopByFor(state: ReadonlyState, { worker }: ReadonlyAttempt, now: Instant): Instant {
  const { killGrace, lease } = state.config.workers;
  return after(now, worker.kind === "local" ? killGrace : killGrace + lease);
}

/** The stop that follows if using this much overruns a budget. */
export function stopForBudget(state: ReadonlyState, attempt: ReadonlyAttempt, used: number, now: Instant): Event[] {
  const more = used - attempt.reserve;
  // One that keeps within what it reserved never pays for the overrun of another.
  if (attempt.state === "stopping" || more <= 0 || isAffordable(state, attempt.task.project, more, now)) return [];
  return [stopping(state, attempt, "budget", now)];
}

export function stopping(
  state: ReadonlyState,
  attempt: ReadonlyAttempt,
  cause: "budget" | "timeout",
  now: Instant,
): Event {
  const stopBy = stopByFor(state, attempt, now);
  return { kind: "attempt-stopping", at: now, task: attempt.task.id, attempt: attempt.number, cause, stopBy };
}

/** An own failure: another attempt after a rest, or the end. */
export function failAttempt(
  state: ReadonlyState,
  attempt: ReadonlyAttempt,
  report: Pick<AttemptReport, "tokens" | "retryAfterMs" | "permanent"> & { readonly error: string },
  now: Instant,
): Event {
  const { task, number } = attempt;
  const failures = task.ownFailures + 1;
  const { error, tokens } = report;
  if (report.permanent || failures >= task.requirements.maxAttempts) return failed(attempt, tokens, error, now);
  const restUntil = after(now, Math.max(report.retryAfterMs ?? 0, restOf(state, attempt, failures)));
  return { kind: "attempt-failed", at: now, task: task.id, attempt: number, tokens, error, restUntil };
}

/** Its worker does not have it any more. */
export const giveUpAttempt = (
  state: ReadonlyState,
  attempt: ReadonlyAttempt,
  loss: Omit<Loss, "tokens">,
  now: Instant,
): Event =>
  attempt.state === "stopping"
    ? endOfStop(state, attempt, null, now)
    : loseAttempt(state, attempt, { ...loss, tokens: null }, now);

/**
 * A worker need not say that it runs something: then no timer counts, and its time is counted from its assignment. A
 * lease more is for a worker that begins later. It is asked when the worker syncs; one that does not loses its lease.
 */
export function isTimedOutUnnamed(state: ReadonlyState, attempt: ReadonlyAttempt, now: Instant): boolean {
  const { timeoutMs } = attempt.task.requirements;
  if (attempt.state !== "assigned" || timeoutMs === null) return false;
  return now >= attempt.assignedAt + timeoutMs + state.config.workers.lease;
}

export const timeoutError = ({ task }: ReadonlyAttempt): string => `timed out after ${task.requirements.timeoutMs} ms`;

/** What follows when a stopping attempt is really over. */
export function endOfStop(state: ReadonlyState, attempt: ReadonlyAttempt, tokens: number | null, now: Instant): Event {
  const { task, number, stopCause } = attempt;
  switch (stopCause) {
    case "timeout": {
      const report = { error: timeoutError(attempt), tokens, retryAfterMs: null, permanent: false };
      return failAttempt(state, attempt, report, now);
    }
    case "budget":
      return loseAttempt(state, attempt, { cause: "budget", tokens }, now);
    default:
      return { kind: "attempt-stopped", at: now, task: task.id, attempt: number, tokens, unbegun: false };
  }
}
