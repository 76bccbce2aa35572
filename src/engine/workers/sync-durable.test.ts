/**
 * What an answer to a sync waits for: what the worker said, and what it is told of itself, are on disk before that.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { join, one, submit } from "../../../test/kits/hand-worker.ts";
import { slowLog } from "../../../test/kits/slow-log.ts";
import { nextTurn } from "../../std/index.ts";
import { createTestDrover } from "../../testing/index.ts";

/** More than any answer takes that waits for nothing. */
const TURNS = 20;

async function isAnswered(answer: Promise<unknown>): Promise<boolean> {
  let isThere = false;
  void answer.then(() => {
    isThere = true;
  });
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  return isThere;
}

test("a poll does not wait for what others have said meanwhile", async () => {
  const slow = slowLog("worker-joined", 2);
  const kit = await createTestDrover({ log: slow.log });
  const ann = await join(kit);
  const poll = ann.sync({ waitMs: 1000 });
  const bob = kit.drover.remote.join({ id: "bob" });
  await slow.isWaiting;
  const newer = ann.sync();
  assert.equal(await isAnswered(poll), true, "a newer sync ends it");
  slow.letGo();
  await Promise.all([bob, newer]);
  await kit.drover.close();
});

for (const waitMs of [0, 1000])
  test(`a result is answered when it is on disk, by a sync that waits for ${waitMs} ms`, async () => {
    const slow = slowLog("task-done");
    const kit = await createTestDrover({ log: slow.log });
    const ann = await join(kit);
    await submit(kit, "t");
    await ann.sync();
    const answer = ann.sync({ brief: true, waitMs, results: [{ ...one("t"), outcome: "done" }] });
    await slow.isWaiting;
    const newer = ann.sync();
    assert.equal(await isAnswered(answer), false);
    slow.letGo();
    await Promise.all([answer, newer]);
    await kit.drover.close();
  });

test("a poll hears of a task that was changed before its assignment was on disk", async () => {
  const slow = slowLog("task-assigned");
  const kit = await createTestDrover({ log: slow.log });
  const ann = await join(kit);
  const poll = ann.sync({ waitMs: 1000 });
  const submitted = submit(kit, "t");
  await slow.isWaiting;
  const patched = kit.drover.patch("t", { priority: "high" });
  slow.letGo();
  assert.equal(await isAnswered(poll), true, "not only when its time is over");
  const { assignments } = await poll;
  assert.equal(assignments[0]?.taskId, "t");
  await Promise.all([submitted, patched]);
  await kit.drover.close();
});

test("that it drains is said when it is on disk", async () => {
  const slow = slowLog("worker-changed");
  const kit = await createTestDrover({ log: slow.log });
  const { session } = await join(kit);
  const poll = kit.drover.remote.sync("ann", { session, waitMs: 1000 });
  const drained = kit.drover.remote.drain("ann");
  await slow.isWaiting;
  const newer = kit.drover.remote.sync("ann", { session });
  assert.equal(await isAnswered(poll), false);
  slow.letGo();
  assert.equal((await poll).drain, true);
  await Promise.all([drained, newer]);
  await kit.drover.close();
});
