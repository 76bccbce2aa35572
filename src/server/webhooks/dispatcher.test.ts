import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeEngine, kinds, nth, sent, start } from "../../../test/kits/webhook-world.ts";
import { DroverError } from "../../engine/base/drover-error.ts";
import type { Snapshot } from "./delivery.ts";
import type { WebhookEngine } from "./dispatcher.ts";

test("P2 each end is told once, and settled with what came of it", async () => {
  const kit = await start();
  for (const state of ["done", "failed", "cancelled", "skipped"]) kit.end(`t-${state}`, { state });
  await kit.settle();
  assert.deepEqual(sent(kit), [
    ...["t-done:1 task.done", "t-failed:2 task.failed", "t-cancelled:3 task.cancelled", "t-skipped:4 task.skipped"],
  ]);
  for (const call of kit.calls) call.answer(204);
  await kit.settle();
  assert.deepEqual(
    kit.settled,
    [1, 2, 3, 4].map((seq) => [seq, { ok: true, status: 204, attempts: 1 }]),
  );
  kit.end("later");
  await kit.settle();
  nth(kit.calls, 4).answer(200);
  await kit.clock.advance(3_600_000);
  assert.equal(kit.calls.length, 5, "what is settled is never sent again");
  assert.deepEqual(kit.problems, []);
});

test("what was due before this process began is told, oldest first", async () => {
  const fake = fakeEngine();
  for (const id of ["a", "b", "c"]) fake.end(id);
  assert.deepEqual(sent(await start({ fake })), ["a:1 task.done", "b:2 task.done", "c:3 task.done"]);
});

test("a failure is tried again after a rest that triples, and then no more", async () => {
  const kit = await start({ settings: { attempts: 4 } });
  kit.end("t");
  await kit.settle();
  for (const restMs of [1000, 3000, 9000]) {
    nth(kit.calls, -1).answer(500);
    await kit.settle();
    const before = kit.calls.length;
    await kit.clock.advance(restMs - 1);
    assert.equal(kit.calls.length, before, "not before its rest is over");
    await kit.clock.advance(restMs / 4 + 1);
    assert.equal(kit.calls.length, before + 1);
  }
  nth(kit.calls, -1).answer(503);
  await kit.settle();
  assert.deepEqual(kinds(kit), ["retried", "retried", "retried", "failed"]);
  assert.deepEqual(kit.settled, [[1, { ok: false, status: 503, attempts: 4 }]]);
  await kit.clock.advance(86_400_000);
  assert.equal(kit.calls.length, 4);
});

test("an observer that throws is a problem of its own: deliveries are settled and tried again as ever", async () => {
  const problems: unknown[] = [];
  const fault = new Error("the log of this process is full");
  const onOutcome = (): never => {
    throw fault;
  };
  const kit = await start({ onOutcome, onProblem: (problem) => problems.push(problem) });
  kit.end("t");
  await kit.settle();
  nth(kit.calls, 0).answer(500);
  await kit.settle();
  await kit.clock.advance(1250);
  nth(kit.calls, 1).answer(200);
  await kit.settle();
  assert.deepEqual(kit.settled, [[1, { ok: true, status: 200, attempts: 2 }]]);
  assert.deepEqual(problems, [fault, fault]);
  await kit.webhooks.stop();
});

test("500 three times, then 200: delivered at the fourth, under one delivery id", async () => {
  const kit = await start();
  kit.end("t");
  await kit.settle();
  for (const status of [500, 500, 500, 200]) {
    nth(kit.calls, -1).answer(status);
    await kit.settle();
    await kit.clock.advance(nth(kit.outcomes, -1).restMs ?? 0);
  }
  assert.deepEqual(new Set(sent(kit)), new Set(["t:1 task.done"]));
  assert.deepEqual(kit.settled, [[1, { ok: true, status: 200, attempts: 4 }]]);
  assert.deepEqual(
    kit.outcomes.map(({ kind, attempt, status }) => [kind, attempt, status]),
    [
      ["retried", 1, 500],
      ["retried", 2, 500],
      ["retried", 3, 500],
      ["delivered", 4, 200],
    ],
  );
});

test("Retry-After is honoured, up to an hour", async () => {
  const kit = await start();
  kit.end("t");
  await kit.settle();
  nth(kit.calls, 0).answer(429, { "retry-after": "120" });
  await kit.clock.advance(119_999);
  assert.equal(kit.calls.length, 1);
  await kit.clock.advance(1);
  assert.equal(kit.calls.length, 2);
  nth(kit.calls, 1).answer(503, { "retry-after": "999999999" });
  await kit.clock.advance(3_600_000);
  assert.equal(kit.calls.length, 3);
});

test("410 Gone is final", async () => {
  const kit = await start();
  kit.end("t");
  await kit.settle();
  nth(kit.calls, 0).answer(410);
  await kit.clock.advance(3_600_000);
  assert.deepEqual(kit.settled, [[1, { ok: false, status: 410, attempts: 1 }]]);
  assert.deepEqual(kinds(kit), ["failed"]);
});

test("a receiver that hangs is tried again", async () => {
  const kit = await start({ settings: { timeout: 500, attempts: 2 } });
  kit.end("t");
  await kit.settle();
  await kit.clock.advance(499);
  assert.deepEqual(kinds(kit), []);
  await kit.clock.advance(2000);
  assert.equal(kit.calls.length, 2);
  await kit.clock.advance(500);
  assert.deepEqual(kit.settled, [[1, { ok: false, attempts: 2 }]]);
  assert.deepEqual([nth(kit.outcomes, 0).ms, nth(kit.outcomes, 0).reason], [500, "no answer in 500 ms"]);
});

