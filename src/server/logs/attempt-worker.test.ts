import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { type AttemptWorkers, createAttemptWorkers } from "./attempt-worker.ts";

type Asked = Parameters<AttemptWorkers["find"]>[2];

const waits: Asked = { signal: new AbortController().signal, inTurn: (look) => look() };
/** Without the instant. */
async function find(workers: AttemptWorkers, task: string, attempt: number | undefined) {
  const found = await workers.find(task, attempt, waits);
  return found === null ? null : { attempt: found.attempt, worker: found.worker };
}

/** A task whose three attempts run on three workers, and fail. */
async function threeAttempts(kit: TestDrover): Promise<void> {
  const { drover } = kit;
  await drover.submit({ id: "other", agentId: "bob", action: "x", capabilities: ["gpu"] });
  await drover.submit({ id: "t", agentId: "ann", action: "x", maxAttempts: 3 });
  for (const [index, id] of ["ann", "bob", "cid"].entries()) {
    await drover.remote.join({ id });
    await drover.remote.sync(id, { waitMs: 0 });
    const result = { taskId: "t", attempt: index + 1, outcome: "failed" as const, error: "no" };
    const { results } = await drover.remote.sync(id, { results: [result] });
    assert.equal(results[0]?.accepted, true);
    await drover.remote.leave(id);
    await kit.clock.advance(60_000);
  }
}

test("each attempt has its own worker, and without a number it is the last", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 }, resultTtl: "10m" } } });
  await threeAttempts(kit);
  const workers = createAttemptWorkers(kit.drover);
  const found = [];
  for (const attempt of [1, 2, 3, 4, undefined]) found.push(await find(workers, "t", attempt));
  assert.deepEqual(found, [
    { attempt: 1, worker: "ann" },
    { attempt: 2, worker: "bob" },
    { attempt: 3, worker: "cid" },
    null,
    { attempt: 3, worker: "cid" },
  ]);
  const lasts = ["t", "other", "nobody"].map((id) => workers.known(id)?.last);
  assert.deepEqual(lasts, [3, 0, undefined]);
  assert.deepEqual([await find(workers, "other", undefined), await find(workers, "nobody", 1)], [null, null]);
});

test("a task that is a tombstone is found in the log too", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 }, failedTtl: "1s" } } });
  await threeAttempts(kit);
  assert.ok(kit.drover.state.tombstones.has("t" as never));
  const workers = createAttemptWorkers(kit.drover);
  assert.deepEqual(await find(workers, "t", undefined), { attempt: 3, worker: "cid" });
  assert.deepEqual(await find(workers, "t", 2), { attempt: 2, worker: "bob" });
  assert.equal(await find(workers, "t", 9), null);
});

test("a look goes so far and no further, and begins in its turn", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 }, resultTtl: "10m" } } });
  await threeAttempts(kit);
  const workers = createAttemptWorkers(kit.drover, 3);
  let turns = 0;
  const inTurn: Asked["inTurn"] = (look) => {
    turns++;
    return look();
  };
  assert.equal((await workers.find("t", 1, { ...waits, inTurn }))?.worker, "ann");
  assert.equal((await workers.find("t", 3, { ...waits, inTurn }))?.worker, "cid");
  assert.equal(turns, 1, "what the task itself knows waits for nobody");
  await assert.rejects(find(workers, "t", 2), /task t is more than 3 events back in the log; look for its log on/);
  assert.deepEqual(await find(workers, "t", 3), { attempt: 3, worker: "cid" }, "the task itself knows its last one");
});

test("where the events are pruned, the log does not know any more", async () => {
  const config = { log: { retain: "1s" }, scheduler: { retry: { base: 1, max: 1 }, resultTtl: "1h" } };
  await using kit = await createTestDrover({ config });
  await threeAttempts(kit);
  const workers = createAttemptWorkers(kit.drover);
  assert.equal((await find(workers, "t", 1))?.worker, "ann");
  for (const id of ["u", "v", "w"]) {
    await kit.drover.submit({ id, agentId: "bob", action: "x", capabilities: ["gpu"] });
    await kit.drover.snapshot();
    await kit.clock.advance(5000);
  }
  assert.equal(await find(workers, "t", 1), null);
  assert.equal((await find(workers, "t", 3))?.worker, "cid");
});

test("a look ends when nobody waits for it any more, and the next one begins", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 }, resultTtl: "10m" } } });
  await threeAttempts(kit);
  const workers = createAttemptWorkers(kit.drover);
  const caller = new AbortController();
  const first = workers.find("t", 2, { ...waits, signal: caller.signal });
  caller.abort(new Error("hung up"));
  await assert.rejects(first, /hung up/);
  assert.equal((await find(workers, "t", 2))?.worker, "bob");
});

test("no attempt has written anything before its task was submitted", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 }, resultTtl: "10m" } } });
  await kit.clock.advance(1000);
  const before = kit.clock.now();
  await threeAttempts(kit);
  const workers = createAttemptWorkers(kit.drover);
  assert.equal(workers.known("t")?.since, before);
  const sinces = await Promise.all([1, 3].map(async (attempt) => (await workers.find("t", attempt, waits))?.since));
  assert.deepEqual(sinces, [before, before]);
});
