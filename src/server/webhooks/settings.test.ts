import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds, nth, SETTINGS, sent, start } from "../../../test/kits/webhook-world.ts";
import { verifySignature } from "./signature.ts";

test("webhooks.concurrency binds, and a reload uses what it raised at once", async () => {
  const kit = await start({ settings: { concurrency: 1 } });
  for (let index = 0; index < 10; index++) kit.end(`t${index}`, { callbackUrl: `http://h${index}.example/` });
  await kit.settle();
  assert.equal(kit.calls.length, 1);
  kit.webhooks.change({ ...SETTINGS, concurrency: 8 });
  await kit.settle();
  assert.equal(kit.calls.length, 4, "a quarter is kept for hosts that have answered, and one for other projects");
  kit.webhooks.change({ ...SETTINGS, concurrency: 2 });
  for (const call of kit.calls.slice(0, 2)) call.answer(200);
  await kit.settle();
  assert.equal(kit.calls.length, 4, "a lowered one lets what is under way end first");
});

test("webhooks.timeout binds, and a reload holds from the next try on", async () => {
  const kit = await start({ settings: { timeout: 1000 } });
  kit.end("t");
  await kit.settle();
  kit.webhooks.change({ ...SETTINGS, timeout: 100 });
  await kit.clock.advance(999);
  assert.deepEqual(kinds(kit), []);
  await kit.clock.advance(1);
  await kit.clock.advance(nth(kit.outcomes, 0).restMs ?? 0);
  await kit.clock.advance(99);
  assert.deepEqual([kit.calls.length, kinds(kit)], [2, ["retried"]]);
  await kit.clock.advance(1);
  assert.deepEqual(kinds(kit), ["retried", "retried"]);
});

test("webhooks.attempts binds, and a reload holds for what rests already", async () => {
  const kit = await start({ settings: { attempts: 1 } });
  kit.end("once");
  await kit.settle();
  nth(kit.calls, 0).answer(500);
  await kit.settle();
  assert.deepEqual(kinds(kit), ["failed"]);
  kit.webhooks.change({ ...SETTINGS, attempts: 3 });
  kit.end("more");
  await kit.settle();
  nth(kit.calls, 1).answer(500);
  await kit.settle();
  assert.deepEqual(kinds(kit), ["failed", "retried"]);
  kit.webhooks.change({ ...SETTINGS, attempts: 2 });
  await kit.clock.advance(nth(kit.outcomes, 1).restMs ?? 0);
  nth(kit.calls, 2).answer(500);
  await kit.settle();
  assert.deepEqual(kinds(kit), ["failed", "retried", "failed"]);
});

test("webhooks.secret binds, and a reload signs the next try with the new one", async () => {
  const kit = await start();
  const secrets = [null, "first", "second", null];
  for (const [index, secret] of secrets.entries()) {
    kit.webhooks.change({ ...SETTINGS, secret });
    kit.end(`t${index}`);
    await kit.settle();
    const { headers, body = "" } = nth(kit.calls, index).request;
    const header = headers["X-Drover-Signature"];
    assert.equal(header === undefined, secret === null);
    for (const tried of ["first", "second"])
      assert.equal(verifySignature({ secret: tried, header, body, now: kit.clock.now() }), tried === secret);
  }
});

test("webhooks.allowPrivate binds, and a reload holds from the next try on", async () => {
  const kit = await start({ settings: { allowPrivate: false } });
  kit.end("a", { callbackUrl: "http://127.0.0.1/" });
  await kit.settle();
  assert.deepEqual([kit.calls.length, kinds(kit)], [0, ["failed"]]);
  kit.webhooks.change(SETTINGS);
  kit.end("b", { callbackUrl: "http://127.0.0.1/" });
  await kit.settle();
  assert.equal(kit.calls.length, 1);
});

