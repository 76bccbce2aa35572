/**
 * Who stands before whom: the total orders of timers, projects, agents, groups and tasks.
 *
 * Every list that is kept in order uses one of these, and none of them ever calls two different things
 * equal; so the choice is exact, and a state rebuilt from a snapshot lines up like the old one.
 */

import type { Plan } from "../model/plan.ts";
import type { ReadonlyAgent, ReadonlyGroup, ReadonlyProject, ReadonlyTask, ReadonlyTimer } from "../model/read-only.ts";
import type { TimerKind } from "../model/state.ts";

const TIMER_RANK: Readonly<Record<TimerKind, number>> = {
  deadline: 0,
  timeout: 1,
  stop: 2,
  pin: 3,
  wake: 4,
  tab: 5,
  approval: 6,
};

export const compareTimers = (left: ReadonlyTimer, right: ReadonlyTimer): number =>
  left.at - right.at || TIMER_RANK[left.kind] - TIMER_RANK[right.kind] || left.order - right.order;

/** What decides between two projects. */
export type Standing = Pick<ReadonlyProject, "level" | "settings" | "registration">;

export const compareProjects = (left: Standing, right: Standing): number =>
  left.level - right.level || right.settings.weight - left.settings.weight || left.registration - right.registration;

export const compareAgents = (left: ReadonlyAgent, right: ReadonlyAgent): number =>
  left.inFlight - right.inFlight || left.lastServed - right.lastServed || compareIds(left.id, right.id);

export const compareGroups = (left: ReadonlyGroup, right: ReadonlyGroup): number =>
  left.headAt - right.headAt || left.headSeq - right.headSeq;

/** In the order of submission. */
export const compareSeqs = (left: ReadonlyTask, right: ReadonlyTask): number => left.seq - right.seq;

export const compareTasks = (left: ReadonlyTask, right: ReadonlyTask): number =>
  left.runnableAt - right.runnableAt || left.seq - right.seq;

/** In the order in which their time is up. */
export const comparePlans = (left: Pick<Plan, "keptSince" | "id">, right: Pick<Plan, "keptSince" | "id">): number =>
  left.keptSince - right.keptSince || compareIds(left.id, right.id);

export const compareIds = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);
