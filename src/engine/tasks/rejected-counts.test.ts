/**
 * The number of tasks that found no room outlives the process, and costs the log next to nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";

const config = { scheduler: { maxQueue: 1 } };
const body = (agentId: string) => ({ agentId, action: "x" });
const totals = async ({ drover }: TestDrover) => {
  const { tasksSubmitted, tasksRejected, agents } = (await drover.stats()).metrics;
  return [tasksSubmitted, tasksRejected, agents.bob?.rejected ?? 0];
};
async function turnAway({ drover }: TestDrover, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await assert.rejects(drover.submit(body("bob")), { code: "queue_full" });
}

test("what was shown of submitted and rejected tasks never falls, whatever ends the process", async () => {
  const store = createMemoryStore();
  const first = await createTestDrover({ config, log: createMemoryLog({ store }) });
  await first.drover.submit(body("ann"));
  await turnAway(first, 3);
  assert.deepEqual(await totals(first), [4, 3, 3]);
  // Not closed: it is as if the process had been killed.
  const second = await createTestDrover({ config, log: createMemoryLog({ store }) });
  assert.deepEqual(await totals(second), [4, 3, 3]);
  await turnAway(second, 2);
  await second.drover.close();
  const third = await createTestDrover({ config, log: createMemoryLog({ store }) });
  assert.deepEqual(await totals(third), [6, 5, 5]);
  await third.drover.snapshot();
  await third.drover.close();
  const fourth = await createTestDrover({ config, log: createMemoryLog({ store }) });
  assert.deepEqual(await totals(fourth), [6, 5, 5]);
});

test("however many are turned away in a second, the log has one event of it", async () => {
  const kit = await createTestDrover({ config });
  await kit.drover.submit(body("ann"));
  const before = kit.drover.state.seq;
  await turnAway(kit, 500);
  assert.equal(kit.drover.state.seq, before);
  await kit.clock.advance(1000);
  assert.equal(kit.drover.state.seq, before + 1);
  await kit.clock.advance(60_000);
  assert.equal(kit.drover.state.seq, before + 1, "and none while nobody is turned away");
  assert.equal(kit.drover.state.totals.rejected, 500);
});

test("of agents whose tasks found no room the last thousand are known, and all are counted", async () => {
  const kit = await createTestDrover({ config });
  await kit.drover.submit(body("ann"));
  for (let index = 0; index < 1500; index++) {
    await assert.rejects(kit.drover.submit(body(`bob-${index}`)));
    if (index % 100 === 99) await kit.clock.advance(1000);
  }
  const { metrics } = await kit.drover.stats();
  assert.equal(metrics.tasksRejected, 1500);
  assert.equal(kit.drover.state.rejected.size, 1000);
  assert.deepEqual([metrics.agents["bob-499"], metrics.agents["bob-1499"]?.rejected], [undefined, 1]);
});

test("a flood of new names, read all the while, costs one short event a second and loses no count", async () => {
  const store = createMemoryStore();
  const kit = await createTestDrover({ config, log: createMemoryLog({ store }) });
  await kit.drover.submit(body("ann"));
  const before = kit.drover.state.seq;
  let shown = 0;
  for (let index = 0; index < 3000; index++) {
    await assert.rejects(kit.drover.submit(body(`${index}-`.padEnd(128, "x"))));
    const { tasksRejected } = (await kit.drover.stats()).metrics;
    assert.ok(tasksRejected >= shown, `${tasksRejected} after ${shown}`);
    shown = tasksRejected;
    if (index % 1000 === 999) await kit.clock.advance(1000);
  }
  const events: object[] = [];
  for await (const event of kit.drover.events({ after: before }))
    if (event.kind === "tasks-rejected") events.push(event);
  // One at the first look, and one at the end of each second.
  assert.equal(events.length, 4);
  for (const event of events) assert.ok(JSON.stringify(event).length < 20_000, "an event names a hundred agents");
  const { metrics } = await kit.drover.stats();
  assert.equal(metrics.tasksRejected, 3000);
  assert.equal(metrics.agents["other agents"]?.rejected, 3000 - 1 - 3 * 100);
  await assert.rejects(kit.drover.submit(body("other agents")), { code: "bad_request" });
  // Not closed: what was shown is written.
  const after = await createTestDrover({ config, log: createMemoryLog({ store }) });
  assert.equal((await after.drover.stats()).metrics.tasksRejected, 3000);
});
