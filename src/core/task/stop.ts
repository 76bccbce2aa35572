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
import { fnv1a } from "../fleet/shape.ts";
import type { AttemptReport } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { ReadonlyAttempt, ReadonlyState } from "../model/read-only.ts";
import { setAside } from "../turn/budget.ts";
import { restAfter } from "./attempt.ts";
import { loseAttempt } from "./loss.ts";

/** When a stop counts as done whatever the worker says. One over the wire may hear of it a lease later. */
export function stopByFor(state: ReadonlyState, { worker }: ReadonlyAttempt, now: Instant): Instant {
  const { killGrace, lease } = state.config.workers;
  return after(now, worker.kind === "local" ? killGrace : killGrace + lease);
}

/** The stop that follows if using this much overruns a budget. */
export function stopForBudget(state: ReadonlyState, attempt: ReadonlyAttempt, used: number, now: Instant): Event[] {
  if (attempt.state === "stopping") return [];
  const more = used - attempt.reserve;
  // One that keeps within what it reserved never pays for the overrun of another.
  if (more <= 0) return [];
  if (!overruns(state, attempt, more, now)) return [];
  const { task, number } = attempt;
  return [
    {
      kind: "attempt-stopping",
      at: now,
      task: task.id,
      attempt: number,
      cause: "budget",
      stopBy: stopByFor(state, attempt, now),
    },
  ];
}

function overruns(state: ReadonlyState, attempt: ReadonlyAttempt, more: number, now: Instant): boolean {
  const { project } = attempt.task;
  const { limit } = project.settings.budget;
  const fleetLimit = state.config.budget.limit;
  return (
    (limit !== null && project.spent.total(now) + setAside(project) + more > limit) ||
    (fleetLimit !== null && state.spent.total(now) + setAside(state) + more > fleetLimit)
  );
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
  if (report.permanent || failures >= task.requirements.maxAttempts) {
    const ended = { task: task.id, attempt: number, tokens, reason: error, expired: false, stopBy: null };
    return { kind: "task-failed", at: now, ...ended };
  }
  const rest = Math.max(
    report.retryAfterMs ?? 0,
    restAfter(failures, fnv1a(`${task.id}#${number}`), state.config.scheduler.retry),
  );
  return {
    kind: "attempt-failed",
    at: now,
    task: task.id,
    attempt: number,
    tokens,
    error,
    restUntil: after(now, rest),
  };
}

/** What follows when a stopping attempt is really over. */
export function endOfStop(state: ReadonlyState, attempt: ReadonlyAttempt, tokens: number | null, now: Instant): Event {
  const { task, number, stopCause } = attempt;
  switch (stopCause) {
    case "timeout": {
      const error = `timed out after ${task.requirements.timeoutMs} ms`;
      return failAttempt(state, attempt, { error, tokens, retryAfterMs: null, permanent: false }, now);
    }
    case "budget":
      return loseAttempt(state, attempt, { cause: "budget", tokens }, now);
    default:
      return { kind: "attempt-stopped", at: now, task: task.id, attempt: number, tokens };
  }
}
