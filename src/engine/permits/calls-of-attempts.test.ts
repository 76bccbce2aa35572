/**
 * Calls of an attempt that is over: those that wait leave the line, those that are out come back, at once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type HandWorker, join, kitWith, one, submit } from "../../../test/kits/hand-worker.ts";
import type { TestDrover } from "../../testing/index.ts";

const CONFIG = {
  gates: { default: { maxConcurrent: 1, tokens: { perMinute: 10_000 } } },
  workers: { lease: 10_000, killGrace: 2000 },
};
const GIVEN_UP_AFTER_MS = 12_001;

const ends: { name: string; more?: object; end(kit: TestDrover, ann: HandWorker): Promise<unknown> }[] = [
  { name: "its worker is lost", end: ({ clock }) => clock.advance(GIVEN_UP_AFTER_MS) },
  { name: "its worker leaves", end: ({ drover }) => drover.remote.leave("ann") },
  { name: "its worker joins anew", end: (kit) => join(kit) },
  { name: "its worker does not have it any more", end: (_, ann) => ann.sync({ running: [] }) },
  {
    name: "its task was cancelled and its worker says nothing",
    end: async ({ drover, clock }) => {
      await drover.cancel("t");
      await clock.advance(GIVEN_UP_AFTER_MS);
    },
  },
  {
    name: "it stopped because its task was cancelled",
    end: async ({ drover }, ann) => {
      await drover.cancel("t");
      await ann.sync({ results: [{ ...one("t"), outcome: "cancelled" }] });
    },
  },
  {
    name: "its time was over and its worker says nothing",
    more: { timeoutMs: 1000 },
    end: async ({ clock }, ann) => {
      await clock.advance(1000);
      await ann.sync();
      await clock.advance(GIVEN_UP_AFTER_MS);
    },
  },
  ...(["done", "failed", "requeue"] as const).map((outcome) => ({
    name: `it ended as ${outcome} and settled nothing`,
    end: (_: TestDrover, ann: HandWorker) => ann.sync({ results: [{ ...one("t"), outcome }] }),
  })),
];

for (const { name, more, end } of ends) {
  test(`T17 an attempt takes its calls along when ${name}`, async () => {
    const kit = await kitWith(CONFIG);
    const { drover } = kit;
    const ann = await join(kit);
    await submit(kit, "t", more);
    await ann.sync({ running: [] });
    await ann.sync({ running: [one("t")] });
    assert.equal((await drover.permits.ask({ gate: "g", id: "out", tokens: 700, ...one("t") })).status, "granted");
    const waiting = drover.permits.ask({ gate: "g", id: "line", waitMs: 60_000, ...one("t") });
    const refused = assert.rejects(waiting, /no permit line/);
    const other = drover.permits.ask({ gate: "g", id: "other", waitMs: 60_000 });
    await kit.settle();
    assert.equal((await drover.gate("g")).queued, 2);
    await end(kit, ann);
    await kit.settle();
    assert.deepEqual([...drover.state.permits.keys()], ["other"]);
    await refused;
    assert.equal((await other).status, "granted");
    const { running, queued, stats } = await drover.gate("g");
    assert.deepEqual([running, queued, stats.scheduled, stats.completed], [1, 0, 2, 0]);
    const [perMinute] = drover.state.gates.get("g" as never)?.tokens.values() ?? [];
    assert.equal(perMinute?.total(kit.clock.now()), 700);
    await assert.rejects(drover.permits.settle("out"), /no permit out/);
    await drover.close();
  });
}

test("a call that a local handler does not wait for ends with its attempt", async () => {
  const kit = await kitWith(CONFIG);
  const { drover } = kit;
  await drover.permits.ask({ gate: "g", id: "first" });
  const calls: Promise<unknown>[] = [];
  await drover.worker({}, (_task, { withPermit }) => {
    calls.push(
      assert.rejects(
        withPermit("g", () => "answered"),
        /no permit p\d+ is queued or held/,
      ),
    );
  });
  await submit(kit, "t");
  await drover.ended("t");
  await kit.settle();
  assert.equal(calls.length, 1);
  await Promise.all(calls);
  assert.deepEqual([...drover.state.permits.keys()], ["first"]);
  await drover.close();
});
