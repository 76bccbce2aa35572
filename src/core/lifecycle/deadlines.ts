/**
 * What the clock alone brings about, and when it will next.
 *
 * `due` gives the events of one instant that has come: a deadline, the end of a rest, a timeout, the end
 * of a grace, a tab without an owner, a result that is no longer kept, a permit that ran out. The host asks
 * until there are none, and sets one alarm for `nextInstant`. An instant is due when it is reached.
 */
import type { Instant } from "../base/brand.ts";
import { itemAt, peek, waiting } from "../collections/fifo.ts";
import { first, front, items } from "../collections/sorted-list.ts";
import type { Event } from "../model/events.ts";
import type {
  ReadonlyAttempt,
  ReadonlyProject,
  ReadonlyState,
  ReadonlyTab,
  ReadonlyTask,
  ReadonlyTimer,
} from "../model/read-only.ts";
import { GROUPS_LOOKED_AT_MAX, holdsMax } from "../turn/hold.ts";
import { ANY_PRIORITY, mayStart, pickIn } from "../turn/next-in-line.ts";
import { overdueAt } from "../turn/priority.ts";
import { nextRankChange } from "../turn/rank-change.ts";
import { unanswered } from "./approval.ts";
import { queued } from "./dependency.ts";
import { isAwaiting } from "./growth.ts";
import { dueAtGates, nextInstantAtGates } from "./permits.ts";
import { duePlan, nextPlanExpiry } from "./plans.ts";
import { endOfStop, stopByFor, stopping } from "./stop.ts";

const EXPIRED_AT_ONCE_MAX = 1000;
const FAILED_AT_ONCE_MAX = 256;
/** Tombstones kept at most, however long they should be remembered: far below what a Map can hold. */
const TOMBSTONES_MAX = 2_000_000;

export function due(state: ReadonlyState, now: Instant): readonly Event[] {
  const timer = first(state.timers);
  if (timer !== undefined && timer.at <= now) return dueTimer(state, timer, now);
  for (const of of EXPIRING) {
    const { count, kept } = expiredEnds(state, of, now);
    if (count > 0) return [{ kind: "results-expired", at: now, count, kept, of }];
  }
  const stones = expiredTombstones(state, now);
  if (stones > 0) return [{ kind: "tombstones-forgotten", at: now, count: stones }];
  const plan = state.endedPlans.size === 0 ? null : duePlan(state, now);
  if (plan !== null) return [plan];
  return dueAtGates(state, now);
}

const EXPIRING = ["results", "failures"] as const;

/** Ended tasks of a kind, and how long and how many of them are kept. Of one literal the compiler makes no object. */
function endsAtHand({ ended, endedBadly, results, failures, config }: ReadonlyState, of: (typeof EXPIRING)[number]) {
  const { resultTtl, resultMax, failedTtl, failedMax } = config.scheduler;
  const isGood = of === "results";
  return {
    ends: isGood ? ended : endedBadly,
    total: isGood ? results : failures,
    ttl: isGood ? resultTtl : failedTtl,
    max: isGood ? resultMax : failedMax,
  };
}

function dueTimer(state: ReadonlyState, timer: ReadonlyTimer, now: Instant): Event[] {
  const task = timer.task as ReadonlyTask;
  switch (timer.kind) {
    case "deadline":
      return [deadlineEvent(state, task, now)];
    case "wake":
      return [queued(state, task, null, now)];
    case "timeout":
      return [stopping(state, timer.attempt as ReadonlyAttempt, "timeout", now)];
    case "stop":
      return [endOfStop(state, timer.attempt as ReadonlyAttempt, null, now)];
    case "pin":
      return [{ kind: "pin-released", at: now, task: task.id }];
    case "approval":
      return [unanswered(task, now)];
    case "tab":
      return unresolved(timer.tab as ReadonlyTab, now);
  }
}

function deadlineEvent(state: ReadonlyState, task: ReadonlyTask, now: Instant): Event {
  const runs = task.phase === "assigned" || task.phase === "running";
  const where = isAwaiting(task) ? "its children had not ended" : task.phase === "parked" ? "parked" : "queued";
  const reason = runs ? "deadline exceeded" : `deadline exceeded while ${where}`;
  const stopBy = runs && task.attempt !== null ? stopByFor(state, task.attempt, now) : null;
  return { kind: "task-failed", at: now, task: task.id, attempt: null, tokens: null, reason, expired: !runs, stopBy };
}

function unresolved(tab: ReadonlyTab, now: Instant): Event[] {
  const reason = `no worker owns tab ${tab.id}`;
  return front(tab.tasks, FAILED_AT_ONCE_MAX).map((task) => {
    const failed = { task: task.id, attempt: null, tokens: null, reason, expired: false, stopBy: null };
    return { kind: "task-failed", at: now, ...failed };
  });
}

