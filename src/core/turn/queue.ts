/**
 * The queues: every runnable task, by agent.
 *
 * A task enters when it becomes runnable and leaves when it starts, ends or stops being runnable. An
 * agent's tasks lie in groups of those that differ only in when they became runnable; such a group is
 * a queue whose head is always its best (priority.ts says why), so choosing compares one head per group
 * and touches no other task; those with an estimate of tokens, with one of none and without any lie apart, since a
 * budget may let only some of them through. Projects keep a bit per shape they have queued, and both agents and
 * projects stand in the order of their turn only while they have something runnable.
 */
import { hasBit, setBit } from "../collections/bit-set.ts";
import {
  countBefore,
  countWhile,
  first,
  insert,
  items,
  positionOf,
  remove,
  reseat,
  sortedList,
} from "../collections/sorted-list.ts";
import { typeLimit } from "../config/config.ts";
import { treeAt } from "../fleet/placement.ts";
import { internShape } from "../fleet/shape.ts";
import { mindsProjects, refusalsOf } from "../fleet/worker-filter.ts";
import type {
  ReadonlyAgent,
  ReadonlyExtra,
  ReadonlyGroup,
  ReadonlyPlan,
  ReadonlyState,
  ReadonlyTask,
} from "../model/read-only.ts";
import type { Agent, Group, Project, Shape, State, Task } from "../model/state.ts";
import { expectsNone, signOfEstimate } from "./expected-tokens.ts";
import {
  compareRanks,
  effectivePriority,
  exactScore,
  fixedScore,
  isOverdue,
  rankOf,
  type TaskRank,
} from "./priority.ts";
import { compareGroups, compareTasks } from "./total-orders.ts";

const FEW_GROUPS = 8;

/** Whether a task belongs in a queue: runnable, not resting, not paused, no former attempt still stopping. */
export const isRunnable = (task: ReadonlyTask): boolean =>
  task.phase === "queued" &&
  !task.paused &&
  task.restUntil < 0 &&
  task.attempt === null &&
  (task.extra === null || pausedPlanOf(task.extra) === null);

/** The paused plan that it belongs to; null if there is none. */
export function pausedPlanOf({ group }: Pick<ReadonlyExtra, "group">): ReadonlyPlan | null {
  const plan = group === null ? null : group.group.plan;
  return plan !== null && plan.paused !== null ? plan : null;
}

/** Whether a task alone would overspend: it is passed over and blocks no other, like one that no worker fits. */
export function isOversize(state: ReadonlyState, task: ReadonlyTask): boolean {
  const limit = task.project.settings.budget.limit ?? Number.POSITIVE_INFINITY;
  return task.estimate > Math.min(limit, state.config.budget.limit ?? Number.POSITIVE_INFINITY);
}

/** Puts a task into its queue or takes it out, as its facts say. */
export function settleQueue(state: State, task: Task): void {
  const runnable = isRunnable(task);
  const isTooLarge = runnable && isOversize(state, task);
  if (isTooLarge) task.project.oversize.add(task);
  else if (task.project.oversize.size > 0) task.project.oversize.delete(task);
  const belongs = runnable && !isTooLarge;
  if (belongs && task.group === null) enter(state, task);
  else if (!belongs && task.group !== null) leave(state, task);
}

/** Takes a task out, lets `change` alter what its position depends on, and puts it back where it belongs. */
export function requeue(state: State, task: Task, change: () => void): void {
  if (task.group !== null) leave(state, task);
  change();
  settleQueue(state, task);
}

function shapeOf(state: State, task: Task): Shape {
  const { requirements, pin } = task;
  const { fleet } = state;
  // Those who ask for the same are of the same shape, unless workers mind their projects.
  const tree = treeAt(task);
  const isShared = pin === null && tree === null && (fleet.filters.size === 0 || !mindsProjects(fleet));
  if (isShared && requirements.shape !== null && state.shapes.byId[requirements.shape.id] === requirements.shape)
    return requirements.shape;
  const shape = internShape(state.shapes, requirements, pin, {
    workers: fleet.order,
    treeAt: tree,
    refusedBy: refusalsOf(fleet, requirements, task.project.id),
    typeLimit: (type) => typeLimit(state.config, type),
    room: fleet.room,
  });
  if (isShared) requirements.shape = shape;
  return shape;
}

/** What workers say of the tasks they take has changed: whatever they refuse now, or no longer, is of another shape. */
export function reshapeTasks(state: State): void {
  for (const requirements of state.requirements.values()) requirements.shape = null;
  for (const project of state.projects.values()) {
    // Many tasks ask for the same, and each such ask is judged once.
    const refusing = new Map<Task["requirements"], string>();
    const refusalsNow = ({ requirements }: Task): string => {
      const known = refusing.get(requirements);
      if (known !== undefined) return known;
      const key = keyOfRefusals(refusalsOf(state.fleet, requirements, project.id));
      refusing.set(requirements, key);
      return key;
    };
    for (const agent of project.agents.values()) {
      for (const group of [...agent.groups]) reshapeGroup(state, group, refusalsNow);
    }
  }
}

