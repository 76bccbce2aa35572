/**
 * A worker that leaves waits for its handlers: no slot and no lock is free while somebody still works under it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { isPending } from "../../../test/kits/waits.ts";
import { LogFailure } from "../../log/log.ts";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { Handler } from "./local-workers.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const recordOf = ({ drover }: TestDrover, id: string) => drover.state.tasks.get(id as never);

/** Handlers that end when the test says so, whatever their signal says; each notes whether it was told to stop. */
function stubborn() {
  const started: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<unknown>>();
  const told = new Map<string, AbortSignal>();
  const handler: Handler = ({ taskId, attempt }, { signal }) => {
    const name = `${taskId}#${attempt}`;
    started.push(name);
    told.set(name, signal);
    ends.set(name, Promise.withResolvers());
    return ends.get(name)?.promise;
  };
  const isTold = (name: string): boolean => told.get(name)?.aborted === true;
  return { handler, started, isTold, end: (name: string) => ends.get(name) as PromiseWithResolvers<unknown> };
}

test("a lock has one holder alive: the next begins when the handler of the one that left has ended", async () => {
  const kit = await createTestDrover();
  const { handler, started, isTold, end } = stubborn();
  const first = await kit.drover.worker({ id: "a" }, handler);
  await kit.drover.submit(task("t", { locks: ["repo"] }));
  await kit.settle();
  await kit.drover.worker({ id: "b" }, handler);
  await kit.drover.submit(task("u", { locks: ["repo"] }));
  const left = first.close();
  assert.equal(first.close(), left, "closing twice is closing once");
  await kit.settle();
  assert.ok(isTold("t#1"));
  await kit.clock.advance(9_999);
  assert.ok(await isPending(left));
  assert.deepEqual(started, ["t#1"]);
  end("t#1").reject(new Error("stopped"));
  await left;
  await kit.settle();
  assert.deepEqual([started.length, recordOf(kit, "t")?.ownFailures], [2, 0], "it cost the task no attempt");
  assert.deepEqual(
    (await kit.drover.workers()).map(({ id }) => id),
    ["b"],
  );
});

test("a worker that leaves takes no more, and what its handlers return in time counts", async () => {
  const kit = await createTestDrover({ config: { scheduler: { placement: { maxQueuePerWorker: 3 } } } });
  const { handler, started, end } = stubborn();
  const worker = await kit.drover.worker({ id: "w", slots: 2 }, handler);
  for (const id of ["a", "b", "c", "d"]) await kit.drover.submit(task(id));
  await kit.settle();
  const left = worker.close();
  end("a#1").resolve("in time");
  await kit.settle();
  assert.deepEqual(started, ["a#1", "b#1"]);
  assert.equal((await kit.drover.task("a")).result, "in time");
  end("b#1").reject(Object.assign(new Error("never"), { permanent: true }));
  await left;
  const states = await Promise.all(["b", "c", "d"].map(async (id) => (await kit.drover.task(id)).state));
  assert.deepEqual(states, ["failed", "queued", "queued"]);
});

test("a handler that ignores its signal is given up after killGrace, and its late answer changes nothing", async () => {
  const kit = await createTestDrover({ config: { workers: { killGrace: 3000 } } });
  const { handler, started, end } = stubborn();
  const worker = await kit.drover.worker({}, handler);
  await kit.drover.submit(task("t"));
  await kit.settle();
  const left = worker.close();
  await kit.clock.advance(2999);
  assert.ok(await isPending(left));
  await kit.clock.advance(1);
  await left;
  assert.deepEqual([recordOf(kit, "t")?.phase, recordOf(kit, "t")?.ownFailures], ["queued", 0]);
  end("t#1").resolve("late");
  await kit.settle();
  assert.equal((await kit.drover.task("t")).state, "queued");
  await kit.drover.worker({}, handler);
  await kit.settle();
  assert.deepEqual(started, ["t#1", "t#2"]);
});

test("a task cancelled in the grace of its worker is cancelled, not queued again", async () => {
  const kit = await createTestDrover();
  const { handler, end } = stubborn();
  const worker = await kit.drover.worker({}, handler);
  await kit.drover.submit(task("t"));
  await kit.settle();
  const left = worker.close();
  await kit.drover.cancel("t");
  end("t#1").reject(new Error("stopped"));
  await left;
  assert.equal((await kit.drover.task("t")).state, "cancelled");
});

test("P6 close admits no more, waits one grace for all workers together, and keeps the rest in the log", async () => {
  const store = createMemoryStore();
  const kit = await createTestDrover({ log: createMemoryLog({ store }) });
  const { handler, started, isTold, end } = stubborn();
  for (const id of ["v", "w"]) await kit.drover.worker({ id }, handler);
  for (const id of ["a", "b", "c"]) await kit.drover.submit(task(id));
  await kit.settle();
  const closed = kit.drover.close();
  assert.ok(isTold("a#1") && isTold("b#1"));
  await assert.rejects(kit.drover.submit(task("late")), { code: "closed" });
  await assert.rejects(kit.drover.worker({}, handler), { code: "closed" });
  await kit.clock.advance(5000);
  end("a#1").resolve("in time");
  await kit.clock.advance(4999);
  assert.ok(await isPending(closed));
  await kit.clock.advance(1);
  await closed;
  assert.deepEqual(started, ["a#1", "b#1"]);
  await using again = await createTestDrover({ log: createMemoryLog({ store }), at: kit.clock.now() });
  const { tasks } = await again.drover.tasks();
  assert.deepEqual(
    tasks.map(({ taskId, state }) => `${taskId} ${state}`),
    ["a done", "b queued", "c queued"],
  );
});

test("closing after the log has failed waits for the handlers too, and is no fault", async () => {
  const hand = createLogInHand();
  const { drover, settle } = await createTestDrover({ log: hand.log });
  const { handler, isTold, end } = stubborn();
  await drover.worker({}, handler);
  await drover.submit(task("t"));
  await settle();
  hand.next({ type: "fail", error: new LogFailure("io", "the disk is gone") });
  await assert.rejects(drover.submit(task("u")), { code: "log_failed" });
  const closed = drover.close();
  assert.ok(isTold("t#1"));
  assert.ok(await isPending(closed));
  end("t#1").resolve("nobody hears it");
  await closed;
});
