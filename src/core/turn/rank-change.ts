/**
 * When time alone makes another task next in line in a project.
 *
 * No task overtakes one that its budget keeps waiting. But waiting makes urgent: a task becomes overdue, rises by a
 * step of priority, or gains on an older one whose age has reached its cap, and then another one is next in
 * line, which the budget may well allow. That instant must wake the pump as much as tokens that leave a window.
 *
 * Only the heads of groups are looked at, since the order within a group never changes, and only in projects
 * where some head does not fit the budget: elsewhere nothing waits for its turn alone.
 */

import { first, items } from "../collections/sorted-list.ts";
import type { ReadonlyGroup, ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { isAffordable, reserveFor } from "./budget.ts";
import { MINUTE_MS, PRIORITY_STEP } from "./priority.ts";

const NEVER = Number.POSITIVE_INFINITY;

export function nextRankChange(state: ReadonlyState, project: ReadonlyProject, now: number): number {
  let isTight = false;
  /** The oldest head of each fixed score: who may be gained on. */
  const oldest = new Map<number, number>();
  for (const agent of items(project.turn)) {
    for (const group of agent.groups) {
      const reserve = reserveFor(state, first(group.tasks) as ReadonlyTask);
      isTight ||= !isAffordable(state, project, reserve, now);
      oldest.set(group.fixedScore, Math.min(group.headAt, oldest.get(group.fixedScore) ?? NEVER));
    }
  }
  let next = NEVER;
  if (!isTight) return next;
  for (const agent of items(project.turn)) {
    for (const group of agent.groups) {
      next = Math.min(next, nextStep(state, group, now), nextGain(state, group, oldest, now));
    }
  }
  return next;
}

/** When the head of a group becomes overdue or rises by a step, if it still can. */
function nextStep(state: ReadonlyState, { agent, headAt, priority }: ReadonlyGroup, now: number): number {
  const { starvationAfter } = state.config.scheduler.priority;
  const steps = Math.floor(Math.max(0, now - headAt) / starvationAfter);
  const isAtTop = steps > 0 && priority - PRIORITY_STEP * steps <= agent.project.settings.maxPriority;
  return isAtTop ? NEVER : headAt + (steps + 1) * starvationAfter;
}

/** When the head of a group passes an older one of lower fixed score that has reached the cap of its age. */
function nextGain(
  state: ReadonlyState,
  group: ReadonlyGroup,
  oldest: ReadonlyMap<number, number>,
  now: number,
): number {
  const { agePerMinute, ageMax } = state.config.scheduler.priority;
  let next = NEVER;
  if (agePerMinute === 0) return next;
  for (const [fixed, headAt] of oldest) {
    if (fixed >= group.fixedScore || headAt >= group.headAt) continue;
    // A tie goes to the older one, so it is passed a millisecond later.
    const at = group.headAt + Math.floor(((fixed + ageMax - group.fixedScore) * MINUTE_MS) / agePerMinute) + 1;
    if (at > now) next = Math.min(next, at);
  }
  return next;
}
