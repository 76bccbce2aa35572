/**
 * Waiting for the end of a task.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isPending } from "../../../test/kits/waits.ts";
import { createTestDrover } from "../../testing/index.ts";
import { createEndWatch } from "./await-end.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

test("every kind of end wakes every waiter, once it is durable", async () => {
  const { drover, settle } = await createTestDrover();
  const waits = { done: drover, failed: drover, cancelled: drover, skipped: drover };
  await drover.submit(task("done"));
  await drover.submit(task("failed"));
  await drover.submit(task("cancelled", { notBefore: 9_000_000_000_000 }));
  await drover.submit(task("skipped", { needs: ["failed", "cancelled"] }));
  const ends = Object.keys(waits).flatMap((id) => [drover.wait(id), drover.wait(id)]);
  for (const end of ends) assert.ok(await isPending(end));
  await drover.worker({}, ({ taskId }) => {
    if (taskId === "failed") throw Object.assign(new Error("no"), { permanent: true });
  });
  await drover.cancel("cancelled");
  await settle();
  for (const view of await Promise.all(ends)) assert.equal(view.state, view.taskId);
  assert.equal((await drover.wait("done")).state, "done", "what has ended needs no waiting");
});

test("a waiter may give up, before or while it waits, and the others wait on", async () => {
  const { drover } = await createTestDrover();
  await drover.submit(task("t"));
  const controller = new AbortController();
  const [patient, hasty] = [drover.wait("t"), drover.wait("t", { signal: controller.signal })];
  controller.abort(new Error("enough"));
  await assert.rejects(hasty, { message: "enough" });
  await assert.rejects(drover.wait("t", { signal: controller.signal }), { message: "enough" });
  assert.ok(await isPending(patient));
  await drover.cancel("t");
  assert.equal((await patient).state, "cancelled");
});

test("closing ends every wait, and none begins after it", async () => {
  const { drover } = await createTestDrover();
  await drover.submit(task("t"));
  const waiting = drover.wait("t");
  const closed = assert.rejects(waiting, { code: "closed" });
  await drover.close();
  await closed;
  await assert.rejects(drover.wait("t"), { code: "closed" });
  await assert.rejects(drover.wait("nobody"), { code: "closed" });
});

test("a task that is unknown has no end to wait for", async () => {
  const { drover } = await createTestDrover();
  await assert.rejects(drover.wait("nobody"), { code: "not_found" });
});

test("too many waiters are refused, and there is room again when one gives up", async () => {
  const watch = createEndWatch(2);
  const controller = new AbortController();
  const hasty = watch.wait("t", controller.signal);
  void watch.wait("u", undefined);
  const full = { name: "DroverError", code: "overloaded", message: /^2 callers wait/ };
  assert.throws(() => watch.wait("v", undefined), full);
  controller.abort(new Error("enough"));
  await assert.rejects(hasty, { message: "enough" });
  void watch.wait("v", undefined);
});

test("the first end of many is told, and leaves nothing behind for the others", async () => {
  const { drover } = await createTestDrover();
  for (const id of ["a", "b", "c"]) await drover.submit(task(id));
  const controller = new AbortController();
  const [first, hasty, other] = [
    drover.firstEnded(["a", "b", "b"]),
    drover.firstEnded(["a", "c"], { signal: controller.signal }),
    drover.firstEnded(["b", "c"]),
  ];
  controller.abort(new Error("enough"));
  await assert.rejects(hasty, { message: "enough" });
  assert.ok(await isPending(first));
  await drover.cancel("b");
  assert.deepEqual([await first, await other], ["b", "b"]);
  assert.equal(await drover.firstEnded(["a", "b"]), "b", "what has ended needs no waiting");
  await assert.rejects(drover.firstEnded(["a", "nobody"]), { code: "not_found" });
  for (const wrong of [[], "a", Array.from({ length: 1001 }, () => "a")])
    await assert.rejects(drover.firstEnded(wrong as string[]), { code: "bad_request", message: /^tasks is / });
  const closed = assert.rejects(drover.firstEnded(["a", "c"]), { code: "closed" });
  await drover.close();
  await closed;
});

test("who waits for many takes the room of many, and gives all of it back", async () => {
  const watch = createEndWatch(3);
  const controller = new AbortController();
  const { signal } = controller;
  const gone = assert.rejects(watch.first(["a", "b"], signal), { message: "enough" });
  assert.throws(() => watch.first(["b", "c"], undefined), { code: "overloaded" });
  controller.abort(new Error("enough"));
  await gone;
  assert.ok(watch.isIdle());
  const first = watch.first(["a", "b", "c"], undefined);
  watch.onCommitted([{ event: { kind: "task-cancelled", task: "c" } }] as never);
  assert.equal(await first, "c");
  assert.ok(watch.isIdle());
  void watch.first(["a", "b", "c"], undefined);
});
