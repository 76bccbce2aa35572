/**
 * People: a task that waits for somebody's word.
 *
 * It is parked: it holds no slot, no resources, no lock and no tokens, and counts as one of its agent that waits. A
 * task is parked because it was submitted so (then when it would be queued for the first time), or because an attempt
 * of it asks. Approved, it is queued, and its next attempt sees what was said; denied, or past the time for an answer,
 * it has failed. An approval that is required and was not given is asked for again when the task is retried.
 */
import { after, type Instant } from "../base/brand.ts";
import { cutError } from "../base/error-text.ts";
import { fail, ok } from "../base/result.ts";
import type { AttemptReport, CommandOf, Decided } from "../model/commands.ts";
import type { Event, EventOf } from "../model/events.ts";
import type { Approval } from "../model/extra.ts";
import type { ReadonlyAttempt, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { Task } from "../model/state.ts";
import { isAwaiting } from "./growth.ts";
import { extraOf } from "./labels.ts";
import { pinToLast } from "./loop.ts";

type Asked = { readonly question: string | null; readonly timeoutMs: number | null };

/** What must be asked before the task is queued; null if nothing must. */
export const requiredOf = ({ extra }: ReadonlyTask): Asked | null => extra?.approval?.required ?? null;

export function parked(task: ReadonlyTask["id"], { question, timeoutMs }: Asked, now: Instant): EventOf<"task-parked"> {
  const until = timeoutMs === null ? null : after(now, timeoutMs);
  return { kind: "task-parked", at: now, task, attempt: null, tokens: null, question, until };
}

/** An attempt asks: it is over, and its task waits. */
export function askFor(attempt: ReadonlyAttempt, report: AttemptReport, now: Instant): Event {
  const { question = null, timeoutMs = null } = report;
  const asked = { question: question === null ? null : cutError(question), timeoutMs };
  return { ...parked(attempt.task.id, asked, now), attempt: attempt.number, tokens: report.tokens };
}

export function decideApproval(state: ReadonlyState, command: CommandOf<"approve-task">, now: Instant): Decided {
  const { task: id, note, deny } = command;
  const task = state.tasks.get(id);
  const phase = task?.phase ?? state.tombstones.get(id)?.phase;
  if (phase === undefined) return fail({ type: "task-unknown", task: id });
  const approval = task?.extra?.approval ?? null;
  if (task === undefined || phase !== "parked" || approval === null || isAwaiting(task)) {
    const state = phase === "parked" ? "parked until its children have ended" : phase;
    return fail({ type: "task-not-parked", task: id, state });
  }
  if (approval.until >= 0 && approval.until <= now)
    return fail({ type: "approval-late", task: id, deadline: approval.until, now });
  const said = note === null || note === "" ? null : cutError(note);
  if (deny) return ok({ events: [unapproved(id, cutError(said === null ? "denied" : `denied: ${said}`), now)] });
  return ok({ events: [{ kind: "task-approved", at: now, task: id, note: said, pin: pinToLast(state, task) }] });
}

/** The time for an answer is over. */
export function unanswered(task: ReadonlyTask, now: Instant): Event {
  const question = task.extra?.approval?.question ?? null;
  const reason = `nobody approved it in time${question === null ? "" : `: ${question}`}`;
  return unapproved(task.id, cutError(reason), now);
}

const unapproved = (task: ReadonlyTask["id"], reason: string, now: Instant): Event => ({
  kind: "task-failed",
  at: now,
  task,
  attempt: null,
  tokens: null,
  reason,
  expired: false,
  stopBy: null,
});

export function requireApproval(task: Task, required: Asked): void {
  approvalOf(task).required = required;
}

function approvalOf(task: Task): Approval {
  const extra = extraOf(task);
  extra.approval ??= { required: null, question: null, until: -1, given: null, askedBy: 0 };
  return extra.approval;
}

export function noteAsked(task: Task, { question, until, attempt }: EventOf<"task-parked">): void {
  Object.assign(approvalOf(task), { question, until: until ?? -1, given: null, askedBy: attempt ?? 0 });
}

/** It is retried: a question that nobody said yes to is not asked any more, and must not look answered. */
export function forgetUnapproved({ extra }: Task): void {
  if (extra === null || extra.approval === null || extra.approval.given !== null) return;
  const { required } = extra.approval;
  extra.approval = required === null ? null : { required, question: null, until: -1, given: null, askedBy: 0 };
}

export function noteApproved(task: Task, { note, at }: EventOf<"task-approved">): void {
  Object.assign(approvalOf(task), { required: null, until: -1, given: { note, at } });
}
