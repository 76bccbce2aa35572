import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";

const PROJECTS = { web: { weight: 3 }, api: { weight: 1, maxPriority: -200 }, lab: { weight: 2 } };

test("who is next in line is who starts next, over projects, agents and priorities", async () => {
  const { drover, clock, settle } = await createTestDrover({
    config: { scheduler: { maxInFlight: 1 }, projects: PROJECTS },
  });
  for (let count = 0; count < 60; count++) {
    const project = Object.keys(PROJECTS)[count % 3] as string;
    const more = { project, priority: ((count * 7) % 5) * 50, estimatedTokens: 100 };
    await drover.submit({ agentId: `a${count % 4}`, action: "go", id: `t${count}`, ...more });
    await clock.advance(1000);
  }
  await drover.submit({ agentId: "z", action: "go", id: "urgent", project: "api", priority: "critical" });
  const { tasks } = await drover.line({ limit: 30 });
  const started: string[] = [];
  await drover.worker({}, ({ taskId }) => void started.push(taskId));
  await settle();
  assert.equal(tasks.next.length, 30);
  assert.deepEqual(
    tasks.next.map(({ id }) => id),
    started.slice(0, 30),
  );
  assert.deepEqual(
    [tasks.next[0]?.class, tasks.next[0]?.ms, tasks.queued, tasks.inFlight, tasks.maxInFlight],
    ["critical", 0, 61, 0, 1],
  );
  await drover.close();
});

test("what no worker here can run, or its budget does not bear, says so and stands behind the rest", async () => {
  const config = { scheduler: { maxInFlight: 1 }, projects: { lab: { budget: { limit: 100, window: "1h" } } } };
  const { drover, settle } = await createTestDrover({ config });
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  await drover.worker({}, () => ended);
  const submit = (id: string, more: object) => drover.submit({ agentId: "ann", action: "go", id, ...more });
  await submit("runs", { project: "lab", estimatedTokens: 60 });
  await settle();
  for (let count = 0; count < 30; count++) await submit(`gpu${count}`, { capabilities: ["gpu"], priority: "high" });
  await submit("dear", { project: "lab", estimatedTokens: 60, priority: "high" });
  await submit("free", { priority: "low" });
  const { next } = (await drover.line({ limit: 5 })).tasks;
  assert.deepEqual([next[0]?.id, next[0]?.held, next.length], ["free", undefined, 5]);
  assert.deepEqual(new Set(next.slice(1).map(({ held }) => held)), new Set(["never-fits", "budget"]));
  const held = async (id: string): Promise<unknown> => {
    const { held: by, position } = await drover.task(id);
    return [by, position];
  };
  assert.deepEqual(await held("gpu0"), ["never-fits", 1]);
  assert.deepEqual(await held("dear"), ["budget", 1]);
  assert.deepEqual(await held("free"), [undefined, 31]);
  end();
  await drover.close();
});

test("while no worker is here a task says so; what its budget holds stands behind it all the same", async () => {
  const config = { projects: { lab: { budget: { limit: 100, window: "1h" } } } };
  const { drover, settle } = await createTestDrover({ config });
  const submit = (id: string, more: object) => drover.submit({ agentId: "ann", action: "go", id, ...more });
  const said = async () => (await drover.line()).tasks.next.map(({ id, held }) => `${id} ${held}`);
  const mac = await drover.worker({}, (_, context) => context.usage({ inputTokens: 60, outputTokens: 0 }));
  await submit("spends", { project: "lab", estimatedTokens: 60 });
  await settle();
  await submit("dear", { project: "lab", estimatedTokens: 60, priority: "high" });
  await submit("gpu", { project: "lab", capabilities: ["gpu"], estimatedTokens: 0, priority: "low" });
  assert.deepEqual(new Set(await said()), new Set(["gpu never-fits", "dear budget"]));
  await mac.close();
  await settle();
  assert.deepEqual(await said(), ["gpu no-workers", "dear budget"]);
  assert.equal((await drover.task("gpu")).held, "no-workers");
  await drover.close();
});

test("where agents take no turns, the best task of a project goes, whoever it is of", async () => {
  const config = { scheduler: { maxInFlight: 1, fairness: { agents: "none" } } } as const;
  const { drover, settle } = await createTestDrover({ config });
  for (let count = 0; count < 20; count++)
    await drover.submit({ agentId: `a${count % 3}`, action: "go", id: `t${count}`, priority: (count * 7) % 20 });
  const { tasks } = await drover.line();
  const started: string[] = [];
  await drover.worker({}, ({ taskId }) => void started.push(taskId));
  await settle();
  assert.deepEqual(
    tasks.next.map(({ id }) => id),
    started,
  );
  await drover.close();
});

