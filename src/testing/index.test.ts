/**
 * The hand-turned clock itself.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../std/hand-clock.ts";
import { createTestDrover } from "./index.ts";

const once = { keepAlive: false };

test("alarms ring at their own instants, earliest first, those of one instant in the order they were set", async () => {
  const clock = createHandClock({ at: 100 });
  const rung: string[] = [];
  const ring = (name: string) => () => void rung.push(`${name} ${clock.now()}`);
  clock.ringAt(130, ring("late"), once);
  clock.ringAt(110, ring("first"), once);
  clock.ringAt(110, ring("second"), once);
  clock.ringAt(90, ring("overdue"), once);
  clock.ringAt(120, ring("called off"), once)();
  clock.ringAt(110, () => clock.ringAt(115, ring("set on the way"), once), once);
  await clock.advance(29);
  assert.deepEqual(rung, ["overdue 100", "first 110", "second 110", "set on the way 115"]);
  assert.equal(clock.now(), 129);
  await clock.advance(1);
  assert.equal(rung.at(-1), "late 130");
});

test("set jumps: what is due rings once, at the instant it was set to", async () => {
  const clock = createHandClock({ at: 0 });
  const rung: number[] = [];
  for (const at of [5, 10]) clock.ringAt(at, () => void rung.push(clock.now()), once);
  await clock.set(1000);
  assert.deepEqual(rung, [1000, 1000]);
  await clock.set(3);
  assert.equal(clock.now(), 3);
});

test("turns run in the order they were put off, and promises settle between them", async () => {
  const clock = createHandClock({ at: 0 });
  const { settle } = clock;
  const order: string[] = [];
  clock.defer(() => {
    order.push("one");
    void Promise.resolve().then(() => order.push("after one"));
    clock.defer(() => void order.push("three"));
  });
  await Promise.resolve();
  assert.deepEqual(order, [], "never at once");
  await settle();
  assert.deepEqual(order, ["one", "after one", "three"]);
});

test("two runs of one story write the same log", async () => {
  const hashes = new Set<string>();
  for (let run = 0; run < 2; run++) {
    await using kit = await createTestDrover({ at: 1000 });
    await kit.drover.worker({ slots: 2 }, ({ taskId }) => taskId);
    for (const id of ["a", "b"]) await kit.drover.submit({ id, agentId: "ann", action: "x", notBefore: 5000 });
    await kit.drover.cancel("a");
    await kit.clock.advance(10_000);
    hashes.add((await kit.drover.verify()).head.hash);
  }
  assert.equal(hashes.size, 1);
});

test("time is whole milliseconds from 0", async () => {
  for (const bad of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => createHandClock({ at: bad }), RangeError);
    const clock = createHandClock({ at: 0 });
    await assert.rejects(clock.advance(bad), RangeError);
    await assert.rejects(clock.set(bad), RangeError);
  }
});
