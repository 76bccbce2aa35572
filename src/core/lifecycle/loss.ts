/**
 * Attempts that end by no fault of their task.
 *
 * A worker that is lost and a stop for want of budget are losses: they count apart from own failures, and too many of
 * them end the task all the same. So do requeues, where the worker gives the task back by its own word: they have a
 * count of their own, and each rests longer than the one before. A provider's 429 or 529 counts against nothing: it
 * shuts the gate of the task's provider for all that need it; a task that names no provider rests by itself, longer
 * each time. Only its deadline ends that.
 *
 * What must not run twice (`onLoss: fail`) is not queued again once it had begun, unless its worker gave it back. The
 * log has such an attempt as running before it begins; one that was then not begun is returned, at no cost.
 */

import { after, type GateId, type Instant } from "../base/brand.ts";
import { fnv1a } from "../fleet/shape.ts";
import { isHeld } from "../gate/limits.ts";
import type { AttemptReport } from "../model/commands.ts";
import type { Event, EventOf, LossCause } from "../model/events.ts";
import type { ReadonlyAttempt, ReadonlyState } from "../model/read-only.ts";
import { usedBy } from "../turn/budget.ts";
import { roomForGate } from "./gates.ts";

/** A provider that does not say for how long is left alone for so long at least. */
const THROTTLED_MS_MIN = 1000;
/** No report shuts a gate, or puts off a task, for longer: then the next call asks the provider itself. */
export const THROTTLED_MS_MAX: number = 24 * 3_600_000;
const REASON_SHOWN_MAX = 200;

/** A worker that leaves in good order costs its tasks nothing, however often it does. */
export const countsAsLoss = (cause: LossCause): boolean => cause === "worker-lost" || cause === "budget";

export type Loss = {
  readonly cause: "worker-lost" | "worker-left" | "budget";
  readonly tokens: number | null;
  /** How that came, where more is known. */
  readonly reason?: string;
};
type GivenBack = Pick<AttemptReport, "tokens" | "retryAfterMs"> & { readonly reason: string | null };

/** Whether its outcome is unknown and its task must not run again to see: one that never began did nothing. */
const isOutcomeUnknown = ({ task, startedAt }: ReadonlyAttempt): boolean =>
  task.requirements.onLoss === "fail" && startedAt >= 0;

export function loseAttempt(state: ReadonlyState, attempt: ReadonlyAttempt, loss: Loss, now: Instant): Event {
  const { cause, tokens, reason = null } = loss;
  const how = reason === null ? cause : `${cause}: ${shorten(reason)}`;
  const { task, number } = attempt;
  if (isOutcomeUnknown(attempt)) {
    const lost = `attempt ${number} had begun and was lost (${how}), and onLoss is fail`;
    return failed(attempt, tokens, `its outcome is unknown: ${lost}`, now);
  }
  const losses = task.losses + (countsAsLoss(cause) ? 1 : 0);
  if (countsAsLoss(cause) && losses >= state.config.scheduler.retry.maxLosses) {
    const which = cause === "budget" ? "stopped-by-its-budget" : "lost-too-often";
    return failed(attempt, tokens, `${which} (lost ${losses === 1 ? "once" : `${losses} times`}, last: ${how})`, now);
  }
  const used = Math.max(usedBy(attempt), tokens ?? 0);
  const restMs = cause === "budget" ? restOf(state, attempt, losses) : 0;
  const estimate = cause === "budget" ? Math.max(task.estimate, used) : task.estimate;
  return { ...lost(attempt, { cause, tokens, reason }, after(now, restMs), now), estimate };
}

/** It did nothing, costs nothing and says nothing of what its kind uses. Its task rests if this comes too often. */
export function returnAttempt(state: ReadonlyState, attempt: ReadonlyAttempt, rests: number, now: Instant): Event {
  const restUntil = rests === 0 ? now : after(now, restOf(state, attempt, rests));
  return lost(attempt, { cause: "not-begun", tokens: null, reason: null }, restUntil, now);
}

