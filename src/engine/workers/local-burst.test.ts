/**
 * Many tasks for one worker at once: the rest of the program has its turns in between, and what is called off meanwhile
 * is not begun.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { until } from "../../../test/kits/waits.ts";
import { nextTurn } from "../../std/clock.ts";
import { type Drover, openDrover } from "../drover.ts";
import type { Handler } from "./local-workers.ts";

const COUNT = 1000;
const scheduler = { maxInFlight: COUNT, maxPerAgentInFlight: COUNT, maxPerAgent: COUNT, maxBatch: COUNT };
const config = { scheduler, projects: { default: { maxConcurrent: COUNT } } };
const tasks = Array.from({ length: COUNT }, (_, index) => ({ action: "x", id: `job-${index}` }));

/** A worker whose thousand assignments become durable at once, as soon as `release` is called. */
async function burst(handler: (drover: Drover) => Handler): Promise<{ drover: Drover; release(): void }> {
  const hand = createLogInHand();
  const drover = await openDrover({ config, log: hand.log });
  await drover.worker({ slots: COUNT }, handler(drover));
  hand.hold();
  void drover.submitBatch({ agentId: "ann", tasks });
  await until(`${COUNT} starts`, () => drover.state.inFlight >= COUNT);
  return { drover, release: hand.release };
}

test("a thousand handlers are not called in one turn of the event loop", async () => {
  let called = 0;
  const { drover, release } = await burst(() => () => void called++);
  release();
  let most = 0;
  for (let before = 0; called < COUNT; before = called) {
    await nextTurn();
    most = Math.max(most, called - before);
  }
  // Two helpings may fall between two looks, one of them right behind the commit.
  assert.ok(most <= 256, `${most} in one turn`);
  await drover.close();
});

test("an attempt that was called off before its handler's turn came is not begun", async () => {
  const last = `job-${COUNT - 1}`;
  const begun = new Set<string>();
  let cancelled: Promise<unknown> = Promise.resolve();
  const { drover, release } = await burst((from) => ({ taskId }) => {
    begun.add(taskId);
    if (begun.size === 300) cancelled = from.cancel(last);
  });
  release();
  const ends = await Promise.all(tasks.map(({ id }) => drover.ended(id)));
  await cancelled;
  assert.deepEqual([ends.filter((state) => state === "done").length, ends.at(-1)], [COUNT - 1, "cancelled"]);
  assert.ok(!begun.has(last));
  assert.equal(begun.size, COUNT - 1);
  await drover.close();
  assert.equal(drover.state.inFlight, 0);
});