const keyOfRefusals = (keys: readonly string[]): string => keys.join("\n");

/** A group whose tasks all change alike is moved as a whole, unless it meets another; else each task that changes. */
function reshapeGroup(state: State, group: Group, refusalsNow: (task: Task) => string): void {
  const before = keyOfRefusals(group.shape.demand.refusedBy);
  const head = first(group.tasks) as Task;
  const ofHead = refusalsNow(head);
  let isAlike = true;
  for (const task of items(group.tasks)) {
    isAlike = refusalsNow(task) === ofHead;
    if (!isAlike) break;
  }
  if (isAlike && (ofHead === before || moveGroup(state, group, shapeOf(state, head)))) return;
  for (const task of [...items(group.tasks)]) if (refusalsNow(task) !== before) requeue(state, task, () => {});
}

/** Gives a group another shape; false, and nothing changes, if its agent has such a group already. */
function moveGroup(state: State, group: Group, shape: Shape): boolean {
  const { agent, shape: former, tasks } = group;
  const key = keyOfGroup(group.priority, group.fixedScore, shape, group.estimateSign);
  if (agent.groupByKey.has(key)) return false;
  countQueued(state, former, -tasks.size);
  countQueued(state, shape, tasks.size);
  countShape(agent.project, former, -tasks.size);
  countShape(agent.project, shape, tasks.size);
  agent.groupByKey.delete(group.key);
  agent.groupByKey.set(key, group);
  group.key = key;
  group.shape = shape;
  return true;
}

function countQueued({ shapes }: State, shape: Shape, by: number): void {
  if (shape.queued === 0) shapes.idle--;
  shape.queued += by;
  if (shape.queued === 0) shapes.idle++;
}

/** The part of a task's score that time does not change, failures included. */
export function fixedOf(state: ReadonlyState, task: ReadonlyTask): number {
  const iteration = task.iteration + task.ownFailures;
  return fixedScore({ type: task.requirements.type, depth: task.depth, iteration }, state.config.scheduler.priority);
}

function enter(state: State, task: Task): void {
  const { agent, project } = task;
  const shape = shapeOf(state, task);
  const group = groupFor(task, shape, fixedOf(state, task));
  if (group.tasks.size === 0 || compareTasks(task, first(group.tasks) as Task) < 0) {
    if (group.tasks.size > 0) unlistHoldCandidate(state, group);
    group.headAt = task.runnableAt;
    group.headSeq = task.seq;
    listHoldCandidate(state, group);
  }
  insert(group.tasks, task);
  task.group = group;
  countQueued(state, shape, 1);
  countShape(project, shape, 1);
  if (group.estimateSign <= 0) project.mayExpectNone++;
  if (agent.queued++ === 0 && !agent.load.isFull) insert(project.turn, agent);
  if (project.queued++ === 0) insert(state.turn, project);
}

function leave(state: State, task: Task): void {
  const { agent, project } = task;
  const group = task.group as Group;
  const { shape } = group;
  const wasHead = group.headSeq === task.seq;
  if (wasHead) unlistHoldCandidate(state, group);
  remove(group.tasks, task);
  task.group = null;
  if (group.tasks.size === 0) dropGroup(agent, group);
  else if (wasHead) {
    const head = first(group.tasks) as Task;
    group.headAt = head.runnableAt;
    group.headSeq = head.seq;
    listHoldCandidate(state, group);
  }
  countQueued(state, shape, -1);
  countShape(project, shape, -1);
  if (group.estimateSign <= 0) project.mayExpectNone--;
  if (--agent.queued === 0 && !agent.load.isFull) remove(project.turn, agent);
  if (--project.queued === 0) remove(state.turn, project);
}

function countShape(project: Project, { id }: Shape, by: number): void {
  const { shapeCounts } = project;
  while (shapeCounts.length <= id) shapeCounts.push(0);
  const count = (shapeCounts[id] as number) + by;
  shapeCounts[id] = count;
  if (count === 0 || count === by) setBit(project.shapes, id, count > 0);
}

function groupFor({ agent, priority, estimate }: Task, shape: Shape, fixed: number): Group {
  const { groups } = agent;
  const estimateSign = signOfEstimate(estimate);
  // Among a few, comparing numbers is quicker than spelling out a key.
  if (groups.length <= FEW_GROUPS) {
    for (const group of groups)
      if (
        group.shape === shape &&
        group.priority === priority &&
        group.fixedScore === fixed &&
        group.estimateSign === estimateSign
      )
        return group;
  }
  const key = keyOfGroup(priority, fixed, shape, estimateSign);
  const known = groups.length <= FEW_GROUPS ? undefined : agent.groupByKey.get(key);
  if (known !== undefined) return known;
  const group: Group = {
    key,
    agent,
    priority,
    shape,
    fixedScore: fixed,
    estimateSign,
    tasks: sortedList<Task>(compareTasks),
    headAt: 0,
    headSeq: 0,
    index: groups.length,
  };
  groups.push(group);
  agent.groupByKey.set(key, group);
  return group;
}

