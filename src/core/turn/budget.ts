/**
 * Who may still spend: reserve, settle, release.
 *
 * A start reserves what the task is expected to use; it is allowed only if what was used within the
 * rolling window, plus all reservations, plus this one stays within the limit of the project and of the
 * fleet. When the attempt ends, its reservation goes and what it really used is booked. Unknown usage
 * is booked at the reservation: a budget fails closed. Booked tokens are never taken back, whatever
 * becomes of the task. A task that expects no tokens reserves none and asks no budget; the first of its kind that
 * reports some ends that, and on a budget that is used up it is stopped by that very report.
 */

import type { ReadonlyAttempt, ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { Attempt, State } from "../model/state.ts";
import { expectedTokens, learnMean } from "./expected-tokens.ts";
import { chargeProject } from "./fairness.ts";

const NO_LIMIT = Number.POSITIVE_INFINITY;

/**
 * What a start of this task sets aside: its estimate (0 too), or what its kind has used so far; nothing where neither
 * is known. What was learned never exceeds a limit, or one outlier would bar its kind for good.
 */
export function reserveFor(state: ReadonlyState, task: ReadonlyTask): number {
  if (task.estimate > 0) return task.estimate;
  const limit = Math.min(task.project.settings.budget.limit ?? NO_LIMIT, state.config.budget.limit ?? NO_LIMIT);
  return Math.min(expectedTokens(task), limit);
}

/** What a call of no task sets aside. */
export const reserveForCall = (tokens: number): number => Math.max(1, tokens);

/** All that is reserved: by attempts, and by calls of no task. */
export const setAside = ({ reserved, callsReserved }: Pick<ReadonlyProject, "reserved" | "callsReserved">): number =>
  reserved + callsReserved;

export function projectHasRoom(project: ReadonlyProject, tokens: number, now: number): boolean {
  const { limit } = project.settings.budget;
  return limit === null || project.spent.total(now) + setAside(project) + tokens <= limit;
}

export function fleetHasRoom(state: ReadonlyState, tokens: number, now: number): boolean {
  const { limit } = state.config.budget;
  return limit === null || state.spent.total(now) + setAside(state) + tokens <= limit;
}

/** Whether both budgets have room for so many tokens. None at all is affordable, however little is left. */
export const isAffordable = (state: ReadonlyState, project: ReadonlyProject, tokens: number, now: number): boolean =>
  tokens === 0 || (projectHasRoom(project, tokens, now) && fleetHasRoom(state, tokens, now));

/** What an attempt is known to have used: the larger of its permits and its worker's word, counted once. */
export const usedBy = (attempt: ReadonlyAttempt): number => Math.max(attempt.reported, attempt.permitted);

/** The reservation grows with what is used, so that others do not spend it. */
export function noteUsage(state: State, attempt: Attempt): void {
  const more = usedBy(attempt) - attempt.reserve;
  if (more <= 0) return;
  attempt.reserve += more;
  attempt.task.project.reserved += more;
  state.reserved += more;
}

/** Of an attempt that never began: its charge is taken back, unless it is known to have used something. */
export function settleUnbegun(state: State, attempt: Attempt, at: number): void {
  if (usedBy(attempt) > 0) return settle(state, attempt, 0, at);
  chargeProject(state, attempt.task.project, -attempt.charge, at);
}

/** Books what an ended attempt used. `tokens` is the last word of its worker, null if it had none. */
export function settle(state: State, attempt: Attempt, tokens: number | null, at: number): void {
  const { project } = attempt.task;
  if (tokens !== null) {
    attempt.reported = Math.max(attempt.reported, tokens);
    attempt.known = true;
  }
  const used = attempt.known ? usedBy(attempt) : attempt.reserve;
  project.spent.add(used, at);
  state.spent.add(used, at);
  // Where what was used is unknown, the charge stands: saying nothing must not be the cheaper way.
  const cost = attempt.known ? state.config.scheduler.fairness.startCost + used : attempt.charge;
  project.recent.add(cost, at);
  if (!attempt.known) return;
  chargeProject(state, project, cost - attempt.charge, at);
  learnMean(project, attempt.task.requirements.type, used);
}
