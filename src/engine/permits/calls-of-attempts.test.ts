/**
 * Calls of an attempt that is over: those that wait leave the line, those that are out come back, at once. What it asks
 * for later counts for no other, also if a later task has its id.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type HandWorker, join, kitWith, one, submit } from "../../../test/kits/hand-worker.ts";
import type { TestDrover } from "../../testing/index.ts";
import type { TaskContext } from "../index.ts";

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

const FORGETS = { ...CONFIG, scheduler: { resultTtl: "1s", remember: "2s" } };
const FORGOTTEN_AFTER_MS = 3500;

test("an attempt of a forgotten task gets no permit on the account of a later one of its id", async () => {
  const kit = await kitWith(FORGETS);
  const { drover, clock } = kit;
  const ann = await join(kit);
  const given = async () => {
    await submit(kit, "t");
    const { taskSeq = 0 } = (await ann.sync()).assignments[0] ?? {};
    await ann.sync({ running: [{ ...one("t"), taskSeq }] });
    return { ...one("t"), taskSeq };
  };
  const first = await given();
  await ann.sync({ results: [{ ...first, outcome: "done" }] });
  await clock.advance(FORGOTTEN_AFTER_MS);
  assert.equal(drover.state.tombstones.size, 0);
  const second = await given();
  await assert.rejects(drover.permits.ask({ gate: "g", id: "old", tokens: 7, ...first }), { code: "stale_attempt" });
  assert.equal(drover.state.permits.size, 0);
  assert.equal((await drover.permits.ask({ gate: "g", id: "new", ...second })).status, "granted");
  await drover.permits.settle("new");
  assert.equal((await drover.permits.ask({ gate: "g", id: "unsaid", ...one("t") })).status, "granted");
  await assert.rejects(drover.permits.ask({ gate: "g", taskSeq: 1 }), /taskSeq only beside them/);
  await drover.close();
});

test("a local handler whose task is forgotten has nothing to say for a later one of its id", async () => {
  const kit = await kitWith(FORGETS);
  const { drover, clock } = kit;
  const contexts: TaskContext[] = [];
  const over = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await drover.worker({}, async (_task, context) => {
    contexts.push(context);
    await over[contexts.length - 1]?.promise;
  });
  await submit(kit, "t");
  over[0]?.resolve();
  await drover.ended("t");
  await clock.advance(FORGOTTEN_AFTER_MS);
  await submit(kit, "t");
  await kit.settle();
  const [old, live] = contexts as [TaskContext, TaskContext];
  const { seq } = drover.state;
  assert.equal(old.token, null);
  old.usage({ inputTokens: 5, outputTokens: 0 });
  await assert.rejects(
    old.withPermit("g", () => "answered"),
    { code: "stale_attempt" },
  );
  await assert.rejects(old.submit({ action: "child" }), { code: "stale_attempt" });
  await kit.settle();
  assert.equal(drover.state.seq, seq, "nothing was written");
  assert.equal(await live.withPermit("g", () => "answered"), "answered");
  assert.notEqual(live.token, null);
  over[1]?.resolve();
  await drover.ended("t");
  await drover.close();
});
