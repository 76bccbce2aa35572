/**
 * Whether a kind of task can start.
 *
 * Tasks that ask for the same type, capabilities, resources, provider and locks, and that the same workers take, can
 * start under the same conditions, so they share one *shape*, and whether a shape is open is kept up to date as the
 * world changes instead of being worked out for each task. There are four causes that close a shape, and each has its
 * own bit set, because one flag for several causes loses a wake-up when the first of them ends: its type is at its
 * limit, its gate is held, one of its locks is taken, no worker has room.
 *
 * The part of a shape that concerns workers (capabilities, resources, whom it waits for) is a *demand*. A demand counts
 * the workers that could ever serve it and those that can now; the count changes only for the demands of the worker
 * that changed. Shapes that no task queues for are kept for a while and then swept, so that locks and tabs used once
 * leave nothing behind.
 */

import type { Pin } from "../base/brand.ts";
import { bitSet, hasBit, setAll, setBit } from "../collections/bit-set.ts";
import { addShape, dropShape, markAll, type ShapeSet, shapeSet, shapesIn } from "../collections/shape-set.ts";
import type { ReadonlyDemand, ReadonlyWorker } from "../model/read-only.ts";
import type { Room, UsedRoom } from "../model/room.ts";
import type {
  Attempt,
  Demand,
  GateUse,
  LockUse,
  Requirements,
  Shape,
  Shapes,
  TypeUse,
  Worker,
} from "../model/state.ts";
import { isMeantBy } from "./pin.ts";
import { UNFILTERED } from "./worker-filter.ts";

const IDLE_MAX = 1024;

export const newShapes = (): Shapes => ({
  byKey: new Map(),
  byId: [],
  demands: new Map(),
  types: new Map(),
  locks: new Map(),
  gates: new Map(),
  freeIds: [],
  idsUsed: 0,
  idle: 0,
  gatesHeld: 0,
  shutByType: bitSet(),
  shutByGate: bitSet(),
  shutByLock: bitSet(),
  shutOtherwise: bitSet(),
  shutByWorkers: bitSet(),
});

const demandKey = (
  { capabilities, cpu, memory, worktrees }: Requirements,
  pin: Pin | null,
  { refusedBy, treeAt }: OfTask,
): string =>
  `${cpu}|${memory}|${worktrees}|${treeAt === null ? "" : JSON.stringify(treeAt)}|` +
  `${pin === null ? "" : JSON.stringify(pin)}|${JSON.stringify(capabilities)}` +
  (refusedBy.length === 0 ? "" : `|${JSON.stringify(refusedBy)}`);

const shapeKey = (requirements: Requirements, pin: Pin | null, { refusedBy, treeAt }: OfTask): string => {
  const { type, capabilities, cpu, memory, worktrees, provider, locks } = requirements;
  return JSON.stringify([type, capabilities, cpu, memory, worktrees, provider, locks, treeAt, pin, ...refusedBy]);
};

/** What refuses the task, and which worker has its worktree. */
type OfTask = Pick<Demand, "refusedBy" | "treeAt">;
/** All workers that are known, and what may queue on one beyond its slots. */
type World = OfTask & { readonly workers: Iterable<Worker>; readonly room: number };

/** The shape of a task, made known if it is new. */
export function internShape(
  shapes: Shapes,
  requirements: Requirements,
  pin: Pin | null,
  world: World & { readonly typeLimit: (type: string) => number },
): Shape {
  const key = shapeKey(requirements, pin, world);
  const known = shapes.byKey.get(key);
  if (known !== undefined) return known;
  if (shapes.idle > IDLE_MAX && shapes.idle * 2 > shapes.byKey.size) sweep(shapes, world.workers);
  const id = shapes.freeIds.pop() ?? shapes.idsUsed++;
  const type = typeUse(shapes, requirements.type);
  const gate = requirements.provider === null ? null : gateUse(shapes, requirements.provider);
  const locks = requirements.locks.map((lock) => lockUse(shapes, lock));
  const demand = internDemand(shapes, requirements, pin, world);
  const shape: Shape = { id, key, type, demand, gate, locks, queued: 0 };
  shapes.byKey.set(key, shape);
  shapes.byId[id] = shape;
  shapes.idle++;
  for (const use of [type, demand, ...locks, ...(gate === null ? [] : [gate])]) {
    use.shapes++;
    addShape(use.mask, id);
  }
  setBit(shapes.shutByType, id, type.inFlight >= world.typeLimit(requirements.type));
  setBit(shapes.shutByGate, id, gate?.held === true);
  setBit(
    shapes.shutByLock,
    id,
    locks.some((lock) => lock.holder !== null),
  );
  setBit(shapes.shutByWorkers, id, demand.feasible === 0);
  refresh(shapes, id);
  return shape;
}

