/**
 * Room kept free for a task that would otherwise never find any.
 *
 * A large task that waited past starvationAfter, fits no worker now but would fit an emptier one, takes
 * a hold on the worker with the most room: nothing else is placed there until the task fits. One hold
 * per project, and at most a tenth of the workers (one at least), so that a hold slows the fleet but
 * never stops it. Without a hold, small tasks fill every gap a large one is waiting for. A hold ends
 * when a gate, a budget or the limit of its agent keeps its task waiting.
 *
 * Only tasks that ask for CPU or memory can be starved this way; they are kept in the order of their
 * age (`state.holdCandidates`), and at most 64 of the longest waiting queues are looked at per turn.
 */
import { hasBit } from "../collections/bit-set.ts";
import { first, items } from "../collections/sorted-list.ts";
import { couldServe, freeOf, hasTreeFor } from "../fleet/shape.ts";
import { setHold } from "../fleet/worker-tree.ts";
import type { ReadonlyGroup, ReadonlyHold, ReadonlyState, ReadonlyTask, ReadonlyWorker } from "../model/read-only.ts";
import type { Hold, State, Task, Worker } from "../model/state.ts";
import { isAffordable, reserveFor } from "./budget.ts";
import { isOverdue } from "./priority.ts";
import { bestGroup } from "./queue.ts";

export const GROUPS_LOOKED_AT_MAX = 64;
const SEARCHES_MAX = 4;

export const holdsMax = (state: ReadonlyState): number => Math.max(1, Math.floor(state.fleet.order.length / 10));

/** The next hold that should be taken, if any. */
export function nextHold(state: ReadonlyState, now: number): ReadonlyHold | null {
  if (state.paused || state.holds.size >= holdsMax(state)) return null;
  const { priority: rules } = state.config.scheduler;
  let looked = 0;
  let searches = 0;
  for (const group of items(state.holdCandidates)) {
    if (!isOverdue(group.headAt, now, rules) || looked++ >= GROUPS_LOOKED_AT_MAX) return null;
    if (!mayHold(state, group, now)) continue;
    if (searches++ >= SEARCHES_MAX) return null;
    const worker = roomiest(state, group);
    if (worker !== null) return { task: first(group.tasks) as ReadonlyTask, worker };
  }
  return null;
}

/** Whether the head of this group is its agent's next task, and only the workers keep it from starting. */
function mayHold(state: ReadonlyState, group: ReadonlyGroup, now: number): boolean {
  const { agent, shape } = group;
  const { project } = agent;
  return (
    hasBit(state.shapes.shutByWorkers, shape.id) &&
    !hasBit(state.shapes.shutOtherwise, shape.id) &&
    shape.demand.pin === null &&
    shape.demand.capable > 0 &&
    project.hold === null &&
    project.status === "active" &&
    project.inFlight < project.settings.maxConcurrent &&
    !agent.load.isFull &&
    fitsBudgets(state, first(group.tasks) as ReadonlyTask, now) &&
    isNextOfAgent(state, group, now)
  );
}

/** It is the agent's best, or the best of those that pass it because it waits for a budget. */
function isNextOfAgent(state: ReadonlyState, group: ReadonlyGroup, now: number): boolean {
  const which = { priorityMax: Number.POSITIVE_INFINITY, ignoreWorkers: true };
  const best = bestGroup(state, group.agent, now, { ...which, onlyFree: false });
  if (best === null || best === group || fitsBudgets(state, first(best.tasks) as ReadonlyTask, now))
    return best === group;
  return bestGroup(state, group.agent, now, { ...which, onlyFree: true }) === group;
}

const fitsBudgets = (state: ReadonlyState, task: ReadonlyTask, now: number): boolean =>
  isAffordable(state, task.project, reserveFor(state, task), now);

/** A hold whose task a gate, a budget or its own agent's limit keeps waiting by now: others may have the worker. */
export function idleHold(state: ReadonlyState, now: number): ReadonlyHold | null {
  for (const hold of state.holds) {
    const { task } = hold;
    const isGated = task.group !== null && hasBit(state.shapes.shutByGate, task.group.shape.id);
    if (isGated || task.agent.load.isFull || !fitsBudgets(state, task, now)) return hold;
  }
  return null;
}

/**
 * The worker with the most room that could ever serve the demand. Null unless some such worker has a slot
 * free: where slots alone are short, the next one to come free will do.
 */
function roomiest(state: ReadonlyState, group: ReadonlyGroup): ReadonlyWorker | null {
  let best: ReadonlyWorker | null = null;
  let isFragmented = false;
  for (const worker of state.fleet.order) {
    if (worker.status !== "ready" || worker.hold !== null || !couldServe(worker, group.shape.demand)) continue;
    // A tree is no room that comes together as tasks end: it is there for one more, or it is waited for.
    if (!hasTreeFor(worker, freeOf(worker), group.shape.demand)) continue;
    if (worker.attempts.size < worker.slots + state.fleet.room) isFragmented = true;
    if (best === null || hasMoreRoom(worker, best)) best = worker;
  }
  return isFragmented ? best : null;
}

function hasMoreRoom(left: ReadonlyWorker, right: ReadonlyWorker): boolean {
  if (freeCpu(left) !== freeCpu(right)) return freeCpu(left) > freeCpu(right);
  if (freeMemory(left) !== freeMemory(right)) return freeMemory(left) > freeMemory(right);
  return left.slots - left.attempts.size > right.slots - right.attempts.size;
}

const freeCpu = (worker: ReadonlyWorker): number => worker.cpu - worker.usedCpu;
const freeMemory = (worker: ReadonlyWorker): number => worker.memory - worker.usedMemory;

export function takeHold(state: State, task: Task, worker: Worker): void {
  const hold: Hold = { task, worker };
  setHold(state.fleet, state.shapes, worker, hold);
  task.project.hold = hold;
  state.holds.add(hold);
}

/** Gives back the hold a task has, if it has one. */
export function dropHold(state: State, task: Task): void {
  const { hold } = task.project;
  if (hold === null || hold.task !== task) return;
  task.project.hold = null;
  state.holds.delete(hold);
  setHold(state.fleet, state.shapes, hold.worker, null);
}
