/**
 * The workers, and the fastest way to one that fits.
 *
 * Workers stand at the leaves of a tree, those that offer the same capabilities together and in the order of
 * their ids. Its nodes know, for everything below them, the lightest load, the most free CPU and memory and the
 * union of capabilities. A search goes down only where something could fit and something better could be, so
 * finding the least loaded of a thousand workers looks at a handful. Round-robin and random walk along the ids
 * instead. Loads, ties and ids give a total order: the same fleet always yields the same worker. Whatever the order,
 * a worker with a free slot comes before all at which the task would have to wait.
 *
 * A worker's own numbers change here only (`carry`, `setHold`), which also brings the counts of the demands
 * it serves up to date; so "does anybody have room for this?" is a number that is already there.
 */

import type { WorkerId } from "../base/brand.ts";
import { AttemptSet } from "../collections/attempt-set.ts";
import type { ReadonlyNumbers } from "../collections/bit-set.ts";
import { lowerBound } from "../collections/sorted-list.ts";
import type { ReadonlyDemand, ReadonlyFleet, ReadonlyWorker } from "../model/read-only.ts";
import type { Room } from "../model/room.ts";
import type { Attempt, Fleet, Hold, Shapes, TreeArrays, Worker } from "../model/state.ts";
import { workerOf } from "./pin.ts";
import {
  bloomOf,
  couldServe,
  freeOf,
  hasFreeSlot,
  hasRoomFor,
  isOpen,
  leavesEnough,
  setDemandFeasible,
} from "./shape.ts";
import { keyOfTakes } from "./worker-filter.ts";

const CAPABILITIES_SPAN = 65_536;
/** Heavier than any worker with a free slot. */
const ALL_TAKEN = CAPABILITIES_SPAN * 2_147_483_648;

export const newFleet = (): Fleet => ({
  byId: new Map(),
  order: [],
  room: 0,
  able: 0,
  leaves: [],
  width: 1,
  ...emptyTree(1),
  offered: new Map(),
  filters: new Map(),
});

/** No leaf is open. */
export function emptyTree(width: number): TreeArrays {
  const numbers = (value: number): Float64Array => new Float64Array(width * 2).fill(value);
  return {
    lightest: numbers(Number.POSITIVE_INFINITY),
    cpuMost: numbers(-1),
    cpuLeast: numbers(Number.POSITIVE_INFINITY),
    memoryMost: numbers(-1),
    blooms: new Int32Array(width * 2),
    offers: new Int32Array(width),
  };
}

/** What a worker offers; null is room without a limit. */
type Offered = Pick<Worker, "slots" | "capabilities" | "zone" | "status" | "note"> & {
  readonly cpu: number | null;
  readonly memory: number | null;
  readonly worktrees: number | null;
};
type Offering = Pick<Worker, "capabilities" | "capabilitySet" | "offers">;
type Offer = Offering & Pick<Worker, "slots" | "zone" | "status" | "note" | "cpu" | "memory" | "worktrees">;

export function offerOf({ capabilities, cpu, memory, worktrees, ...others }: Offered): Offer {
  const orAny = (room: number | null): number => room ?? Number.POSITIVE_INFINITY;
  const room = { cpu: orAny(cpu), memory: orAny(memory), worktrees: orAny(worktrees) };
  return { ...others, ...offering(capabilities), ...room };
}

export function offering(capabilities: readonly string[]): Offering {
  return { capabilities, capabilitySet: new Set(capabilities), offers: capabilities.join(" ") };
}

type Joined = Pick<Worker, "id" | "kind" | "session" | "target" | "takes" | "offered" | "joinedAt">;

/** A worker that holds nothing yet. */
export function newWorker(joined: Joined, offer: Offer): Worker {
  const filter = joined.takes === null ? null : keyOfTakes(joined.takes);
  const held = { attempts: new AttemptSet<Attempt>(), usedCpu: 0, usedMemory: 0, usedWorktrees: 0, hold: null };
  return { ...joined, filter, ...offer, ...held, demands: [], leaf: 0 };
}