/**
 * Of how many ended tasks the time is up, and how many of those stay because other tasks name them. One whose
 * dependents have not all been notified has time.
 */
function expiredEnds(
  state: ReadonlyState,
  of: (typeof EXPIRING)[number],
  now: Instant,
): { count: number; kept: number } {
  const { ends, total, ttl, max } = endsAtHand(state, of);
  let count = 0;
  let kept = 0;
  for (let index = 0; index < ends.length; index++) {
    const { task, end } = itemAt(ends, index);
    if (task.end !== end) continue;
    if (end.at + ttl > now && total - count <= max) break;
    if (state.unnotified.has(task) || task.attempt !== null || count >= EXPIRED_AT_ONCE_MAX) break;
    count++;
    if (task.links !== null && task.links.namedBy > 0) kept++;
  }
  return { count, kept };
}

function expiredTombstones(state: ReadonlyState, now: Instant): number {
  const { remember } = state.config.scheduler;
  const { remembered } = state;
  let count = 0;
  for (let index = 0; index < remembered.length; index++) {
    const { endedAt } = itemAt(remembered, index);
    if (endedAt + remember > now && remembered.length - count <= TOMBSTONES_MAX) break;
    if (count >= EXPIRED_AT_ONCE_MAX) break;
    count++;
  }
  return count;
}

/** The next instant at which anything can change by itself; null if nothing ever will. */
export function nextInstant(state: ReadonlyState, now: Instant): Instant | null {
  const { move, expiry } = nextChanges(state, now);
  return move === null || expiry === null ? (move ?? expiry) : (Math.min(move, expiry) as Instant);
}

/** When time will next move something, and when old results are let go; null if it never does. */
export function nextChanges(state: ReadonlyState, now: Instant): { move: Instant | null; expiry: Instant | null } {
  const move = Math.min(
    first(state.timers)?.at ?? Number.POSITIVE_INFINITY,
    nextInstantAtGates(state, now),
    nextRoomInBudgets(state, now),
    nextOverdue(state, now),
  );
  return { move: notBefore(move, now), expiry: notBefore(nextExpiry(state), now) };
}

const notBefore = (at: number, now: Instant): Instant | null =>
  at === Number.POSITIVE_INFINITY ? null : (Math.max(at, now) as Instant);

function nextExpiry(state: ReadonlyState): number {
  let next = Number.POSITIVE_INFINITY;
  for (const of of EXPIRING) {
    const { ends, ttl } = endsAtHand(state, of);
    for (const { task, end } of waiting(ends)) {
      if (task.end !== end) continue;
      // One that cannot go yet is let go by an event, not by the clock.
      if (!state.unnotified.has(task) && task.attempt === null) next = Math.min(next, end.at + ttl);
      break;
    }
  }
  const stone = peek(state.remembered);
  if (stone !== undefined) next = Math.min(next, stone.endedAt + state.config.scheduler.remember);
  return Math.min(next, nextPlanExpiry(state));
}

/** Whether the task next in line could start but for a budget: then no other task of its project can. */
function isHeldByBudget(state: ReadonlyState, project: ReadonlyProject, now: Instant): boolean {
  if (project.settings.budget.limit === null && state.config.budget.limit === null) return false;
  return mayStart(state, project, now) && pickIn(state, project, now, ANY_PRIORITY) === null;
}

/** When tokens spent long ago leave a budget that may be holding something up, or another task is next in line. */
function nextRoomInBudgets(state: ReadonlyState, now: Instant): number {
  let next =
    state.config.budget.limit === null
      ? Number.POSITIVE_INFINITY
      : (state.spent.nextExpiry(now) ?? Number.POSITIVE_INFINITY);
  for (const project of items(state.turn)) {
    if (project.settings.budget.limit !== null) next = Math.min(next, project.spent.nextExpiry(now) ?? next);
    if (isHeldByBudget(state, project, now)) next = Math.min(next, nextRankChange(state, project, now));
  }
  return next;
}

/** When the next task that asks for room becomes overdue and may take a hold; those overdue already were asked. */
function nextOverdue(state: ReadonlyState, now: Instant): number {
  if (state.holds.size >= holdsMax(state)) return Number.POSITIVE_INFINITY;
  let looked = 0;
  for (const group of items(state.holdCandidates)) {
    if (looked++ >= GROUPS_LOOKED_AT_MAX) break;
    const at = overdueAt(group.headAt, state.config.scheduler.priority);
    if (at > now) return at;
  }
  return Number.POSITIVE_INFINITY;
}