function useOf<Use>(uses: Map<string, Use>, key: string, make: () => Use): Use {
  let use = uses.get(key);
  if (use === undefined) {
    use = make();
    uses.set(key, use);
  }
  return use;
}

export const typeUse = (shapes: Shapes, type: string): TypeUse =>
  shapes.types.get(type) ?? useOf(shapes.types, type, () => ({ type, mask: shapeSet(), inFlight: 0, shapes: 0 }));
export const lockUse = (shapes: Shapes, key: string): LockUse =>
  useOf(shapes.locks, key, () => ({ key, mask: shapeSet(), holder: null, shapes: 0 }));
export const gateUse = (shapes: Shapes, name: string): GateUse =>
  useOf(shapes.gates, name, () => ({ name, mask: shapeSet(), held: false, shapes: 0 }));

function internDemand(shapes: Shapes, requirements: Requirements, pin: Pin | null, world: World): Demand {
  const { refusedBy, treeAt } = world;
  const key = demandKey(requirements, pin, world);
  const known = shapes.demands.get(key);
  if (known !== undefined) return known;
  const demand: Demand = {
    key,
    capabilities: requirements.capabilities,
    cpu: requirements.cpu,
    memory: requirements.memory,
    worktrees: requirements.worktrees,
    pin,
    treeAt,
    refusedBy,
    bloom: bloomOf(requirements.capabilities),
    mask: shapeSet(),
    shapes: 0,
    capable: 0,
    feasible: 0,
  };
  shapes.demands.set(key, demand);
  for (const worker of world.workers) {
    if (!couldServe(worker, demand)) continue;
    worker.demands.push(demand);
    demand.capable++;
    if (hasRoomFor(worker, demand, world.room)) demand.feasible++;
  }
  return demand;
}

/** FNV-1a over UTF-16 code units: named, stable, the same everywhere. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

export function bloomOf(capabilities: readonly string[]): number {
  let bloom = 0;
  for (const capability of capabilities) bloom |= 1 << (fnv1a(capability) & 31);
  return bloom;
}

/** Whether a worker would serve this demand if it had nothing else to do. */
export const couldServe = (worker: ReadonlyWorker, demand: Needed & Pick<ReadonlyDemand, "pin">): boolean =>
  (demand.pin === null || isMeantBy(demand.pin, worker)) && offers(worker, demand);

/** What a worker must have. */
export type Needed = Pick<Demand, "capabilities" | "cpu" | "memory" | "refusedBy">;

/** The same, whichever worker it waits for. */
export function offers(worker: ReadonlyWorker, demand: Needed): boolean {
  if (worker.status === "unreachable" || worker.status === "draining") return false;
  if (worker.slots < 1 || worker.cpu < demand.cpu || worker.memory < demand.memory) return false;
  for (const capability of demand.capabilities) if (!worker.capabilitySet.has(capability)) return false;
  return !demand.refusedBy.includes(worker.filter ?? UNFILTERED);
}

/** What a task takes from its worker while it runs. */
type Amounts = Readonly<Room>;
type Asked = Amounts & Pick<Demand, "treeAt">;

/** Whether a worker that could serve it has room now. `room` is what may queue on a worker beyond its slots. */
export const hasRoomFor = (worker: ReadonlyWorker, demand: Asked, room: number): boolean =>
  isOpen(worker, room) && leavesEnough(worker, freeOf(worker), demand);

/** Whether it has a slot for any task. */
export const isOpen = (worker: ReadonlyWorker, room: number): boolean => worker.hold === null && hasSlot(worker, room);

/** The same of one that may be held: it has a slot for the task it is held for. */
export const hasSlot = (worker: ReadonlyWorker, room: number): boolean =>
  worker.status === "ready" && worker.attempts.size < worker.slots + room;

/** Whether a task would begin there at once. Beyond that it waits: in its queue, or fetched ahead. */
export const hasFreeSlot = (worker: ReadonlyWorker): boolean =>
  worker.attempts.size < Math.min(worker.slots, worker.offered);

/** What of a worker is not taken. */
export const freeOf = (worker: Amounts & Readonly<UsedRoom>): Room => ({
  cpu: worker.cpu - worker.usedCpu,
  memory: worker.memory - worker.usedMemory,
  worktrees: worker.worktrees - worker.usedWorktrees,
});

