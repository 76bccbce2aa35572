import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, execClock, isAlive } from "../../../test/kits/faults/exec-world.ts";

const grace = { killGraceMs: 10_000, interruptGraceMs: 4000 };

test("a child that heeds SIGINT is asked no further", async (t) => {
  const clock = execClock();
  const world = createWorld(t, { clock, ...grace, script: `trap 'exit 0' INT; say ready; linger` });
  const run = world.start();
  await run.said("ready");
  run.abort(new Error("cancelled: not needed any more"));
  assert.deepEqual(await run.outcome, { outcome: "cancelled", error: "cancelled: not needed any more" });
  assert.equal(clock.alarms().length, 0);
  const text = (await world.handler.tail("t1", 1))?.text ?? "";
  assert.match(text, /sent SIGINT/);
  assert.doesNotMatch(text, /SIGTERM|SIGKILL/);
});

test("a child that ignores SIGINT gets SIGTERM when its time is up, and not before", async (t) => {
  const clock = execClock();
  const script = `trap 'say int' INT; trap 'say term; exit 0' TERM; say ready; linger`;
  const run = createWorld(t, { clock, ...grace, script }).start();
  await run.said("ready");
  run.abort();
  await run.said("int");
  clock.turn(3999);
  assert.deepEqual(run.progress, ["ready", "int"]);
  clock.turn(1);
  await run.said("term");
  assert.deepEqual(await run.outcome, { outcome: "cancelled", error: "it was told to stop" });
});

test("a child that ignores SIGINT and SIGTERM is killed, and so is what it started", async (t) => {
  const clock = execClock();
  const world = createWorld(t, { clock, ...grace, script: `trap '' INT TERM; sleep 60 & say $!; linger` });
  const run = world.start();
  const pid = Number(await run.first());
  run.abort();
  clock.turn(4000);
  clock.turn(5999);
  assert.ok(isAlive(pid));
  clock.turn(1);
  assert.equal((await run.outcome).outcome, "cancelled");
  assert.equal(isAlive(pid), false);
  const text = (await world.handler.tail("t1", 1))?.text ?? "";
  assert.match(text, /sent SIGINT.*sent SIGTERM.*sent SIGKILL.*ended by SIGKILL/s);
});

test("a second reason to stop begins no second ladder", async (t) => {
  const clock = execClock();
  const world = createWorld(t, { clock, ...grace, script: `trap 'say int' INT; say ready; linger` });
  const run = world.start();
  await run.said("ready");
  run.abort();
  await run.said("int");
  const closed = world.handler.close();
  assert.equal(clock.alarms().length, 1);
  clock.turn(4000);
  assert.equal((await run.outcome).outcome, "cancelled");
  await closed;
  assert.deepEqual(run.progress, ["ready", "int"]);
});