export function addWorker(fleet: Fleet, shapes: Shapes, worker: Worker): void {
  fleet.byId.set(worker.id, worker);
  fleet.order.splice(indexFor(fleet.order, worker.id), 0, worker);
  fleet.leaves.splice(leafOf(fleet.leaves, worker), 0, worker);
  enlist(fleet, shapes, worker);
  replant(fleet);
}

export function dropWorker(fleet: Fleet, shapes: Shapes, worker: Worker): void {
  dismiss(fleet, shapes, worker);
  fleet.byId.delete(worker.id);
  fleet.order.splice(indexFor(fleet.order, worker.id), 1);
  fleet.leaves.splice(worker.leaf, 1);
  replant(fleet);
}

/** Changes what a worker is (slots, capabilities, resources, status), not what it holds. */
export function reshapeWorker(fleet: Fleet, shapes: Shapes, worker: Worker, change: () => void): void {
  dismiss(fleet, shapes, worker);
  fleet.leaves.splice(worker.leaf, 1);
  change();
  fleet.leaves.splice(leafOf(fleet.leaves, worker), 0, worker);
  enlist(fleet, shapes, worker);
  replant(fleet);
}

/** The worker holds one attempt more (1), or one fewer (-1). */
export function carry(fleet: Fleet, shapes: Shapes, attempt: Attempt, by: 1 | -1): void {
  const { worker, task } = attempt;
  const wasOpen = isOpen(worker, fleet.room);
  const before = freeOf(worker);
  if (by === 1) worker.attempts.add(attempt);
  else worker.attempts.delete(attempt);
  worker.usedCpu += by * task.requirements.cpu;
  worker.usedMemory += by * task.requirements.memory;
  worker.usedWorktrees += by * task.requirements.worktrees;
  recount(fleet, shapes, worker, wasOpen, before);
}

/** Gives a worker a hold, or takes it away. */
export function setHold(fleet: Fleet, shapes: Shapes, worker: Worker, hold: Hold | null): void {
  const wasOpen = isOpen(worker, fleet.room);
  worker.hold = hold;
  recount(fleet, shapes, worker, wasOpen, freeOf(worker));
}

/** Brings up to date whatever depends on what a worker holds, by what it held before. */
function recount(fleet: Fleet, shapes: Shapes, worker: Worker, wasOpen: boolean, before: Room): void {
  const open = isOpen(worker, fleet.room);
  const free = freeOf(worker);
  for (const demand of worker.demands) {
    const did = wasOpen && leavesEnough(worker, before, demand);
    const does = open && leavesEnough(worker, free, demand);
    if (did !== does) setDemandFeasible(shapes, demand, demand.feasible + (does ? 1 : -1));
  }
  writeLeaf(fleet, worker);
  for (let node = (fleet.width + worker.leaf) >>> 1; node > 0; node >>>= 1) writeNode(fleet, node);
}

/** Brings every count up to date after placement.maxQueuePerWorker changed. */
export function setRoom(fleet: Fleet, shapes: Shapes, room: number): void {
  if (fleet.room === room) return;
  for (const worker of fleet.order) dismiss(fleet, shapes, worker);
  fleet.room = room;
  for (const worker of fleet.order) enlist(fleet, shapes, worker);
  replant(fleet);
}

function enlist(fleet: Fleet, shapes: Shapes, worker: Worker): void {
  if (worker.status === "ready") fleet.able++;
  if (worker.status !== "unreachable") {
    for (const capability of worker.capabilities) {
      fleet.offered.set(capability, (fleet.offered.get(capability) ?? 0) + 1);
    }
  }
  for (const demand of shapes.demands.values()) {
    if (!couldServe(worker, demand)) continue;
    worker.demands.push(demand);
    demand.capable++;
    if (hasRoomFor(worker, demand, fleet.room)) setDemandFeasible(shapes, demand, demand.feasible + 1);
  }
}

