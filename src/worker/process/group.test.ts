import assert from "node:assert/strict";
import { test } from "node:test";
import { createStage, handHost, isAlive } from "../../../test/kits/faults/exec-stage.ts";

const grace = { killGraceMs: 10_000, interruptGraceMs: 4000 };

test("a child that heeds SIGINT is asked no further", async (t) => {
  const host = handHost();
  const stage = createStage(t, { host, ...grace, script: `trap 'exit 0' INT; say ready; linger` });
  const run = stage.start();
  await run.said("ready");
  run.abort(new Error("cancelled: not needed any more"));
  assert.deepEqual(await run.outcome, { outcome: "cancelled", error: "cancelled: not needed any more" });
  assert.equal(host.count, 0);
  const text = (await stage.handler.tail("t1", 1))?.text ?? "";
  assert.match(text, /sent SIGINT/);
  assert.doesNotMatch(text, /SIGTERM|SIGKILL/);
});

test("a child that ignores SIGINT gets SIGTERM when its time is up, and not before", async (t) => {
  const host = handHost();
  const script = `trap 'say int' INT; trap 'say term; exit 0' TERM; say ready; linger`;
  const run = createStage(t, { host, ...grace, script }).start();
  await run.said("ready");
  run.abort();
  await run.said("int");
  host.advance(3999);
  assert.deepEqual(run.progress, ["ready", "int"]);
  host.advance(1);
  await run.said("term");
  assert.deepEqual(await run.outcome, { outcome: "cancelled", error: "it was told to stop" });
});

test("a child that ignores SIGINT and SIGTERM is killed, and so is what it started", async (t) => {
  const host = handHost();
  const stage = createStage(t, { host, ...grace, script: `trap '' INT TERM; sleep 60 & say $!; linger` });
  const run = stage.start();
  const pid = Number(await run.first());
  run.abort();
  host.advance(4000);
  host.advance(5999);
  assert.ok(isAlive(pid));
  host.advance(1);
  assert.equal((await run.outcome).outcome, "cancelled");
  assert.equal(isAlive(pid), false);
  const text = (await stage.handler.tail("t1", 1))?.text ?? "";
  assert.match(text, /sent SIGINT.*sent SIGTERM.*sent SIGKILL.*ended by SIGKILL/s);
});

test("a second reason to stop begins no second ladder", async (t) => {
  const host = handHost();
  const stage = createStage(t, { host, ...grace, script: `trap 'say int' INT; say ready; linger` });
  const run = stage.start();
  await run.said("ready");
  run.abort();
  await run.said("int");
  const closed = stage.handler.close();
  assert.equal(host.count, 1);
  host.advance(4000);
  assert.equal((await run.outcome).outcome, "cancelled");
  await closed;
  assert.deepEqual(run.progress, ["ready", "int"]);
});