test("what runs stands in the order of its start, with its worker, and no more of it than was asked for", async () => {
  const { drover, clock, settle } = await createTestDrover({ config: { scheduler: { maxPerAgentInFlight: 100 } } });
  const { promise, resolve } = Promise.withResolvers<void>();
  const slots = 100;
  await drover.worker({ id: "w", slots }, async ({ taskId }) => {
    await promise;
    if (taskId === "t0") throw new Error("no");
  });
  for (let count = 0; count < 20; count++) {
    await drover.submit({ agentId: "a", action: "go", id: `t${count}`, maxAttempts: 1 });
    await settle();
    await clock.advance(100);
  }
  const { tasks } = await drover.line({ limit: 3 });
  assert.deepEqual(
    tasks.running.map(({ id, ms, worker }) => [id, ms, worker]),
    [
      ["t0", 2000, "w"],
      ["t1", 1900, "w"],
      ["t2", 1800, "w"],
    ],
  );
  assert.equal(tasks.inFlight, 20);
  resolve();
  await settle();
  const after = (await drover.line()).tasks;
  assert.deepEqual([after.completed, after.failed, after.running, after.avgRunMs > 0], [19, 1, [], true]);
  await drover.close();
});

test("the room for calls is that of the gates that are used, as it is now; where none is, of all", async () => {
  const gates = { busy: { maxConcurrent: 4 }, wide: { maxConcurrent: 1000 } };
  const { drover, clock } = await createTestDrover({ config: { gates } });
  const room = async () => (await drover.line()).calls.maxInFlight;
  await drover.permits.ask({ gate: "busy", id: "a" });
  assert.equal(await room(), 4);
  await drover.permits.ask({ gate: "wide", id: "b" });
  assert.equal(await room(), 1004);
  await drover.permits.settle("b", { ok: true });
  const { calls } = await drover.line();
  assert.deepEqual(
    calls.gates?.map(({ id, inFlight, maxInFlight }) => [id, inFlight, maxInFlight]),
    [
      ["busy", 1, 4],
      ["wide", 0, 1000],
    ],
  );
  await drover.permits.ask({ gate: "busy", id: "c" });
  await drover.permits.settle("a", { ok: false, rateLimited: { retryAfterMs: 5000 } });
  assert.deepEqual([await room(), (await drover.line()).calls.inFlight], [1, 1], "it starts slowly again");
  await drover.permits.settle("c", { ok: true });
  await clock.advance(6000);
  assert.equal(await room(), 1001, "none is used");
  await drover.close();
});

test("calls of all gates stand in one line, the first of each before the second of any; a block says so", async () => {
  const gates = { one: { maxConcurrent: 1 }, two: { maxConcurrent: 1 } };
  const { drover, clock } = await createTestDrover({ config: { gates } });
  const ask = (gate: string, id: string) => drover.permits.ask({ gate, id, ...(id === "c" ? { class: "high" } : {}) });
  for (const id of ["a", "b", "c"]) await ask("one", id);
  await clock.advance(2000);
  for (const id of ["d", "e"]) await ask("two", id);
  const before = await drover.line();
  assert.deepEqual(
    before.calls.running.map(({ id, ms, gate }) => [id, ms, gate]),
    [
      ["a", 2000, "one"],
      ["d", 0, "two"],
    ],
  );
  assert.deepEqual(
    before.calls.next.map(({ id, class: rank, ms }) => [id, rank, ms]),
    [
      ["c", "high", 2000],
      ["e", "normal", 0],
      ["b", "normal", 2000],
    ],
  );
  assert.deepEqual(
    [before.calls.inFlight, before.calls.maxInFlight, before.calls.queued, before.isRateLimited],
    [2, 2, 3, false],
  );
  assert.deepEqual(before.calls.gates, [
    { id: "one", inFlight: 1, maxInFlight: 1, queued: 2 },
    { id: "two", inFlight: 1, maxInFlight: 1, queued: 1 },
  ]);
  await drover.permits.settle("a", { ok: false, rateLimited: { retryAfterMs: 5000 } });
  const after = await drover.line();
  assert.deepEqual([after.isRateLimited, after.rateLimited], [true, 1]);
  await clock.advance(6000);
  assert.equal((await drover.line()).isRateLimited, false);
  await drover.close();
});