function dismiss(fleet: Fleet, shapes: Shapes, worker: Worker): void {
  if (worker.status === "ready") fleet.able--;
  if (worker.status !== "unreachable") {
    for (const capability of worker.capabilities) {
      const left = (fleet.offered.get(capability) ?? 1) - 1;
      if (left === 0) fleet.offered.delete(capability);
      else fleet.offered.set(capability, left);
    }
  }
  for (const demand of worker.demands) {
    demand.capable--;
    if (hasRoomFor(worker, demand, fleet.room)) setDemandFeasible(shapes, demand, demand.feasible - 1);
  }
  worker.demands = [];
}

/** The first index in the order whose id is not below this one. */
export const indexFor = (order: readonly ReadonlyWorker[], id: WorkerId): number => lowerBound(order, id, isBelow);
const isBelow = (worker: ReadonlyWorker, id: WorkerId): boolean => worker.id < id;

/** The first index among the leaves whose worker does not stand before this one. */
const leafOf = (leaves: readonly ReadonlyWorker[], worker: ReadonlyWorker): number =>
  lowerBound(leaves, worker, standsBefore);
const standsBefore = (left: ReadonlyWorker, right: ReadonlyWorker): boolean =>
  left.offers === right.offers ? left.id < right.id : left.offers < right.offers;

function replant(fleet: Fleet): void {
  let leaves = 1;
  while (leaves < fleet.leaves.length) leaves *= 2;
  fleet.width = leaves;
  Object.assign(fleet, emptyTree(leaves));
  for (const [leaf, worker] of fleet.leaves.entries()) {
    worker.leaf = leaf;
    fleet.offers[leaf] = bloomOf(worker.capabilities);
    writeLeaf(fleet, worker);
  }
  for (let node = leaves - 1; node > 0; node--) writeNode(fleet, node);
}

/** How many attempts it has; with no slot free it is heavier than any that has one. */
export const loadOf = (worker: ReadonlyWorker): number =>
  worker.attempts.size + (hasFreeSlot(worker) ? 0 : ALL_TAKEN / CAPABILITIES_SPAN);

function writeLeaf(fleet: Fleet, worker: Worker): void {
  const node = fleet.width + worker.leaf;
  const open = isOpen(worker, fleet.room);
  // Load first, then capabilities: the tie-break "fewest capabilities it does not need" is built in.
  fleet.lightest[node] = open
    ? loadOf(worker) * CAPABILITIES_SPAN + worker.capabilities.length
    : Number.POSITIVE_INFINITY;
  fleet.cpuMost[node] = open ? worker.cpu - worker.usedCpu : -1;
  fleet.cpuLeast[node] = open ? worker.cpu - worker.usedCpu : Number.POSITIVE_INFINITY;
  fleet.memoryMost[node] = open ? worker.memory - worker.usedMemory : -1;
  fleet.blooms[node] = open ? (fleet.offers[worker.leaf] as number) : 0;
}

function writeNode(fleet: Fleet, node: number): void {
  const left = node * 2;
  const right = left + 1;
  const { lightest, cpuMost, cpuLeast, memoryMost, blooms } = fleet;
  lightest[node] = Math.min(lightest[left] as number, lightest[right] as number);
  cpuMost[node] = Math.max(cpuMost[left] as number, cpuMost[right] as number);
  cpuLeast[node] = Math.min(cpuLeast[left] as number, cpuLeast[right] as number);
  memoryMost[node] = Math.max(memoryMost[left] as number, memoryMost[right] as number);
  blooms[node] = (blooms[left] as number) | (blooms[right] as number);
}

/** Whether anything below this node might have room for the demand, and is lighter than that. */
function mayFit(fleet: ReadonlyFleet, node: number, demand: ReadonlyDemand, below: number): boolean {
  return (
    (fleet.lightest[node] as number) < below &&
    (fleet.cpuMost[node] as number) >= demand.cpu &&
    (fleet.memoryMost[node] as number) >= demand.memory &&
    ((fleet.blooms[node] as number) & demand.bloom) === demand.bloom
  );
}

