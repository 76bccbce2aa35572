/**
 * Groups: the tasks of one batch, counted, waited for, cancelled and run again together.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";

const items = [
  { id: "a", action: "build" },
  { id: "b", action: "build", project: "red", labels: { k: "v" } },
  { id: "c", action: "build", needs: ["a"] },
];

async function submitted({ drover }: TestDrover, tasks: readonly object[] = items): Promise<string> {
  const { groupId } = await drover.submitBatch({ agentId: "ann", tasks: tasks as typeof items });
  assert.ok(groupId !== undefined);
  return groupId;
}

const some = (counts: Readonly<Record<string, number>>): object =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

test("a batch is a group: its tasks name it, are found by it and are counted", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  await drover.submit({ agentId: "ann", action: "alone" });
  const id = await submitted(kit);
  const { counts, ...group } = await drover.group(id);
  assert.deepEqual(some(counts), { queued: 2, waiting: 1 });
  assert.deepEqual(group, {
    id,
    projects: ["default", "red"],
    total: 3,
    createdAt: (await drover.task("a")).createdAt,
  });
  assert.equal((await drover.task("b")).group, id);
  const page = await drover.tasks({ group: id, state: "queued" });
  assert.deepEqual(
    page.tasks.map(({ taskId }) => taskId),
    ["a", "b"],
  );
  assert.notEqual(await submitted(kit, [{ action: "build" }]), id);
  await assert.rejects(drover.group("grp_0"), { code: "not_found", message: /^no group has the id grp_0/ });
});

test("the same batch again has the same group, and one of which nothing was let in has none", async () => {
  await using kit = await createTestDrover();
  const id = await submitted(kit);
  assert.equal(await submitted(kit), id);
  assert.equal((await kit.drover.group(id)).total, 3);
  const answer = await kit.drover.submitBatch({ agentId: "ann", tasks: [{ action: "" }] });
  assert.equal("groupId" in answer, false);
});

test("who waits for a group hears of its end, and of how each task ended", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const id = await submitted(kit);
  const gone = new AbortController();
  const waits = drover.waitGroup(id, { signal: gone.signal });
  gone.abort(new Error("hung up"));
  await assert.rejects(waits, /hung up/);
  let isOver = false;
  const waiting = drover.waitGroup(id).then((group) => {
    isOver = true;
    return group;
  });
  const red = drover.waitGroup(id, { project: "red" });
  await drover.cancel("b");
  assert.deepEqual(some((await red).counts), { cancelled: 1 });
  assert.equal(isOver, false);
  await drover.worker({}, () => 1);
  await kit.settle();
  const ended = await waiting;
  assert.deepEqual(
    [some(ended.counts), ended.endedAt],
    [{ cancelled: 1, done: 2 }, (await drover.task("c")).completedAt],
  );
});

test("what lives of a group is cancelled, and what did not go well runs again, what others need first", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const id = await submitted(kit);
  assert.deepEqual(await drover.cancelGroup(id, { reason: "enough", project: "red" }), {
    status: "cancelled",
    groupId: id,
    count: 1,
  });
  assert.equal((await drover.task("b")).error, "enough");
  assert.equal((await drover.cancelGroup(id)).count, 2);
  assert.equal((await drover.cancelGroup(id)).count, 0);
  const again = await drover.retryGroup(id);
  assert.deepEqual([again.count, again.refused], [3, 0]);
  const { counts, endedAt } = await drover.group(id);
  assert.deepEqual([some(counts), endedAt], [{ queued: 2, waiting: 1 }, undefined]);
  await drover.cancel("a");
  await kit.settle();
  const part = await drover.retryGroup(id, { agentId: "ann", project: ["red"] });
  assert.deepEqual([part.count, part.refused], [0, 0], "b is queued, and the others are not meant");
  for (const only of [{ agentId: "bob" }, { project: ["blue"] }, { agentId: "ann", project: "blue" }])
    await assert.rejects(drover.group(id, only), { code: "not_found" });
});

test("what attempts used is shown on the task, its group and its project, summed up over attempts", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 } } } });
  const { drover } = kit;
  await drover.worker({}, (task, context) => {
    context.usage({ inputTokens: 10, outputTokens: 2, cacheCreationTokens: 3, cachedTokens: 100, cost: 0.25 });
    if (task.action === "fails" && task.attempt === 1) throw new Error("no");
  });
  const id = await submitted(kit, [
    { id: "x", action: "fails" },
    { id: "y", action: "build" },
  ]);
  await kit.settle();
  await kit.clock.advance(10_000);
  const once = { inputTokens: 13, outputTokens: 2, cachedTokens: 100, cost: 0.25 };
  const times = (count: number) => Object.fromEntries(Object.entries(once).map(([key, value]) => [key, value * count]));
  assert.deepEqual((await drover.task("x")).usage, times(2));
  assert.deepEqual((await drover.task("y")).usage, once);
  assert.deepEqual((await drover.group(id)).usage, times(3));
  assert.deepEqual((await drover.projects())[0]?.usage, times(3));
  const said: unknown[] = [];
  for await (const { kind, attempt, task } of drover.events())
    if (kind === "attempt-usage") said.push(`${task} ${attempt}`);
  assert.deepEqual(said.sort(), ["x 1", "x 2", "y 1"]);
});

test("one that cannot run again is counted as refused", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  await drover.submit({ id: "before", agentId: "ann", action: "x" });
  const id = await submitted(kit, [{ id: "x", action: "y", needs: ["before"] }]);
  await drover.cancel("before");
  await kit.settle();
  const { count, refused } = await drover.retryGroup(id);
  assert.deepEqual([count, refused], [0, 1]);
});

test("a group counts tasks whose records are gone, goes with the last record, and outlives a restart", async () => {
  const data = mkdtempSync(join(tmpdir(), "drover-"));
  const config = { scheduler: { resultTtl: "1m" } };
  let kit = await createTestDrover({ data, config });
  const id = await submitted(kit);
  await kit.drover.cancel("b");
  await kit.clock.advance(120_000);
  assert.equal(kit.drover.state.tasks.has("b" as never), false);
  const before = await kit.drover.group(id);
  assert.deepEqual([some(before.counts), before.total], [{ queued: 1, waiting: 1, cancelled: 1 }, 3]);
  await kit.drover.snapshot();
  const { clock } = kit;
  await kit.drover.close();
  kit = await createTestDrover({ data, config, at: clock.now() });
  assert.deepEqual(await kit.drover.group(id), before);
  await kit.drover.cancelGroup(id);
  await kit.clock.advance(240_000);
  await assert.rejects(kit.drover.group(id), { code: "not_found" });
  assert.equal(kit.drover.state.groups.size, 0);
  await kit.drover.close();
  rmSync(data, { recursive: true });
});
