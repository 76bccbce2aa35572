/**
 * What a worker may say of an attempt it holds: that it runs, what it used, how it ended.
 *
 * Only the attempt that is live now has a say; a word about any other is refused as stale, so a worker
 * that lost its lease can talk but not be heard. Repeating a word that counted is no fault.
 */
import type { Instant, TaskId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import type { AttemptReport, Command, Decided } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { ReadonlyAttempt, ReadonlyState } from "../model/read-only.ts";
import { usedBy } from "../turn/budget.ts";
import { loseAttempt, requeueAttempt, returnAttempt, throttleAttempt } from "./loss.ts";
import { endOfStop, failAttempt, stopForBudget } from "./stop.ts";

const ERROR_MAX = 4096;

function liveAttempt(state: ReadonlyState, id: TaskId, number: number): Result<ReadonlyAttempt, Refusal> {
  const task = state.tasks.get(id);
  if (task === undefined) {
    return state.tombstones.has(id)
      ? fail({ type: "attempt-stale", task: id, attempt: number, current: null })
      : fail({ type: "task-unknown", task: id });
  }
  const { attempt } = task;
  return attempt !== null && attempt.number === number
    ? ok(attempt)
    : fail({ type: "attempt-stale", task: id, attempt: number, current: attempt?.number ?? null });
}

export function decideStart(
  state: ReadonlyState,
  command: Extract<Command, { type: "start-attempt" }>,
  now: Instant,
): Decided {
  const found = liveAttempt(state, command.task, command.attempt);
  if (!found.ok) return found;
  if (found.value.state !== "assigned") return ok({ events: [], repeated: true });
  return ok({ events: [{ kind: "attempt-started", at: now, task: command.task, attempt: command.attempt }] });
}

export function decideUsage(
  state: ReadonlyState,
  command: Extract<Command, { type: "report-usage" }>,
  now: Instant,
): Decided {
  const found = liveAttempt(state, command.task, command.attempt);
  if (!found.ok) return found;
  const attempt = found.value;
  const { task, tokens } = command;
  if (tokens <= attempt.reported) return ok({ events: [], repeated: true });
  const used: Event = { kind: "attempt-used", at: now, task, attempt: attempt.number, tokens };
  return ok({ events: [used, ...stopForBudget(state, attempt, Math.max(usedBy(attempt), tokens), now)] });
}

export function decideFinish(state: ReadonlyState, report: AttemptReport, now: Instant): Decided {
  const found = liveAttempt(state, report.task, report.attempt);
  if (!found.ok) return found;
  return ok({ events: finish(state, found.value, report, now) });
}

/** Its worker says, by not naming it, that it has it no longer. */
export function decideLoss(
  state: ReadonlyState,
  command: Extract<Command, { type: "lose-attempt" }>,
  now: Instant,
): Decided {
  const found = liveAttempt(state, command.task, command.attempt);
  if (!found.ok) return found;
  const attempt = found.value;
  const loss = { cause: "worker-lost", tokens: null } as const;
  const isStopping = attempt.state === "stopping";
  return ok({ events: [isStopping ? endOfStop(state, attempt, null, now) : loseAttempt(state, attempt, loss, now)] });
}

/** Who was to pass it on, or to begin it, has not. */
export function decideReturn(
  state: ReadonlyState,
  command: Extract<Command, { type: "return-attempt" }>,
  now: Instant,
): Decided {
  const found = liveAttempt(state, command.task, command.attempt);
  if (!found.ok) return found;
  const attempt = found.value;
  return ok({
    events: [attempt.state === "stopping" ? endOfStop(state, attempt, 0, now) : returnAttempt(attempt, now)],
  });
}

function finish(state: ReadonlyState, attempt: ReadonlyAttempt, report: AttemptReport, now: Instant): Event[] {
  const { task, attempt: number, tokens } = report;
  const hasTaskEnded = attempt.stopCause === "cancelled" || attempt.stopCause === "deadline";
  if (report.outcome === "done" && !hasTaskEnded) {
    const { resultHash, resultSize } = report;
    return [{ kind: "task-done", at: now, task, attempt: number, tokens, resultHash, resultSize }];
  }
  if (attempt.state === "stopping") return [endOfStop(state, attempt, tokens, now)];
  if (report.outcome === "requeue") {
    const given = {
      tokens,
      retryAfterMs: report.retryAfterMs,
      reason: report.error === null ? null : cut(report.error),
    };
    if (report.rateLimited === true) return throttleAttempt(state, attempt, given, now);
    return [requeueAttempt(state, attempt, given, now)];
  }
  if (report.outcome === "cancelled") {
    const reason = report.error ?? "cancelled by its worker";
    return [
      { kind: "task-cancelled", at: now, task, reason: cut(reason), stopBy: now },
      { kind: "attempt-stopped", at: now, task, attempt: number, tokens },
    ];
  }
  const error = cut(report.error ?? "failed without saying why");
  return [failAttempt(state, attempt, { ...report, error }, now)];
}

/** Errors are for people; what is longer belongs in a result. */
const cut = (text: string): string =>
  text.length <= ERROR_MAX ? text : `${text.slice(0, ERROR_MAX).toWellFormed()}… (${text.length} characters)`;
