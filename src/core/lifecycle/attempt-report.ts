/**
 * What a worker may say of an attempt it holds: that it runs, what it used, how it ended.
 *
 * Only the attempt that is live now has a say; a word about any other is refused as stale, so a worker
 * that lost its lease can talk but not be heard. Repeating a word that counted is no fault.
 */
import type { Instant } from "../base/brand.ts";
import { cutError } from "../base/error-text.ts";
import { fail, ok } from "../base/result.ts";
import { type AttemptReport, type CommandOf, type Decided, REPEATED } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { ReadonlyAttempt, ReadonlyState } from "../model/read-only.ts";
import { usedBy } from "../turn/budget.ts";
import { askFor } from "./approval.ts";
import { endDone } from "./growth.ts";
import { endRound } from "./loop.ts";
import { requeueAttempt, returnAttempt, throttleAttempt } from "./loss.ts";
import { endOfStop, failAttempt, giveUpAttempt, stopForBudget } from "./stop.ts";
import { usedInDetail } from "./usage.ts";

type AttemptCommand = CommandOf<
  "start-attempt" | "report-usage" | "finish-attempt" | "lose-attempt" | "return-attempt"
>;

export function decideAttempt(state: ReadonlyState, command: AttemptCommand, now: Instant): Decided {
  const { task: id, attempt: number } = command.type === "finish-attempt" ? command.report : command;
  const task = state.tasks.get(id);
  if (task === undefined && !state.tombstones.has(id)) return fail({ type: "task-unknown", task: id });
  const attempt = task?.attempt ?? null;
  if (attempt === null || attempt.number !== number)
    return fail({ type: "attempt-stale", task: id, attempt: number, current: attempt?.number ?? null });
  switch (command.type) {
    case "start-attempt":
      if (attempt.state !== "assigned") return REPEATED;
      return ok({ events: [{ kind: "attempt-started", at: now, task: id, attempt: number }] });
    case "report-usage": {
      const { tokens } = command;
      if (tokens <= attempt.reported) return REPEATED;
      const used: Event = { kind: "attempt-used", at: now, task: id, attempt: number, tokens };
      return ok({ events: [used, ...stopForBudget(state, attempt, Math.max(usedBy(attempt), tokens), now)] });
    }
    case "finish-attempt": {
      const { report } = command;
      const ends = finish(state, attempt, report, now);
      // Nearly every attempt leaves none: a list put together of two has room to grow, and is garbage at once.
      const files = leftFiles(attempt, report, now);
      return ok({ events: withDetails(attempt, report, files === null ? ends : [files, ...ends], now) });
    }
    case "lose-attempt":
      return ok({ events: [giveUpAttempt(state, attempt, { cause: "worker-lost", reason: command.reason }, now)] });
    case "return-attempt":
      return ok({ events: [giveBack(state, attempt, command.rests ?? 0, now)] });
  }
}

/** Its worker never began it. One that its budget has stopped ends as that: something was used under its name. */
function giveBack(state: ReadonlyState, attempt: ReadonlyAttempt, rests: number, now: Instant): Event {
  const { task, number, stopCause } = attempt;
  if (stopCause === "budget") return endOfStop(state, attempt, 0, now);
  if (hasTaskEnded(attempt))
    return { kind: "attempt-stopped", at: now, task: task.id, attempt: number, tokens: 0, unbegun: true };
  return returnAttempt(state, attempt, rests, now);
}

const hasTaskEnded = ({ stopCause }: ReadonlyAttempt): boolean => stopCause === "cancelled" || stopCause === "deadline";

/** What it used in detail comes before its end, if its worker or its permits said so. */
function withDetails({ permitUsage }: ReadonlyAttempt, report: AttemptReport, ends: Event[], at: Instant): Event[] {
  const usage = usedInDetail(report.usage ?? null, permitUsage);
  const { task, attempt } = report;
  return usage === null ? ends : [{ kind: "attempt-usage", at, task, attempt, ...usage }, ...ends];
}

/**
 * What an attempt that ran to its end has left takes the place of what an earlier one had. One that was stopped, or
 * gave its task back, leaves that as it is.
 */
function leftFiles({ task, state, number }: ReadonlyAttempt, report: AttemptReport, now: Instant): Event | null {
  const { files, outcome } = report;
  const isSame = (files === undefined || files.length === 0) && (task.extra === null || task.extra.files === null);
  if (isSame || (outcome !== "done" && outcome !== "failed")) return null;
  if (state === "stopping" && outcome !== "done") return null;
  return { kind: "attempt-files", at: now, task: task.id, attempt: number, files: files ?? [] };
}

function finish(state: ReadonlyState, attempt: ReadonlyAttempt, report: AttemptReport, now: Instant): Event[] {
  const { task, attempt: number, tokens } = report;
  if (report.outcome === "done" && !hasTaskEnded(attempt)) return [endDone(attempt, report, now)];
  if (attempt.state === "stopping") return [endOfStop(state, attempt, tokens, now)];
  if (report.outcome === "requeue") {
    const reason = report.error === null ? null : cutError(report.error);
    const given = { tokens, retryAfterMs: report.retryAfterMs, reason };
    if (report.rateLimited === true) return throttleAttempt(state, attempt, given, now);
    return [requeueAttempt(state, attempt, given, now)];
  }
  if (report.outcome === "skipped") {
    const reason = cutError(report.error ?? "skipped by its worker");
    return [{ kind: "task-skipped", at: now, task, cause: null, dependency: null, reason, attempt: number, tokens }];
  }
  if (report.outcome === "again") return endRound(state, attempt, report, now);
  if (report.outcome === "ask") return [askFor(attempt, report, now)];
  if (report.outcome === "cancelled") {
    const reason = report.error ?? "cancelled by its worker";
    return [
      { kind: "task-cancelled", at: now, task, reason: cutError(reason), stopBy: now },
      { kind: "attempt-stopped", at: now, task, attempt: number, tokens, unbegun: false },
    ];
  }
  const error = cutError(report.error ?? "failed without saying why");
  return [failAttempt(state, attempt, { ...report, error }, now)];
}
