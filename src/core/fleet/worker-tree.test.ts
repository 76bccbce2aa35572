/**
 * The tree over workers finds what a look at each of them finds.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Instant, WorkerId } from "../base/brand.ts";
import { AttemptSet } from "../collections/attempt-set.ts";
import type { Attempt, Demand, Fleet, Hold, Requirements, Shapes, Worker } from "../model/state.ts";
import { couldServe, hasRoomFor, internShape, newShapes } from "./shape.ts";
import {
  addWorker,
  carry,
  dropWorker,
  firstFrom,
  indexFor,
  leastLoaded,
  newFleet,
  reshapeWorker,
  setHold,
  setRoom,
  tightest,
} from "./worker-tree.ts";

const CAPABILITIES = ["gpu", "node", "arm"];
const STATUSES = ["ready", "ready", "ready", "overloaded", "draining", "unreachable"] as const;
const UNLIMITED = Number.POSITIVE_INFINITY;

type Move = { readonly what: number; readonly who: number; readonly number: number };
const moves: fc.Arbitrary<Move[]> = fc.array(fc.record({ what: fc.nat(7), who: fc.nat(20), number: fc.nat(1000) }), {
  maxLength: 40,
  size: "max",
});

const someOf = (number: number): string[] => CAPABILITIES.filter((_, index) => ((number >> index) & 1) === 1).sort();

function settingsOf(
  number: number,
): Pick<Worker, "slots" | "capabilities" | "capabilitySet" | "offers" | "cpu" | "memory" | "worktrees" | "status"> {
  const capabilities = someOf(number);
  return {
    ...{ slots: 1 + (number % 3), capabilities, capabilitySet: new Set(capabilities) },
    offers: capabilities.join(" "),
    ...{ cpu: [1000, 2000, UNLIMITED][number % 3] as number, memory: [100, UNLIMITED][number % 2] as number },
    worktrees: [0, 1, 2, UNLIMITED][(number >> 2) % 4] as number,
    status: STATUSES[number % STATUSES.length] as Worker["status"],
  };
}

function newWorker(id: string, number: number): Worker {
  return {
    ...{ id: id as WorkerId, kind: "pull", session: "", zone: null, joinedAt: 0 as Instant, ...settingsOf(number) },
    ...{ target: null, takes: null, filter: null, note: null, offered: 1 + (number % 2) },
    ...{ attempts: new AttemptSet(), usedCpu: 0, usedMemory: 0, usedWorktrees: 0, hold: null, demands: [], leaf: 0 },
  };
}

/** All demands there are in these tests, known to the shapes before the first worker comes. */
function demandsIn(shapes: Shapes): Demand[] {
  const world = { workers: [], typeLimit: () => UNLIMITED, room: 0, refusedBy: [], treeAt: null };
  const requirements = [0, 500, 1500].flatMap((cpu) => [0, 3, 4].map((some) => ({ cpu, capabilities: someOf(some) })));
  return requirements.map(({ cpu, capabilities }, index) => {
    const requirements = {
      type: "code",
      capabilities,
      cpu,
      memory: index % 2 === 0 ? 0 : 60,
      worktrees: index % 4 < 2 ? 0 : 1,
      provider: null,
      locks: [],
    };
    return internShape(shapes, requirements as unknown as Requirements, index === 8 ? ("w3" as WorkerId) : null, world)
      .demand;
  });
}

type World = { readonly fleet: Fleet; readonly shapes: Shapes; readonly demands: readonly Demand[] };

function make(world: World, { what, who, number }: Move): void {
  const { fleet, shapes } = world;
  const worker = fleet.byId.get(`w${who}` as WorkerId);
  if (worker === undefined) return addWorker(fleet, shapes, newWorker(`w${who}`, number));
  const requirements = { cpu: (number % 3) * 400, memory: (number % 2) * 50, worktrees: (number >> 1) % 2 };
  const attempt = { number, worker, task: { requirements } } as Attempt;
  switch (what) {
    case 0:
      return dropWorker(fleet, shapes, worker);
    case 1:
      return reshapeWorker(fleet, shapes, worker, () => Object.assign(worker, settingsOf(number)));
    case 2:
      return setHold(fleet, shapes, worker, worker.hold === null ? ({} as Hold) : null);
    case 3:
      return setRoom(fleet, shapes, number % 3);
    default:
      if (worker.attempts.size <= worker.slots) return carry(fleet, shapes, attempt, 1);
      for (const held of worker.attempts) carry(fleet, shapes, held, -1);
  }
}

const lowest = (workers: readonly Worker[], ...costs: ((worker: Worker) => number)[]): Worker | null =>
  workers.toSorted((left, right) => {
    for (const cost of costs) if (cost(left) !== cost(right)) return cost(left) - cost(right);
    return left.id < right.id ? -1 : 1;
  })[0] ?? null;

function check({ fleet, demands }: World): void {
  const all = [...fleet.byId.values()].sort((left, right) => (left.id < right.id ? -1 : 1));
  assert.deepEqual(fleet.order, all);
  assert.equal(fleet.able, all.filter(({ status }) => status === "ready").length);
  for (const demand of demands) {
    const capable = all.filter((worker) => couldServe(worker, demand));
    const feasible = capable.filter((worker) => hasRoomFor(worker, demand, fleet.room));
    const withTree = feasible.filter(({ worktrees, usedWorktrees }) => worktrees > usedWorktrees);
    if (demand.worktrees > 0) assert.deepEqual(feasible, withTree);
    assert.equal(demand.capable, capable.length);
    assert.equal(demand.feasible, feasible.length);
    const load = (worker: Worker): number => worker.attempts.size;
    const free = feasible.filter(({ attempts, slots, offered }) => attempts.size < Math.min(slots, offered));
    const meant = free.length > 0 ? free : feasible;
    assert.equal(leastLoaded(fleet, demand)?.id, lowest(meant, load, ({ capabilities }) => capabilities.length)?.id);
    assert.equal(tightest(fleet, demand)?.id, lowest(meant, ({ cpu, usedCpu }) => cpu - usedCpu)?.id);
    for (const index of [0, 1, all.length >> 1, all.length]) {
      const round = [...all.slice(index), ...all.slice(0, index)];
      assert.equal(firstFrom(fleet, demand, index)?.id, round.find((worker) => meant.includes(worker))?.id);
    }
  }
  for (const [index, worker] of all.entries()) assert.equal(indexFor(fleet.order, worker.id), index);
}

test("the least loaded, the tightest and the next in turn are those a look at each worker finds", () => {
  fc.assert(
    fc.property(moves, (given) => {
      const shapes = newShapes();
      const world: World = { fleet: newFleet(), shapes, demands: demandsIn(shapes) };
      for (const move of given) {
        make(world, move);
        check(world);
      }
    }),
    { numRuns: 400 },
  );
});
