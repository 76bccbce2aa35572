/**
 * Groups: tasks that were submitted together, and how far they are.
 *
 * A group knows the records of its tasks in the order of submission, and counts its tasks by where they are or how they
 * ended. It counts apart what each agent has in each project, so that who may see only some of the tasks sees only
 * these. Tasks whose records are gone stay counted. A group goes with the last record, or with its plan (plans.ts).
 * What a plan counts of its own tasks, and when it has ended, is here too.
 */

import type { Instant, TaskId } from "../base/brand.ts";
import { insert, items, remove, sortedList } from "../collections/sorted-list.ts";
import { isEndPhase, noCounts, type Phase } from "../model/phase.ts";
import type { Plan } from "../model/plan.ts";
import type { ReadonlyPlan } from "../model/read-only.ts";
import type { GroupPart, State, Task, TaskGroup } from "../model/state.ts";
import { compareSeqs } from "../turn/total-orders.ts";
import { newExtra } from "./labels.ts";

/** The group of this id, which begins now if there is none. */
export function groupFor({ groups }: State, id: string, createdAt: Instant): TaskGroup {
  const known = groups.get(id);
  if (known !== undefined) return known;
  const group: TaskGroup = { id, createdAt, tasks: sortedList<Task>(compareSeqs), parts: new Map(), plan: null };
  groups.set(id, group);
  return group;
}

/** What an agent has of a group in a project; nothing yet, if that is new. */
export function partFor(group: TaskGroup, { project, agent }: Pick<GroupPart, "project" | "agent">): GroupPart {
  // Nearly always there is one, which is found without writing its key.
  const [first] = group.parts.values();
  if (first !== undefined && first.project === project && first.agent === agent) return first;
  const key = `${project}\n${agent}`;
  const known = group.parts.get(key);
  if (known !== undefined) return known;
  const extra = newExtra();
  const part: GroupPart = {
    group,
    project,
    agent,
    counts: noCounts(),
    gone: noCounts(),
    live: 0,
    endedAt: -1,
    usage: null,
    extra,
  };
  extra.group = part;
  group.parts.set(key, part);
  return part;
}

export function joinGroup(state: State, task: Task, id: string): void {
  const group = groupFor(state, id, task.createdAt);
  const part = partFor(group, { project: task.project.id, agent: task.agent.id });
  insert(group.tasks, task);
  // Most tasks of a group have nothing else that is rare: they share one object, and `extraOf` gives a task its own.
  if (task.extra === null) task.extra = part.extra;
  else task.extra.group = part;
  count(part, task.phase, 1);
  if (part.live > 0) part.endedAt = -1;
  if (group.plan !== null) joinPlan(state, group.plan, task);
}

/** A task of a group is in another phase. */
export function moveInGroup(state: State, part: GroupPart, task: Task, before: Phase): void {
  count(part, before, -1);
  count(part, task.phase, 1);
  if (part.live > 0) part.endedAt = -1;
  else if (!isEndPhase(before)) part.endedAt = state.at;
  if (part.group.plan !== null) moveInPlan(state, part.group.plan, task, before);
}

export function count(part: GroupPart, phase: Phase, by: number): void {
  part.counts[phase] += by;
  if (!isEndPhase(phase)) part.live += by;
}

/** The task's record goes. */
export function leaveGroup(state: State, task: Task): void {
  const part = task.extra?.group;
  if (part == null) return;
  const { group } = part;
  part.gone[task.phase]++;
  remove(group.tasks, task);
  if (group.tasks.size === 0 && group.plan === null) state.groups.delete(group.id);
}

// --------------------------------------------------------------- how far a plan is

/** Its tasks are others than before. */
export function recount(state: State, plan: Plan, group: TaskGroup): void {
  plan.counts = noCounts();
  plan.open = plan.tasks.length - plan.adopted - plan.dropped;
  for (const { id, phase } of items(group.tasks)) {
    if (!plan.members.has(id)) continue;
    plan.counts[phase]++;
    if (isEndPhase(phase)) plan.open--;
  }
  if (plan.open > 0) plan.endedAt = -1;
  else endPlan(state, plan, plan.endedAt < 0 ? state.at : plan.endedAt);
}

export function endPlan(state: State, plan: Plan, at: number): void {
  plan.endedAt = at;
  plan.keptSince = Math.max(plan.keptSince, at);
  insert(state.endedPlans, plan);
}

/** How many of its tasks are not there yet. */
export function missingIn({ tasks, adopted, dropped, counts }: ReadonlyPlan): number {
  const there = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return tasks.length - adopted - dropped - there;
}

/** Whether a plan keeps the record of a task of its group. */
export const keeps = ({ members, others }: ReadonlyPlan, id: TaskId): boolean => members.has(id) || others.has(id);

/** How many records it keeps, or will. */
export const keptIn = ({ tasks, others }: ReadonlyPlan): number => tasks.length + others.size;

/** A task has joined the group of a plan. */
function joinPlan(state: State, plan: Plan, task: Task): void {
  if (!plan.members.has(task.id)) return;
  plan.counts[task.phase]++;
  if (plan.dropped === 0) return;
  // It came after all.
  if (plan.open === 0) remove(state.endedPlans, plan);
  plan.dropped--;
  plan.open++;
  plan.endedAt = -1;
}

/** To be called after a plan has failed fast, or has not after all, or is paused or resumed. */
export function listFailed({ failedPlans }: State, plan: Plan): void {
  if (plan.hasFailed && plan.paused === null) failedPlans.add(plan);
  else failedPlans.delete(plan);
}

/** A task of a plan's group is in another phase. */
function moveInPlan(state: State, plan: Plan, task: Task, before: Phase): void {
  const { phase } = task;
  if (!plan.members.has(task.id)) return;
  const by = Number(isEndPhase(phase)) - Number(isEndPhase(before));
  plan.counts[before]--;
  plan.counts[phase]++;
  if (phase === "failed" && plan.failsFast && plan.paused !== "failed") plan.hasFailed = true;
  // What failed runs again.
  else if (before === "failed" && plan.counts.failed === 0) plan.hasFailed = false;
  listFailed(state, plan);
  if (by === 0) return;
  if (plan.open === 0) remove(state.endedPlans, plan);
  plan.open -= by;
  if (plan.open > 0) plan.endedAt = -1;
  else endPlan(state, plan, state.at);
}
