import assert from "node:assert/strict";
import { test } from "node:test";
import { join, kitWith, one, submit } from "../../../test/kits/hand-worker.ts";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { fewTurns } from "../../../test/kits/waits.ts";
import type { HandClock } from "../../std/hand-clock.ts";
import { createTestDrover } from "../../testing/index.ts";

test("C15 a silent worker is given up after its lease, and its word does not count any more", async () => {
  const kit = await kitWith({ workers: { lease: "10s" } });
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  await kit.clock.advance(9999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(1);
  assert.equal((await kit.drover.task("t")).state, "queued");
  assert.equal((await kit.drover.workers())[0]?.status, "unreachable");
  const late = await ann.sync({ results: [{ ...one("t"), outcome: "done" }] });
  assert.deepEqual(late.results, [{ ...one("t"), accepted: false, code: "stale_attempt" }]);
  // It is back under its old session, and gets the task anew.
  assert.equal(late.assignments[0]?.attempt ?? (await ann.sync()).assignments[0]?.attempt, 2);
  await kit.drover.close();
});

test("a worker that comes back is told to stop what it no longer holds", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  await kit.clock.advance(10_000);
  const told = { running: [one("t")], want: 0, waitMs: 30_000 };
  assert.deepEqual((await ann.sync(told)).cancel, [one("t")]);
  // While it is busy with that it is not told so in a tight loop.
  const again = ann.sync(told);
  assert.equal(await Promise.race([again, kit.settle()]), undefined);
  await kit.clock.advance(1000);
  assert.deepEqual((await again).cancel, [one("t")]);
  await kit.drover.close();
});

test("D4 an event loop that stood still grants every worker a full lease", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  await ann.sync({ running: [one("t")] });
  const now = kit.clock.now();
  await kit.clock.set(now + 60_000);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(9999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(1);
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.close();
});

test("a clock that is set back neither ends a lease nor makes it endless", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync({});
  await ann.sync({ running: [one("t")] });
  await kit.clock.set(kit.clock.now() - 3_600_000);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(3_600_000 + 12_000);
  assert.notEqual((await kit.drover.task("t")).state, "running");
  await kit.drover.close();
});

for (const [way, byMs] of [
  ["back", -86_400_000],
  ["ahead", 86_400_000],
] as const)
  test(`a wall clock that is set ${way} by a day neither shortens a lease nor grants another`, async () => {
    const kit = await kitWith({ workers: { lease: "10s" } });
    const ann = await join(kit);
    await submit(kit, "t");
    await ann.sync();
    kit.clock.setWall(kit.clock.now() + byMs);
    const { leaseUntil } = await ann.sync({ running: [one("t")] });
    assert.equal(Date.parse(leaseUntil), kit.clock.now() + 10_000, "dates are those of the wall clock");
    await kit.clock.advance(9999);
    assert.equal((await kit.drover.task("t")).state, "running");
    await kit.clock.advance(1);
    assert.equal((await kit.drover.task("t")).state, "queued");
    await kit.drover.close();
  });

test("a clock that is set back holds up nothing that is to be said again, nor one that declines", async () => {
  const kit = await kitWith();
  const ann = await join(kit, { slots: 2 });
  await submit(kit, "t");
  assert.equal((await ann.sync({ running: [] })).assignments.length, 1);
  await kit.clock.set(kit.clock.now() - 3_600_000);
  // The answer was lost, and a poll that waits hears it again within a second or two.
  const again = ann.sync({ running: [], waitMs: 5000 });
  await kit.clock.advance(2000);
  assert.equal((await Promise.race([again, kit.settle()]))?.assignments.length, 1);
  for (let seconds = 0; seconds < 30; seconds++) {
    await ann.sync({ running: [] });
    await kit.clock.advance(1000);
  }
  await ann.sync({ running: [] });
  assert.equal((await ann.sync({ running: [] })).assignments[0]?.attempt, 2);
  await kit.drover.close();
});

