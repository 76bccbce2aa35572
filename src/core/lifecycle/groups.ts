/**
 * Groups: tasks that were submitted together, and how far they are.
 *
 * A group knows the records of its tasks in the order of submission, and counts its tasks by where they are or how they
 * ended. It counts apart what each agent has in each project, so that who may see only some of the tasks sees only
 * these. Tasks whose records are gone stay counted. A group goes with the last record.
 */

import type { Instant } from "../base/brand.ts";
import { insert, remove, sortedList } from "../collections/sorted-list.ts";
import {
  type GroupPart,
  isEndPhase,
  type Phase,
  type PhaseCounts,
  type State,
  type Task,
  type TaskGroup,
} from "../model/state.ts";
import { compareSeqs } from "../turn/total-orders.ts";
import { newExtra } from "./labels.ts";

const noCounts = (): PhaseCounts => ({
  waiting: 0,
  queued: 0,
  assigned: 0,
  running: 0,
  parked: 0,
  done: 0,
  failed: 0,
  cancelled: 0,
  skipped: 0,
});

/** The group of this id, which begins now if there is none. */
export function groupFor({ groups }: State, id: string, createdAt: Instant): TaskGroup {
  const known = groups.get(id);
  if (known !== undefined) return known;
  const group: TaskGroup = { id, createdAt, tasks: sortedList<Task>(compareSeqs), parts: new Map() };
  groups.set(id, group);
  return group;
}

/** What an agent has of a group in a project; nothing yet, if that is new. */
export function partFor(group: TaskGroup, { project, agent }: Pick<GroupPart, "project" | "agent">): GroupPart {
  const key = `${project}\n${agent}`;
  const known = group.parts.get(key);
  if (known !== undefined) return known;
  const extra = newExtra();
  const part: GroupPart = { group, project, agent, counts: noCounts(), live: 0, endedAt: -1, usage: null, extra };
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
}

/** A task of a group is in another phase. */
export function moveInGroup(part: GroupPart, before: Phase, next: Phase, at: Instant): void {
  count(part, before, -1);
  count(part, next, 1);
  if (part.live > 0) part.endedAt = -1;
  else if (!isEndPhase(before)) part.endedAt = at;
}

export function count(part: GroupPart, phase: Phase, by: number): void {
  part.counts[phase] += by;
  if (!isEndPhase(phase)) part.live += by;
}

/** The task's record goes. */
export function leaveGroup(state: State, task: Task): void {
  const group = task.extra?.group?.group;
  if (group === undefined) return;
  remove(group.tasks, task);
  if (group.tasks.size === 0) state.groups.delete(group.id);
}