/** Logs of core 6 and before have 0 tokens there, which were settled as any other. */
export const isUnbegun = ({ cause, tokens }: EventOf<"attempt-lost">): boolean =>
  cause === "not-begun" && tokens === null;

/** Its worker gives it back: it rests, at least as long as the worker asks. */
export function requeueAttempt(state: ReadonlyState, attempt: ReadonlyAttempt, given: GivenBack, now: Instant): Event {
  const { tokens, reason } = given;
  const requeues = attempt.task.requeues + 1;
  if (requeues >= state.config.scheduler.retry.maxRequeues) {
    const last = reason === null ? "" : `, last: ${shorten(reason)}`;
    return failed(attempt, tokens, `requeued-too-often (${requeues} times${last})`, now);
  }
  const restMs = Math.max(given.retryAfterMs ?? 0, restOf(state, attempt, requeues));
  return lost(attempt, { cause: "requeue", tokens, reason }, after(now, restMs), now);
}

/** Its provider said 429 or 529. What its own call under a permit has told the gate already is not told once more. */
export function throttleAttempt(
  state: ReadonlyState,
  attempt: ReadonlyAttempt,
  given: GivenBack,
  now: Instant,
): Event[] {
  const { task } = attempt;
  const { tokens, reason } = given;
  const retryAfterMs = Math.min(given.retryAfterMs ?? 0, THROTTLED_MS_MAX);
  const gate = task.requirements.provider as GateId | null;
  const back = { cause: "rate-limited", tokens, reason } as const;
  // A gate that only a report has made is no project's, so none may take what is kept for those that have few.
  const room = gate === null ? null : roomForGate(state, gate, null, now);
  if (gate === null || room?.ok !== true) {
    const restMs = Math.max(THROTTLED_MS_MIN, retryAfterMs, restOf(state, attempt, task.throttles + 1));
    return [lost(attempt, back, after(now, restMs), now)];
  }
  const throttled: Event = { kind: "gate-throttled", at: now, gate, permit: null, retryAfterMs };
  const again = lost(attempt, back, now, now);
  const isKnown = attempt.gateTold || (retryAfterMs === 0 && isOldNews(state, attempt, gate, now));
  return isKnown ? [again] : [...room.value, throttled, again];
}

/** It went out before the block that is over by now, with those that brought it about. */
function isOldNews(state: ReadonlyState, attempt: ReadonlyAttempt, id: GateId, now: Instant): boolean {
  const gate = state.gates.get(id);
  if (gate === undefined || isHeld(gate, now)) return false;
  return gate.blockedUntil !== null && attempt.assignedAt < gate.blockedUntil;
}

/** How long a task rests before its next attempt: doubling, capped, spread by its own id. */
export function restOf(state: ReadonlyState, { task, number }: ReadonlyAttempt, times: number): number {
  const { base, max } = state.config.scheduler.retry;
  let rest = base;
  for (let index = 1; index < times && rest < max; index++) rest *= 2;
  rest = Math.min(max, rest);
  const quarter = Math.floor(rest / 4);
  return rest + (quarter === 0 ? 0 : fnv1a(`${task.id}#${number}`) % quarter);
}

type Back = { readonly cause: LossCause; readonly tokens: number | null; readonly reason: string | null };

const lost = (
  { task, number }: ReadonlyAttempt,
  { cause, tokens, reason }: Back,
  restUntil: Instant,
  now: Instant,
): EventOf<"attempt-lost"> => ({
  kind: "attempt-lost",
  at: now,
  task: task.id,
  attempt: number,
  tokens,
  cause,
  estimate: task.estimate,
  restUntil,
  reason,
});

export const failed = (
  { task, number }: ReadonlyAttempt,
  tokens: number | null,
  reason: string,
  now: Instant,
): Event => ({
  kind: "task-failed",
  at: now,
  task: task.id,
  attempt: number,
  tokens,
  reason,
  expired: false,
  stopBy: null,
});

const shorten = (text: string): string =>
  text.length <= REASON_SHOWN_MAX ? text : `${text.slice(0, REASON_SHOWN_MAX).toWellFormed()}…`;
