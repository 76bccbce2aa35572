/**
 * Whatever is lost, late, doubled or dead between workers and the engine: nothing is lost, nothing is done twice.
 *
 * Histories of submits, cancels, restarts of the server, deaths of workers and event loops that stand still are played
 * against the real engine, with a fault for many of the calls. Then the faults end, and all must come to a good end.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createFleet, FAST, type Fault, type Fleet, type Work } from "../../../test/kits/worker-fleet.ts";
import { hasEnded } from "../../core/model/state.ts";

const CASES = process.env.DROVER_QUICK === undefined ? 300 : 25;
const CALM_MS_MAX = 600_000;
const seed = Number(process.env.DROVER_SEED ?? (process.env.CI === "true" ? 20_261_115 : Date.now() % 0x7fff_ffff));
console.log(`seed ${seed} (DROVER_SEED=${seed} repeats it)`);

const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Fault>({ kind: "none" }) },
  fc.constantFrom<Fault>(
    { kind: "lose-request" },
    { kind: "lose-answer" },
    { kind: "lose-answer" },
    { kind: "black-hole" },
    { kind: "twice" },
  ),
  fc.record({ kind: fc.constantFrom("slow-request", "slow-answer"), ms: fc.nat(12_000) }) as fc.Arbitrary<Fault>,
);
type Step =
  | { readonly do: "submit"; readonly work: Work }
  /** So many that are over in a moment: more than there are slots, so that some are fetched ahead. */
  | { readonly do: "burst"; readonly count: number }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "cancel" | "kill" | "drain"; readonly which: number }
  | { readonly do: "cut"; readonly which: number; readonly way: "requests" | "answers"; readonly ms: number }
  | { readonly do: "freeze"; readonly which: number; readonly ms: number }
  | { readonly do: "restart"; readonly downMs: number };
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      work: fc.record({
        ms: fc.oneof(fc.nat(50), fc.integer({ min: 5000, max: 30_000 })),
        kind: fc.constantFrom("plain", "plain", "fails-once", "stubborn") as fc.Arbitrary<Work["kind"]>,
      }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.oneof(fc.nat(300), fc.nat(15_000)) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("burst" as const), count: fc.integer({ min: 5, max: 40 }) }) },
  fc.record({ do: fc.constantFrom("cancel" as const, "kill" as const, "drain" as const), which: fc.nat(9) }),
  {
    weight: 3,
    arbitrary: fc.record({
      ...{ do: fc.constant("cut" as const), which: fc.nat(2), ms: fc.integer({ min: 3000, max: 30_000 }) },
      way: fc.constantFrom("requests" as const, "answers" as const),
    }),
  },
  fc.record({ do: fc.constant("freeze" as const), which: fc.nat(2), ms: fc.integer({ min: 500, max: 50_000 }) }),
  fc.record({ do: fc.constant("restart" as const), downMs: fc.oneof(fc.nat(2000), fc.nat(20_000)) }),
);
const history = fc.record({
  perReadingMs: fc.constantFrom<number>(1, FAST),
  slots: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 4 }),
  faults: fc.array(fault, { maxLength: 80, size: "max" }),
  steps: fc.array(step, { minLength: 3, maxLength: 30, size: "max" }),
});

/**
 * A handler that was cancelled does not stop: its event loop stands still. The server gives its slot to another task,
 * which must not begin there once another worker has it.
 */
const slotNeverFree = {
  perReadingMs: 1,
  slots: [1, 1],
  faults: [],
  steps: [
    { do: "submit", work: { ms: 5000, kind: "plain" } },
    { do: "freeze", which: 0, ms: 500 },
    { do: "cancel", which: 0 },
    { do: "wait", ms: 13 },
    { do: "submit", work: { ms: 11_924, kind: "plain" } },
    { do: "freeze", which: 0, ms: 41_995 },
    { do: "cut", which: 0, ms: 3000, way: "requests" },
    { do: "submit", work: { ms: 5000, kind: "plain" } },
    { do: "cut", which: 0, ms: 3000, way: "requests" },
  ] satisfies Step[],
};

