/**
 * Which worker: feasible, ranked, chosen, with the reason.
 *
 * A worker is feasible if it is ready, has a free slot or room for what waits there, enough CPU and memory, and
 * every capability the task needs. Among the feasible the strategy chooses, always in a total order, and first among
 * those with a free slot.
 * Affinity prefers the worker that ran the task's parent or one of its needs (its data is there), then
 * one that ran the task before, then one in its zone. Under the affinity strategy a task is pinned to such
 * a worker, or to its zone, when it is queued and waits for it at most `affinityWait`; a pin is part of the
 * task's shape, so waiting for one worker never holds up anybody else. A task that is a tombstone by now is still
 * known by the worker that ran it.
 */

import type { Pin, TaskId, WorkerId } from "../base/brand.ts";
import type { Strategy } from "../config/config.ts";
import type { AffinityKind, Reason } from "../model/events.ts";
import type {
  ReadonlyDemand,
  ReadonlyRequirements,
  ReadonlyState,
  ReadonlyTask,
  ReadonlyWorker,
} from "../model/read-only.ts";
import type { Links } from "../model/state.ts";
import { zonePin } from "./pin.ts";
import {
  couldServe,
  fnv1a,
  freeOf,
  hasFreeSlot,
  hasRoomFor,
  hasSlot,
  leavesEnough,
  type Needed,
  offers,
} from "./shape.ts";
import { refusalsOf } from "./worker-filter.ts";
import { firstFrom, indexFor, leastLoaded, loadOf, tightest } from "./worker-tree.ts";

const ONLY_WORKER: Reason = { type: "only-worker-available" };
/** A strategy that has a choice for every task; affinity has none for a task that nothing draws to a worker. */
type Ranking = Exclude<Strategy, "affinity">;
type Placement = { readonly worker: ReadonlyWorker; readonly reason: Reason };

/** Where a task of an open shape goes. Null only if no worker has room, which its shape says already. */
export function place(state: ReadonlyState, task: ReadonlyTask, demand: ReadonlyDemand): Placement | null {
  const { strategy, preferLocality } = state.config.scheduler.placement;
  const held = heldPlacement(state, task);
  if (held !== null && demand.feasible === 0) return held;
  if (demand.feasible === 0) return null;
  if (demand.feasible === 1 && demand.pin === null) {
    const only = leastLoaded(state.fleet, demand);
    return only === null ? null : { worker: only, reason: ONLY_WORKER };
  }
  if (strategy === "affinity" || demand.pin !== null) {
    return affine(state, task, demand, () => true) ?? byStrategy(state, task, demand, "least-loaded");
  }
  const chosen = byStrategy(state, task, demand, strategy);
  if (!preferLocality || chosen === null) return chosen;
  return affine(state, task, demand, (worker) => ties(worker, chosen.worker, strategy)) ?? chosen;
}

function byStrategy(
  state: ReadonlyState,
  task: ReadonlyTask,
  demand: ReadonlyDemand,
  strategy: Ranking,
): Placement | null {
  const { fleet } = state;
  switch (strategy) {
    case "round-robin": {
      const worker = firstFrom(fleet, demand, state.cursor === null ? 0 : indexAfter(state, state.cursor));
      return worker === null ? null : { worker, reason: { type: "round-robin" } };
    }
    case "random": {
      const worker = firstFrom(fleet, demand, fnv1a(`${task.id}#${task.attempts + 1}`) % fleet.order.length);
      return worker === null ? null : { worker, reason: { type: "random" } };
    }
    case "best-fit": {
      const worker = tightest(fleet, demand);
      return worker === null ? null : { worker, reason: fitOf(worker, demand) };
    }
    case "least-loaded": {
      const worker = leastLoaded(fleet, demand);
      return worker === null ? null : { worker, reason: { type: "least-loaded", queueDepth: worker.attempts.size } };
    }
  }
}

function fitOf(worker: ReadonlyWorker, demand: ReadonlyDemand): Reason {
  const free = worker.cpu - worker.usedCpu;
  return { type: "resource-fit", availableCpu: Number.isFinite(free) ? free : null, requiredCpu: demand.cpu };
}

/** The index just after a worker in the order of ids, also when it has left. */
function indexAfter(state: ReadonlyState, cursor: WorkerId): number {
  const index = indexFor(state.fleet.order, cursor);
  return state.fleet.order[index]?.id === cursor ? index + 1 : index;
}

/** Whether the strategy sees no difference between two feasible workers. */
function ties(left: ReadonlyWorker, right: ReadonlyWorker, strategy: Ranking): boolean {
  if (hasFreeSlot(left) !== hasFreeSlot(right)) return false;
  switch (strategy) {
    case "least-loaded":
      return left.attempts.size === right.attempts.size;
    case "best-fit":
      return left.cpu - left.usedCpu === right.cpu - right.usedCpu;
    case "round-robin":
    case "random":
      return true;
  }
}