test("the ends of one task are told in order, the next when the one before is settled", async () => {
  const kit = await start({ settings: { attempts: 2 } });
  kit.end("t", { state: "failed" });
  kit.end("t", { state: "failed" });
  kit.end("t", { state: "done" });
  kit.end("u");
  await kit.settle();
  assert.deepEqual(sent(kit), ["t:1 task.failed", "u:4 task.done"]);
  nth(kit.calls, 0).answer(500);
  await kit.clock.advance(2000);
  nth(kit.calls, 2).answer(500);
  await kit.settle();
  assert.deepEqual(sent(kit).slice(2), ["t:1 task.failed", "t:2 task.failed"]);
  nth(kit.calls, 3).answer(200);
  await kit.settle();
  assert.deepEqual(nth(sent(kit), -1), "t:3 task.done");
});

test("P23 concurrency is bounded, and one host cannot take it all", async () => {
  const kit = await start({ settings: { concurrency: 8 } });
  for (let index = 0; index < 30; index++) kit.end(`a${index}`, { callbackUrl: "http://hangs.example/x" });
  for (let index = 0; index < 30; index++) kit.end(`b${index}`, { callbackUrl: `http://h${index}.example/x` });
  await kit.settle();
  const hosts = kit.calls.map(({ request }) => request.url.host);
  assert.equal(hosts.length, 4, "a quarter is kept for hosts that have answered, and one for other projects");
  assert.equal(hosts.filter((host) => host === "hangs.example").length, 2);
  assert.deepEqual(kit.webhooks.standing(), { due: 60, underWay: 4, waiting: 56, resting: 0 });
  for (const call of [...kit.calls]) call.answer(200);
  await kit.settle();
  assert.equal(kit.calls.length, 4 + 6);
});

test("hosts that hang hold up no other project's new host, of a task that ended or was rejected", async () => {
  const kit = await start({ settings: { timeout: 500 } });
  for (let index = 0; index < 300; index++)
    kit.end(`bad${index}`, { project: "bad", callbackUrl: `http://h${index}.example/x` });
  await kit.settle();
  assert.equal(kit.calls.length, 8);
  kit.end("good", { project: "good", callbackUrl: "http://good.example/x" });
  const callbackUrl = "http://turned-away.example/x";
  kit.webhooks.rejected({ taskId: "turned-away", state: "rejected", project: "other", callbackUrl });
  await kit.settle();
  assert.deepEqual(
    kit.calls.slice(8).map(({ request }) => request.url.host),
    ["turned-away.example", "good.example"],
  );
  for (const call of kit.calls.slice(8)) call.answer(500);
  await kit.clock.advance(1250);
  const again = kit.calls.slice(10).map(({ request }) => request.url.host);
  assert.deepEqual(again.filter((host) => !host.startsWith("h")).toSorted(), ["good.example", "turned-away.example"]);
});

test("a task is read once, when its turn comes", async () => {
  const kit = await start({ settings: { concurrency: 1 } });
  kit.end("a");
  kit.end("b");
  await kit.settle();
  assert.deepEqual(kit.reads, ["a"]);
  kit.tasks.set("b", { taskId: "b", state: "done", callbackUrl: "http://hook.example/", result: "late" } as Snapshot);
  nth(kit.calls, 0).answer(200);
  await kit.settle();
  assert.deepEqual(kit.reads, ["a", "b"]);
  assert.match(String(nth(kit.calls, 1).request.body), /late/);
});

test("Q19 a task that is gone, or has no address, is settled as failed and holds nobody up", async () => {
  const kit = await start();
  kit.end("gone");
  kit.tasks.delete("gone");
  kit.end("silent");
  kit.tasks.set("silent", { taskId: "silent", state: "done" });
  kit.end("private", { callbackUrl: "ftp://hook.example/" });
  await kit.settle();
  assert.deepEqual(
    kit.settled.map(([seq, { ok }]) => [seq, ok]),
    [
      [1, false],
      [2, false],
      [3, false],
    ],
  );
  assert.deepEqual(
    kit.outcomes.map(({ reason }) => reason),
    ["its task is no longer in the log", "its task has no callbackUrl", "its callbackUrl must be an http or https URL"],
  );
});

test("a task that cannot be read now is read again later, up to the limit of tries", async () => {
  const fake = fakeEngine();
  let fails = 2;
  const engine: WebhookEngine = {
    callbacks: {
      ...fake.engine.callbacks,
      snapshot: async (seq) => {
        if (fails-- > 0) throw new DroverError("overloaded", "not now");
        return fake.engine.callbacks.snapshot(seq);
      },
    },
  };
  const kit = await start({ fake, drover: engine });
  kit.end("t");
  await kit.clock.advance(10_000);
  assert.deepEqual([kinds(kit), sent(kit)], [["retried", "retried"], ["t:1 task.done"]]);
  assert.equal(nth(kit.outcomes, 0).reason, "its task cannot be read: overloaded", "the text may hold anything");
});

test("an engine that has stopped ends it quietly", async () => {
  const fake = fakeEngine();
  const closed = new DroverError("closed", "closed");
  const engine: WebhookEngine = {
    callbacks: { ...fake.engine.callbacks, settle: () => Promise.reject(closed) },
  };
  const kit = await start({ fake, drover: engine });
  kit.end("t");
  await kit.settle();
  nth(kit.calls, 0).answer(200);
  await kit.settle();
  const shut = await start({
    fake,
    drover: { callbacks: { ...engine.callbacks, snapshot: () => Promise.reject(closed) } },
  });
  await shut.settle();
  assert.deepEqual([kit.problems, shut.problems, shut.calls], [[], [], []]);
});
