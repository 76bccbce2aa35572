/**
 * Loops: a handler answers `again`, and its task runs again as the next iteration, so often at most.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { createTestDrover, type TestDrover, type TestDroverOptions } from "../../testing/index.ts";
import { again } from "../index.ts";
import { type Handler, TaskRequeue } from "./local-workers.ts";

async function story(handler: Handler, more: object, options: TestDroverOptions = {}): Promise<TestDrover> {
  const kit = await createTestDrover(options);
  await kit.drover.worker({ id: "w", slots: 1 }, handler);
  await kit.drover.submit({ id: "t", agentId: "ann", action: "build", ...more });
  await kit.settle();
  return kit;
}

test("each round sees its number and what the one before left, and the task is done when one is enough", async () => {
  const seen: unknown[] = [];
  const { drover } = await story(
    ({ round, iteration, rounds }: Parameters<Handler>[0] & { rounds?: unknown }, { usage }) => {
      seen.push([round, iteration, rounds]);
      usage({ inputTokens: 1, outputTokens: 10 * (round?.number ?? 0), cachedTokens: 7, cost: 0.5 });
      return round?.number === 3 ? "green" : again(`${3 - (round?.number ?? 0)} tests fail`);
    },
    { loop: { max: 5 } },
  );
  assert.deepEqual(seen, [
    [{ number: 1, max: 5 }, undefined, undefined],
    [{ number: 2, max: 5, note: "2 tests fail" }, undefined, undefined],
    [{ number: 3, max: 5, note: "1 tests fail" }, undefined, undefined],
  ]);
  const { state, result, attempt, iteration, rounds } = await drover.task("t");
  assert.deepEqual([state, result, attempt, iteration], ["done", "green", 3, 3]);
  const used = (outputTokens: number): object => ({ inputTokens: 1, outputTokens, cachedTokens: 7, cost: 0.5 });
  assert.deepEqual(rounds, [
    { iteration: 1, outcome: "again", note: "2 tests fail", usage: { tokens: 11, ...used(10) } },
    { iteration: 2, outcome: "again", note: "1 tests fail", usage: { tokens: 21, ...used(20) } },
    { iteration: 3, outcome: "done", usage: { tokens: 31, ...used(30) } },
  ]);
  assert.deepEqual((await drover.task("t")).attempts, [
    { attempt: 1, worker: "w", usage: used(10) },
    { attempt: 2, worker: "w", usage: used(20) },
    { attempt: 3, worker: "w", usage: used(30) },
  ]);
});

test("after the last round the task has failed, with what that left; a retry has all rounds again", async () => {
  let calls = 0;
  const { drover, settle } = await story(() => again(`red ${++calls}`), { loop: { max: 2 } });
  const failed = await drover.task("t");
  assert.deepEqual([failed.state, failed.error, calls], ["failed", "the loop ended after 2 rounds: red 2", 2]);
  assert.equal(failed.iteration, 2);
  assert.deepEqual(
    failed.rounds?.map(({ note }) => note),
    ["red 1", "red 2"],
  );
  await drover.retry("t");
  await settle();
  const retried = await drover.task("t");
  assert.deepEqual([retried.error, calls, retried.iteration], ["the loop ended after 2 rounds: red 4", 4, 4]);
  assert.deepEqual(
    retried.rounds?.map(({ note }) => note),
    ["red 3", "red 4"],
  );
});

test("a loop of one round fails at once, and its words count one", async () => {
  const { drover } = await story(() => again(), { loop: { max: 1 } });
  assert.equal((await drover.task("t")).error, "the loop ended after 1 round");
});

test("again without a loop is a mistake that no other attempt mends", async () => {
  const { drover } = await story(() => again("more"), {});
  const { state, error, attempt } = await drover.task("t");
  assert.deepEqual([state, error, attempt], ["failed", "its worker answered again, and it has no loop", 1]);
});

test("an answer that has more in it than again is a result", async () => {
  const { drover } = await story(() => ({ again: true, count: 2 }), { loop: { max: 3 } });
  assert.deepEqual((await drover.task("t")).result, { again: true, count: 2 });
});

test("own failures count over all rounds, and a failure is no round", async () => {
  let calls = 0;
  const { drover, clock } = await story(
    () => {
      calls++;
      if (calls % 2 === 0) throw new Error(`broken ${calls}`);
      return again("on");
    },
    { loop: { max: 100 }, maxAttempts: 2 },
    { config: { scheduler: { retry: { base: 1 } } } },
  );
  await clock.advance(1000);
  const { state, error, rounds } = await drover.task("t");
  assert.deepEqual([state, error, rounds?.length], ["failed", "broken 4", 2]);
});

test("a note is cut to 4096 characters, older ones to 200", async () => {
  const { drover } = await story(() => again("x".repeat(1_000_000)), { loop: { max: 3 } });
  const lengths = (await drover.task("t")).rounds?.map(({ note }) => note?.length);
  assert.deepEqual(lengths, [200, 200, 4096]);
});

test("the next round waits for the worker of the last under any strategy, not longer than affinityWait", async () => {
  const ran: string[] = [];
  const kit = await createTestDrover({ config: { scheduler: { placement: { affinityWait: "5s" } } } });
  const { promise, resolve } = Promise.withResolvers<void>();
  const handler =
    (id: string): Handler =>
    async ({ taskId, round }) => {
      ran.push(`${taskId} on ${id}`);
      if (taskId === "other") await promise;
      else if (round?.number === 1) return again();
      return null;
    };
  await kit.drover.worker({ id: "b", slots: 1, capabilities: ["x"] }, handler("b"));
  await kit.drover.submit({ id: "t", agentId: "ann", action: "x", loop: { max: 3 } });
  await kit.drover.worker({ id: "a", slots: 9 }, handler("a"));
  await kit.settle();
  assert.deepEqual(ran, ["t on b", "t on b"]);
  resolve();
});

test("a requeue, a cancel and a deadline end no round", async () => {
  let calls = 0;
  const { drover, clock } = await story(
    () => {
      if (++calls === 1) throw new TaskRequeue("later");
      return again();
    },
    { loop: { max: 1000 }, deadline: "2030-01-01T00:00:00Z" },
    { config: { scheduler: { retry: { base: "1s" } } } },
  );
  assert.equal((await drover.task("t")).rounds, undefined);
  await drover.cancel("t");
  await clock.advance(10_000);
  assert.deepEqual([(await drover.task("t")).state, calls], ["cancelled", 1]);
});

const bad: readonly [loop: unknown, expected: RegExp][] = [
  [{}, /loop\.max/],
  [{ until: "true" }, /loop\.max/],
  [{ max: 0 }, /loop\.max is 0.*1 to 1000/],
  [{ max: 1001 }, /loop\.max is 1001.*1 to 1000/],
  [{ max: "3" }, /loop\.max/],
  [{ max: 3, until: "" }, /loop\.until/],
  [{ max: 3, untill: "x" }, /untill.*until/],
  [3, /loop/],
];
for (const [loop, expected] of bad)
  test(`a loop of ${JSON.stringify(loop)} is refused`, async () => {
    const { drover } = await createTestDrover();
    await assert.rejects(drover.submit({ agentId: "ann", action: "x", loop: loop as never }), expected);
  });

test("a round survives a restart of the engine: the next sees its note", async () => {
  const store = createMemoryStore();
  const first = await createTestDrover({ log: createMemoryLog({ store }) });
  await first.drover.worker({ id: "w" }, async ({ round }, { signal }) => {
    if (round?.number === 1) return again("note 1");
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await first.drover.submit({ id: "t", agentId: "ann", action: "x", loop: { max: 3 } });
  await first.settle();
  await first.drover.close();
  const second = await createTestDrover({ log: createMemoryLog({ store }) });
  const seen: unknown[] = [];
  await second.drover.worker({ id: "w" }, ({ round }) => {
    seen.push(round);
  });
  await second.settle();
  assert.deepEqual(seen, [{ number: 2, max: 3, note: "note 1" }]);
  assert.equal((await second.drover.task("t")).state, "done");
});

test("the worker of a loop hears for a minute that it has ended while it waited, and no other does", async () => {
  const kit = await createTestDrover();
  const { drover, clock } = kit;
  const sessions = new Map<string, string>();
  for (const id of ["w", "x"]) sessions.set(id, (await drover.remote.join({ id, slots: 2 })).session);
  let n = 0;
  const sync = (id: string, more: object = {}) =>
    drover.remote.sync(id, { session: sessions.get(id) ?? "", n: ++n, running: [], ...more });
  await drover.submit({ id: "t", agentId: "ann", action: "x", loop: { max: 3 } });
  await drover.submit({ id: "plain", agentId: "ann", action: "x" });
  await kit.settle();
  const [one] = [...(await sync("w")).assignments, ...(await sync("x")).assignments].filter(
    ({ taskId }) => taskId === "t",
  );
  const worker = (await drover.task("t")).worker ?? "";
  const other = worker === "w" ? "x" : "w";
  assert.equal(one?.taskId, "t");
  const named = { running: [{ taskId: "t", attempt: 1 }] };
  await sync(worker, named);
  await drover.pause();
  await sync(worker, { results: [{ taskId: "t", attempt: 1, outcome: "again", note: "red" }] });
  const waiting = sync(worker, { waitMs: 60_000 });
  await kit.settle();
  assert.equal((await drover.task("t")).state, "queued");
  await drover.cancel("t");
  await drover.cancel("plain");
  await kit.settle();
  assert.deepEqual((await waiting).over, ["t"], "at once");
  assert.deepEqual([(await sync(worker)).over, (await sync(other)).over], [["t"], undefined]);
  for (let times = 0; times < 13; times++) {
    await clock.advance(5000);
    await Promise.all([sync(worker), sync(other)]);
  }
  assert.equal((await sync(worker)).over, undefined);
  await drover.close();
});

test("the worker of a loop that is run again hears no more that it has ended", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const { session } = await drover.remote.join({ id: "w", slots: 1 });
  const sync = (more: object = {}) => drover.remote.sync("w", { session, running: [], ...more });
  await drover.submit({ id: "t", agentId: "ann", action: "x", loop: { max: 3 } });
  await kit.settle();
  await sync();
  await drover.pause();
  await sync({ results: [{ taskId: "t", attempt: 1, outcome: "again", note: "red" }] });
  await drover.cancel("t");
  assert.deepEqual((await sync()).over, ["t"]);
  await drover.retry("t");
  assert.equal((await sync()).over, undefined);
});
