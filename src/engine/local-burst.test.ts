/**
 * Many tasks for one worker at once: the rest of the program has its turns in between, and what is called off meanwhile
 * is not begun.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDrover } from "./drover.ts";

const COUNT = 1000;
const scheduler = { maxInFlight: COUNT, maxPerAgentInFlight: COUNT, maxPerAgent: COUNT, maxBatch: COUNT };
const config = { scheduler, projects: { default: { maxConcurrent: COUNT } } };
const tasks = Array.from({ length: COUNT }, (_, index) => ({ action: "x", id: `job-${index}` }));

test("a thousand handlers are not called in one turn of the event loop", async () => {
  await using drover = await openDrover({ config });
  let called = 0;
  let most = 0;
  await drover.worker({ slots: COUNT }, () => void called++);
  const { promise: over, resolve } = Promise.withResolvers<void>();
  let before = 0;
  const look = (): void => {
    most = Math.max(most, called - before);
    before = called;
    if (called === COUNT) resolve();
    else setImmediate(look);
  };
  setImmediate(look);
  await drover.submitBatch({ agentId: "ann", tasks });
  await over;
  // Two helpings may fall between two looks, one of them right behind the commit.
  assert.ok(most <= 256, `${most} in one turn`);
});

test("an attempt that was called off before its handler's turn came is not begun", async () => {
  await using drover = await openDrover({ config });
  const last = `job-${COUNT - 1}`;
  const begun = new Set<string>();
  let cancelled: Promise<void> | null = null;
  await drover.worker({ slots: COUNT }, ({ taskId }) => {
    begun.add(taskId);
    cancelled ??= drover.cancel(last);
  });
  const { accepted } = await drover.submitBatch({ agentId: "ann", tasks });
  assert.equal(accepted, COUNT);
  const ends = await Promise.all(tasks.map(({ id }) => drover.ended(id)));
  await cancelled;
  assert.deepEqual([ends.filter((state) => state === "done").length, ends.at(-1)], [COUNT - 1, "cancelled"]);
  assert.equal(begun.size, COUNT - 1);
  assert.ok(!begun.has(last));
  const [worker] = await drover.workers();
  assert.equal(worker?.inFlight, 0);
});