function affine(
  state: ReadonlyState,
  task: ReadonlyTask,
  demand: ReadonlyDemand,
  allowed: (worker: ReadonlyWorker) => boolean,
): Placement | null {
  const feasible = (worker: ReadonlyWorker | undefined): worker is ReadonlyWorker =>
    worker !== undefined &&
    couldServe(worker, demand) &&
    hasRoomFor(worker, demand, state.fleet.room) &&
    allowed(worker);
  for (const { worker, reason } of affinities(state, task)) {
    const found = state.fleet.byId.get(worker);
    if (feasible(found)) return { worker: found, reason: { type: "affinity", reason } };
  }
  if (task.requirements.zone === null) return null;
  let best: ReadonlyWorker | null = null;
  for (const worker of state.fleet.order) {
    if (worker.zone !== task.requirements.zone || !feasible(worker)) continue;
    if (best === null || loadOf(worker) < loadOf(best)) best = worker;
  }
  return best === null ? null : { worker: best, reason: { type: "affinity", reason: "same-zone" } };
}

/** Workers a task would rather run on, dearest first; not those of its zone. */
function affinities(state: ReadonlyState, task: ReadonlyTask): { worker: WorkerId; reason: AffinityKind }[] {
  const found: { worker: WorkerId; reason: AffinityKind }[] = [];
  const ran = (id: TaskId | null): void => {
    const worker = ranOn(state, id);
    if (worker !== null) found.push({ worker, reason: "data-locality" });
  };
  ran(task.links === null ? null : awaitedParent(task.links));
  for (const need of task.links?.needs ?? []) ran(need);
  if (task.lastWorker !== null) found.push({ worker: task.lastWorker, reason: "previously-executed" });
  return found;
}

/** The parent that a task waits for, and sees the end of. */
export const awaitedParent = ({ parent, ofRunning }: Pick<Links, "parent" | "ofRunning">): TaskId | null =>
  ofRunning ? null : parent;

const ranOn = ({ tasks, tombstones }: ReadonlyState, id: TaskId | null): WorkerId | null =>
  id === null ? null : ((tasks.get(id) ?? tombstones.get(id))?.lastWorker ?? null);

/** What a worker must have to run this task. */
export const neededBy = (
  state: ReadonlyState,
  task: ReadonlyTask,
): Needed & Pick<ReadonlyRequirements, "zone" | "worktrees"> & Pick<ReadonlyDemand, "treeAt"> => {
  const { capabilities, cpu, memory, worktrees, zone } = task.requirements;
  const refusedBy = refusalsOf(state.fleet, task.requirements, task.project.id);
  return { capabilities, cpu, memory, worktrees, zone, treeAt: treeAt(task), refusedBy };
};

/** The worker that keeps the worktree of a task that goes on: its last attempt has ended a round, or has asked. */
export function treeAt({ requirements, extra, attempts, lastWorker }: ReadonlyTask): WorkerId | null {
  if (requirements.worktrees === 0 || extra === null || attempts === 0) return null;
  const round = extra.loop?.rounds.at(-1);
  const isNextRound = round?.outcome === "again" && round.attempt === attempts;
  const isAnswered = extra.approval?.askedBy === attempts && extra.approval.given !== null;
  return isNextRound || isAnswered ? lastWorker : null;
}

/** What a task that is being queued will wait for, under the affinity strategy. */
export function pinFor(
  state: ReadonlyState,
  task: Pick<Links, "parent" | "needs" | "ofRunning"> & { readonly lastWorker: WorkerId | null },
  demand: Needed & { readonly zone: string | null },
): Pin | null {
  const { strategy, affinityWait } = state.config.scheduler.placement;
  if (strategy !== "affinity" || affinityWait === 0) return null;
  const wanted = [awaitedParent(task), ...task.needs].map((id) => ranOn(state, id));
  for (const id of [...wanted, task.lastWorker]) {
    const worker = id === null ? undefined : state.fleet.byId.get(id);
    if (worker !== undefined && offers(worker, demand)) return worker.id;
  }
  const { zone } = demand;
  if (zone === null) return null;
  for (const worker of state.fleet.order) if (worker.zone === zone && offers(worker, demand)) return zonePin(zone);
  return null;
}

/** The worker held for a task, if it has room for it by now. */
export function heldPlacement(state: ReadonlyState, task: ReadonlyTask): Placement | null {
  const hold = task.project.hold;
  if (hold === null || hold.task !== task) return null;
  const { worker } = hold;
  const asked = { ...task.requirements, treeAt: treeAt(task) };
  const hasRoom = hasSlot(worker, state.fleet.room) && leavesEnough(worker, freeOf(worker), asked);
  return hasRoom ? { worker, reason: ONLY_WORKER } : null;
}