const keyOfGroup = (priority: number, fixed: number, { id }: Shape, estimateSign: number): string =>
  `${priority}|${fixed}|${id}|${estimateSign}`;

function dropGroup(agent: Agent, group: Group): void {
  agent.groupByKey.delete(group.key);
  const last = agent.groups.pop() as Group;
  if (last === group) return;
  agent.groups[group.index] = last;
  last.index = group.index;
}

const needsRoom = (group: ReadonlyGroup): boolean => group.shape.demand.cpu > 0 || group.shape.demand.memory > 0;

function listHoldCandidate(state: State, group: Group): void {
  if (needsRoom(group)) insert(state.holdCandidates, group);
}

function unlistHoldCandidate(state: State, group: Group): void {
  if (needsRoom(group)) remove(state.holdCandidates, group);
}

/** Where an agent or a project stands in the order of turns; -1 if it stands nowhere. */
export const agentPosition = (agent: Agent): number =>
  agent.queued > 0 && !agent.load.isFull ? positionOf(agent.project.turn, agent) : -1;
export const projectPosition = (state: State, project: Project): number =>
  project.queued > 0 ? positionOf(state.turn, project) : -1;

/** To be called after what its turn depends on has changed, with the position it had before. */
export function reseatAgent(agent: Agent, from: number): void {
  if (from >= 0) reseat(agent.project.turn, agent, from);
}

export function reseatProject(state: State, project: Project, from: number): void {
  if (from >= 0) reseat(state.turn, project, from);
}

/**
 * The group whose head goes first among those that can start, or null. Plain numbers, no allocation:
 * this runs for every start. `ignoreWorkers` asks who would go first if there were room, `onlyFree` who does of those
 * that expect no tokens.
 */
export function bestGroup(
  state: ReadonlyState,
  agent: ReadonlyAgent,
  now: number,
  which: { readonly priorityMax: number; readonly ignoreWorkers: boolean; readonly onlyFree: boolean },
): ReadonlyGroup | null {
  const rules = state.config.scheduler.priority;
  const floor = agent.project.settings.maxPriority;
  const { shutOtherwise, shutByWorkers } = state.shapes;
  let best: ReadonlyGroup | null = null;
  let bestPriority = 0;
  let bestOverdue = false;
  let bestScore = 0;
  const { groups } = agent;
  for (let index = 0; index < groups.length; index++) {
    const group = groups[index] as ReadonlyGroup;
    const { id } = group.shape;
    if (hasBit(shutOtherwise, id) || (!which.ignoreWorkers && hasBit(shutByWorkers, id))) continue;
    if (which.onlyFree && !expectsNone(group)) continue;
    const waited = now > group.headAt ? now - group.headAt : 0;
    const priority = effectivePriority(group.priority, waited, floor, rules.starvationAfter);
    if (priority > which.priorityMax || (best !== null && priority > bestPriority)) continue;
    const overdue = isOverdue(group.headAt, now, rules);
    // Among the overdue only age counts, so they all have the same score here.
    const score = overdue ? 0 : exactScore(group.fixedScore, waited, rules);
    if (best !== null && priority === bestPriority) {
      if (overdue !== bestOverdue) {
        if (bestOverdue) continue;
      } else if (score !== bestScore) {
        if (score < bestScore) continue;
      } else if (compareGroups(best, group) < 0) continue;
    }
    best = group;
    bestPriority = priority;
    bestOverdue = overdue;
    bestScore = score;
  }
  return best;
}

export function taskRank(state: ReadonlyState, task: ReadonlyTask, now: number): TaskRank {
  return rankOf(
    { priority: task.priority, fixed: fixedOf(state, task), runnableAt: task.runnableAt, seq: task.seq },
    now,
    task.project.settings.maxPriority,
    state.config.scheduler.priority,
  );
}

/** How many runnable tasks of its agent go before a task that is in the queue. */
export function countAhead(state: ReadonlyState, task: ReadonlyTask, now: number): number {
  let ahead = task.group === null ? 0 : countBefore(task.group.tasks, task);
  if (task.group !== null && task.agent.groups.length === 1) return ahead;
  const mine = taskRank(state, task, now);
  const { priority: rules } = state.config.scheduler;
  const floor = task.project.settings.maxPriority;
  for (const group of task.agent.groups) {
    if (group === task.group) continue;
    ahead += countWhile(group.tasks, (other) => {
      const theirs = rankOf(
        { priority: group.priority, fixed: group.fixedScore, runnableAt: other.runnableAt, seq: other.seq },
        now,
        floor,
        rules,
      );
      return compareRanks(theirs, mine) < 0;
    });
  }
  return ahead;
}

/** Every runnable task of an agent, group by group. */
export function* queuedTasks(agent: Agent): Generator<Task> {
  for (const group of agent.groups) yield* items(group.tasks);
}