const fits = (
  fleet: ReadonlyFleet,
  worker: ReadonlyWorker | undefined,
  demand: ReadonlyDemand,
): worker is ReadonlyWorker =>
  worker !== undefined && couldServe(worker, demand) && hasRoomFor(worker, demand, fleet.room);

/** A search for the feasible worker that is best by the numbers of one of the tree's arrays. */
type Search = {
  readonly fleet: ReadonlyFleet;
  readonly demand: ReadonlyDemand;
  readonly costs: ReadonlyNumbers;
  /** Only among those that are lighter. */
  readonly below: number;
  best: ReadonlyWorker | null;
  bestCost: number;
};

/** The best there is, the first id among equals. */
function bestBy(
  fleet: ReadonlyFleet,
  demand: ReadonlyDemand,
  costs: ReadonlyNumbers,
  below: number = Number.POSITIVE_INFINITY,
): ReadonlyWorker | null {
  const search: Search = { fleet, demand, costs, below, best: null, bestCost: Number.POSITIVE_INFINITY };
  visit(search, 1, 0, fleet.width);
  return search.best;
}

/** Everything below `node`, whose leaves begin at index `low`. */
function visit(search: Search, node: number, low: number, span: number): void {
  const { fleet, demand, costs, below, best, bestCost } = search;
  const cost = costs[node] as number;
  if (cost > bestCost || !mayFit(fleet, node, demand, below)) return;
  if (cost === bestCost && best !== null && isBehind(fleet, low, span, best)) return;
  if (span === 1) {
    const worker = fleet.leaves[low];
    if (fits(fleet, worker, demand) && (cost < bestCost || best === null || worker.id < best.id)) {
      search.best = worker;
      search.bestCost = cost;
    }
    return;
  }
  const half = span / 2;
  const left = node * 2;
  const isRightBetter = (costs[left + 1] as number) < (costs[left] as number);
  if (isRightBetter) visit(search, left + 1, low + half, half);
  visit(search, left, low, half);
  if (!isRightBetter) visit(search, left + 1, low + half, half);
}

/** Whether all these leaves offer what the best so far offers and have later ids: none of them wins a tie. */
function isBehind(fleet: ReadonlyFleet, low: number, span: number, found: ReadonlyWorker): boolean {
  if (low <= found.leaf) return false;
  const last = fleet.leaves[Math.min(low + span, fleet.leaves.length) - 1];
  return last !== undefined && last.offers === found.offers;
}

export const leastLoaded = (fleet: ReadonlyFleet, demand: ReadonlyDemand): ReadonlyWorker | null =>
  pinned(fleet, demand) ?? bestBy(fleet, demand, fleet.lightest);
export const tightest = (fleet: ReadonlyFleet, demand: ReadonlyDemand): ReadonlyWorker | null =>
  pinned(fleet, demand) ?? bestBy(fleet, demand, fleet.cpuLeast, ALL_TAKEN) ?? bestBy(fleet, demand, fleet.cpuLeast);

/** The one worker that is waited for, without a search; null also where it is any of a zone. */
function pinned(fleet: ReadonlyFleet, demand: ReadonlyDemand): ReadonlyWorker | null {
  const worker = demand.pin === null ? undefined : workerOf(fleet, demand.pin);
  return fits(fleet, worker, demand) ? worker : null;
}

/** The first feasible worker at or after an index, going round once: one with a free slot, if there is any. */
export function firstFrom(fleet: ReadonlyFleet, demand: ReadonlyDemand, from: number): ReadonlyWorker | null {
  const { order, lightest } = fleet;
  const isAnyFree = (lightest[1] as number) < ALL_TAKEN;
  let first: ReadonlyWorker | null = null;
  for (let step = 0; step < order.length; step++) {
    const worker = order[(from + step) % order.length];
    if (!fits(fleet, worker, demand)) continue;
    if (!isAnyFree || hasFreeSlot(worker)) return worker;
    first ??= worker;
  }
  return first;
}