test("stop waits for what is under way, settles it, and leaves the rest due", async () => {
  const kit = await start({ settings: { concurrency: 8 } });
  for (const id of ["a", "b"]) kit.end(id, { callbackUrl: `http://${id}.example/` });
  kit.end("resting", { callbackUrl: "http://c.example/" });
  await kit.settle();
  nth(kit.calls, 2).answer(500);
  await kit.settle();
  const stopped = kit.webhooks.stop({ graceMs: 5000 });
  await kit.clock.advance(1000);
  nth(kit.calls, 0).answer(200);
  await kit.settle();
  assert.deepEqual(kit.settled, [[1, { ok: true, status: 200, attempts: 1 }]]);
  kit.end("new");
  await kit.clock.advance(3999);
  assert.equal(nth(kit.calls, 1).request.signal.aborted, false);
  await kit.clock.advance(1);
  await stopped;
  assert.equal(nth(kit.calls, 1).request.signal.aborted, true);
  await kit.clock.advance(3_600_000);
  assert.deepEqual([...kit.due.keys()], [2, 3, 4], "cut off, resting and new: all stay due");
  assert.equal(kit.calls.length, 3);
  await kit.webhooks.stop();
  const next = await start({ fake: kit });
  assert.deepEqual(sent(next), ["b:2 task.done", "resting:3 task.done", "new:4 task.done"]);
});

test("a last try that stop cuts off has not failed: it stays due", async () => {
  const kit = await start({ settings: { attempts: 1 } });
  kit.end("t");
  await kit.settle();
  await kit.webhooks.stop();
  assert.deepEqual([kit.settled, kinds(kit), [...kit.due.keys()]], [[], [], [1]]);
});

test("stop with nothing under way ends at once, also twice", async () => {
  const kit = await start();
  await Promise.all([kit.webhooks.stop({ graceMs: 60_000 }), kit.webhooks.stop()]);
});

test("P18 a rejected task fires a webhook too, though it is in no log", async () => {
  const kit = await start();
  const view = { taskId: "r", state: "rejected", error: "no room", callbackUrl: "http://hook.example/" };
  kit.webhooks.rejected(view);
  kit.webhooks.rejected({ taskId: "no-url", state: "rejected" });
  await kit.settle();
  assert.deepEqual(sent(kit), ["r:rejected task.rejected"]);
  assert.deepEqual(JSON.parse(String(nth(kit.calls, 0).request.body)), view);
  kit.webhooks.rejected(view);
  nth(kit.calls, 0).answer(500);
  await kit.settle();
  await kit.clock.advance(2000);
  nth(kit.calls, 1).answer(200);
  await kit.settle();
  assert.deepEqual([kinds(kit), kit.settled, kit.calls.length], [["retried", "delivered"], [], 2]);
  kit.webhooks.rejected(view);
  await kit.settle();
  assert.equal(kit.calls.length, 3, "turned away again later, it is told again");
});

test("P18 a rejection is told before what became of the same task later", async () => {
  const kit = await start();
  kit.webhooks.rejected({ taskId: "t", state: "rejected", callbackUrl: "http://hook.example/" });
  kit.end("t");
  await kit.settle();
  assert.deepEqual(sent(kit), ["t:rejected task.rejected"]);
  nth(kit.calls, 0).answer(200);
  await kit.settle();
  assert.deepEqual(sent(kit), ["t:rejected task.rejected", "t:1 task.done"]);
  assert.equal((JSON.parse(String(nth(kit.calls, 1).request.body)) as { state: string }).state, "done");
});

test("P23 a flood of rejected tasks is no flood of webhooks", async () => {
  const kit = await start();
  for (let index = 0; index < 901; index++)
    kit.webhooks.rejected({ taskId: `r${index}`, state: "rejected", callbackUrl: "http://hook.example/" });
  await kit.settle();
  assert.deepEqual(
    kit.outcomes.map(({ kind, taskId, reason }) => [kind, taskId, reason]),
    [["failed", "r900", "too many rejected tasks wait already"]],
  );
});

test("P23 rejected tasks that are large are kept for their webhooks only as far as memory allows", async () => {
  const kit = await start();
  const callbackUrl = "http://hook.example/";
  const large = { state: "rejected", callbackUrl, payload: "x".repeat(6 * 1024 * 1024) };
  for (const taskId of ["a", "b", "c"]) kit.webhooks.rejected({ ...large, taskId });
  await kit.settle();
  assert.deepEqual(
    kit.outcomes.map(({ kind, taskId }) => [kind, taskId]),
    [["failed", "c"]],
  );
  nth(kit.calls, 0).answer(200);
  await kit.settle();
  kit.webhooks.rejected({ ...large, taskId: "d" });
  await kit.settle();
  assert.deepEqual(kinds(kit), ["failed", "delivered"]);
});
