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
  assert.throws(() => watch.wait("v", undefined), { name: "DroverError", code: "limit", message: /^2 callers wait/ });
  controller.abort(new Error("enough"));
  await assert.rejects(hasty, { message: "enough" });
  void watch.wait("v", undefined);
});