test("an answer that was held renews the lease once more, and says how long it was held", async () => {
  const kit = await kitWith({ workers: { lease: "10s" } });
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  const held = ann.sync({ running: [one("t")], want: 0, waitMs: 2500 });
  await kit.clock.advance(2500);
  const { heldMs, leaseUntil } = await held;
  assert.equal(heldMs, 2500);
  assert.equal(Date.parse(leaseUntil), kit.clock.now() + 10_000);
  assert.equal((await ann.sync({ running: [one("t")], want: 0 })).heldMs, undefined);
  await kit.clock.advance(9999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(1);
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.close();
});

test("one that was given up while its sync waited for the disk is not given another lease by the answer", async () => {
  const hand = createLogInHand();
  const kit = await createTestDrover({ log: hand.log, config: { workers: { lease: "10s" } } });
  const ann = await join(kit);
  await ann.sync();
  hand.hold();
  const held = ann.sync({ note: "new", waitMs: 2500 });
  for (let count = 0; count < 20; count++) {
    (kit.clock as HandClock).turn(500);
    await fewTurns();
  }
  hand.release();
  assert.equal((await held).heldMs, undefined);
  assert.equal((await kit.drover.workers())[0]?.status, "unreachable");
  await kit.drover.close();
});

test("one that has gone while its sync was held is not given another lease", async () => {
  const kit = await kitWith({ workers: { lease: "10s" } });
  const ann = await join(kit);
  await submit(kit, "t");
  await ann.sync();
  const gone = new AbortController();
  const held = ann.sync({ running: [one("t")], want: 0, waitMs: 2500 }, { signal: gone.signal });
  await kit.clock.advance(1000);
  gone.abort();
  await held.catch(() => {});
  await kit.clock.advance(8999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(1);
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.close();
});

test("a lease that was made shorter while a sync was held is the one that its answer tells", async () => {
  const kit = await kitWith({ workers: { lease: "10s" } });
  const ann = await join(kit);
  const held = ann.sync({ want: 0, waitMs: 2500 });
  await kit.clock.advance(2000);
  await kit.drover.reload({ workers: { lease: "1s" } });
  await kit.clock.advance(500);
  assert.equal((await held).leaseMs, 1000);
  await kit.drover.close();
});

test("a lease that is changed binds from the next sync on, and takes back nothing that was granted", async () => {
  const kit = await kitWith({ workers: { lease: "10s" } });
  const ann = await join(kit);
  await submit(kit, "t");
  assert.equal((await ann.sync()).leaseMs, 10_000);
  await kit.drover.reload({ workers: { lease: "1s" } });
  const { leaseMs } = await ann.sync({ running: [one("t")] });
  assert.equal(leaseMs, 1000);
  // It may not have heard of it: its answer may be lost.
  await kit.clock.advance(9999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await ann.sync({ running: [one("t")] });
  await kit.clock.advance(999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.clock.advance(1);
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.reload({ workers: { lease: "1m" } });
  assert.equal((await ann.sync()).leaseMs, 60_000);
  await ann.sync({ running: [one("t", 2)] });
  await kit.clock.advance(59_999);
  assert.equal((await kit.drover.task("t")).state, "running");
  await kit.drover.close();
});

test("a timeout binds also where the worker never says that it runs", async () => {
  const kit = await kitWith({ workers: { lease: "10s" } });
  const ann = await join(kit);
  await submit(kit, "t", { timeoutMs: 1000, maxAttempts: 1 });
  for (let seconds = 0; seconds < 11; seconds++) {
    assert.equal((await ann.sync()).assignments.length, 1);
    await kit.clock.advance(1000);
  }
  assert.deepEqual((await ann.sync()).assignments, []);
  assert.equal((await kit.drover.task("t")).error, "timed out after 1000 ms");
  await kit.drover.close();
});

test("an assignment that a worker with room never names is given to somebody else in the end", async () => {
  const kit = await kitWith();
  const ann = await join(kit, { slots: 2 });
  await submit(kit, "t");
  for (let seconds = 0; seconds < 30; seconds++) {
    await ann.sync({ running: [] });
    await kit.clock.advance(1000);
  }
  assert.equal((await kit.drover.task("t")).attempt, 1);
  await ann.sync({ running: [] });
  assert.equal((await ann.sync({ running: [] })).assignments[0]?.attempt, 2);
  await kit.drover.close();
});

test("a worker that was told to drain still drains when it comes back from silence", async () => {
  const kit = await kitWith();
  const ann = await join(kit);
  await kit.drover.remote.drain("ann");
  await kit.clock.advance(20_000);
  await submit(kit, "t");
  const back = await ann.sync();
  assert.deepEqual([back.assignments, back.drain], [[], true]);
  await kit.drover.close();
});