/** Whether so much of a worker is enough. */
export const leavesEnough = (worker: Pick<Worker, "id">, free: Amounts, asked: Asked): boolean =>
  free.cpu >= asked.cpu && free.memory >= asked.memory && hasTreeFor(worker, free, asked);

/**
 * A worker at its limit of worktrees has room for all that want none, and for those whose tree it has already. That
 * passes, so it counts as room alone.
 */
export const hasTreeFor = (
  { id }: Pick<Worker, "id">,
  free: Amounts,
  { worktrees, treeAt }: Pick<Asked, "worktrees" | "treeAt">,
): boolean => worktrees === 0 || free.worktrees >= worktrees || treeAt === id;

export function setDemandFeasible(shapes: Shapes, demand: Demand, feasible: number): void {
  const wasShut = demand.feasible === 0;
  demand.feasible = feasible;
  if (wasShut !== (feasible === 0)) markAll(shapes.shutByWorkers, demand.mask, feasible === 0);
}

export function setTypeShut(shapes: Shapes, use: TypeUse, shut: boolean): void {
  markAll(shapes.shutByType, use.mask, shut);
  refreshAll(shapes, use.mask);
}

export function setGateHeld(shapes: Shapes, use: GateUse, held: boolean): void {
  if (use.held !== held) shapes.gatesHeld += held ? 1 : -1;
  use.held = held;
  markAll(shapes.shutByGate, use.mask, held);
  refreshAll(shapes, use.mask);
}

/** Takes a lock or gives it back; a shape stays shut while any of its locks is taken. */
export function setLockHolder(shapes: Shapes, use: LockUse, holder: Attempt | null): void {
  use.holder = holder;
  for (const id of shapesIn(use.mask)) {
    const taken = shapes.byId[id]?.locks.some((lock) => lock.holder !== null) === true;
    setBit(shapes.shutByLock, id, taken);
  }
  refreshAll(shapes, use.mask);
}

function refreshAll(shapes: Shapes, mask: ShapeSet): void {
  const { bits } = mask;
  if (bits === null) {
    for (const id of mask.few) refresh(shapes, id);
    return;
  }
  setAll(shapes.shutOtherwise, bits, true);
  const { shutOtherwise, shutByType, shutByGate, shutByLock } = shapes;
  for (let index = 0; index < bits.words.length; index++) {
    const word = bits.words[index] as number;
    if (word === 0) continue;
    const shut = (shutByType.words[index] ?? 0) | (shutByGate.words[index] ?? 0) | (shutByLock.words[index] ?? 0);
    shutOtherwise.words[index] = ((shutOtherwise.words[index] as number) & ~word) | (shut & word);
  }
}

function refresh({ shutOtherwise, shutByType, shutByGate, shutByLock }: Shapes, id: number): void {
  setBit(shutOtherwise, id, hasBit(shutByType, id) || hasBit(shutByGate, id) || hasBit(shutByLock, id));
}

/** Forgets every shape that no task queues for, and the demands, locks and types only they used. */
function sweep(shapes: Shapes, workers: Iterable<Worker>): void {
  for (const shape of shapes.byKey.values()) {
    if (shape.queued > 0) continue;
    shapes.byKey.delete(shape.key);
    shapes.byId[shape.id] = undefined;
    shapes.freeIds.push(shape.id);
    for (const use of [shape.type, shape.demand, ...shape.locks, ...(shape.gate === null ? [] : [shape.gate])]) {
      use.shapes--;
      dropShape(use.mask, shape.id);
    }
    for (const set of [
      shapes.shutByType,
      shapes.shutByGate,
      shapes.shutByLock,
      shapes.shutOtherwise,
      shapes.shutByWorkers,
    ]) {
      setBit(set, shape.id, false);
    }
  }
  shapes.idle = 0;
  for (const [key, use] of shapes.types) if (use.shapes === 0 && use.inFlight === 0) shapes.types.delete(key);
  for (const [key, use] of shapes.locks) if (use.shapes === 0 && use.holder === null) shapes.locks.delete(key);
  for (const [key, use] of shapes.gates) if (use.shapes === 0 && !use.held) shapes.gates.delete(key);
  for (const [key, demand] of shapes.demands) if (demand.shapes === 0) shapes.demands.delete(key);
  for (const worker of workers) worker.demands = worker.demands.filter((demand) => demand.shapes > 0);
}