/** Answers the ids of what was submitted, and which of these somebody cancelled. */
async function play(fleet: Fleet, steps: readonly Step[]): Promise<{ ids: string[]; cancelled: Set<string> }> {
  const ids: string[] = [];
  const cancelled = new Set<string>();
  for (const one of steps) {
    if (one.do === "submit") {
      const id = `t${ids.length}`;
      ids.push(id);
      await fleet.drover().submit({ id, agentId: "ann", action: "go", params: one.work, maxAttempts: 5 });
    } else if (one.do === "burst") {
      const tasks = Array.from({ length: one.count }, (_, index) => ({
        ...{ id: `t${ids.length + index}`, action: "go", params: { ms: 0, kind: "plain" }, maxAttempts: 5 },
      }));
      ids.push(...tasks.map(({ id }) => id));
      await fleet.drover().submitBatch({ agentId: "ann", tasks });
    } else if (one.do === "wait") await fleet.clock.advance(one.ms);
    else if (one.do === "restart") {
      await fleet.takeDown();
      await fleet.clock.advance(one.downMs);
      await fleet.bringUp();
    } else if (one.do === "cancel") {
      const id = ids[one.which % Math.max(1, ids.length)];
      const isCancelled =
        id !== undefined &&
        (await fleet
          .drover()
          .cancel(id)
          .then(
            () => true,
            () => false,
          ));
      if (isCancelled) cancelled.add(id);
    } else {
      const worker = fleet.workers.filter(({ isDead }) => !isDead)[one.which];
      if (worker === undefined) continue;
      if (one.do === "cut") fleet.cut(worker, one.way, one.ms);
      else if (one.do === "freeze") fleet.freeze(worker, one.ms);
      else {
        if (one.do === "kill") fleet.kill(worker);
        else worker.connection.receive({ type: "drain" });
        fleet.addWorker(1);
      }
    }
    await fleet.settle();
  }
  return { ids, cancelled };
}

async function untilQuiet(fleet: Fleet): Promise<void> {
  for (let ms = 0; ms < CALM_MS_MAX; ms += 5000) {
    if ([...fleet.drover().state.tasks.values()].every(hasEnded)) return;
    await fleet.clock.advance(5000);
  }
}

test("no task is lost, none is run by two at once, every result counts once", async () => {
  const total = { fetched: 0, given: 0 };
  const law = fc.asyncProperty(history, async ({ perReadingMs, slots, faults, steps }) => {
    const fleet = await createFleet(faults, perReadingMs);
    for (const count of slots) fleet.addWorker(count);
    const { ids, cancelled } = await play(fleet, steps);
    fleet.calm();
    await untilQuiet(fleet);
    assert.deepEqual(fleet.clashes, [], "two worked on one task at the same time");
    const done = await fleet.done();
    for (const id of ids) {
      const { state } = await fleet.drover().task(id);
      assert.equal(state, cancelled.has(id) ? "cancelled" : "done", `${id}: ${fleet.warnings.join("; ")}`);
      assert.equal(done.get(id) ?? 0, cancelled.has(id) ? 0 : 1, `${id} is done once`);
    }
    const alive = fleet.workers.filter(({ isDead }) => !isDead);
    for (const { connection } of alive) connection.receive({ type: "drain" });
    await fleet.clock.advance(80_000);
    assert.ok(
      alive.every(({ hasLeft }) => hasLeft),
      "all have left",
    );
    total.fetched += fleet.ahead().fetched;
    total.given += fleet.ahead().given;
    await fleet.takeDown();
  });
  const endOnFailure = process.env.DROVER_QUICK !== undefined;
  await fc.assert(law, { seed, numRuns: CASES, endOnFailure, examples: [[slotNeverFree]] });
  assert.ok(total.fetched > 0 && total.given > 0, `work was fetched ahead, and given back: ${JSON.stringify(total)}`);
});
