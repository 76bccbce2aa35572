/**
 * Bodies at hand: each handler is given its own, and nobody is shown a task without the body or the result it has.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { fewTurns } from "../../../test/kits/waits.ts";
import { seq } from "../../core/base/brand.ts";
import type { Log } from "../../log/log.ts";
import { createTestDrover } from "../../testing/index.ts";
import type { Handler } from "../workers/local-workers.ts";
import { createBodyStore } from "./body-store.ts";

test("a handler may do with its task what it likes: the next attempt is given the body as it was", async () => {
  const seen: unknown[] = [];
  const spoil = (given: Record<string, unknown>): void => {
    seen.push({ ...given });
    given.action = "spoilt";
    throw new Error("again");
  };
  for (const more of [{}, { params: { a: 1 } }]) {
    const kit = await createTestDrover();
    await kit.drover.worker({ id: "w" }, spoil as Handler);
    await kit.drover.submit({ id: "t", agentId: "ann", action: "build", maxAttempts: 2, ...more });
    await kit.settle();
    await kit.clock.advance(10_000);
    const body = { agentId: "ann", action: "build", maxAttempts: 2, ...more, taskId: "t" };
    assert.deepEqual(seen.splice(0), [
      { ...body, attempt: 1 },
      { ...body, attempt: 2 },
    ]);
  }
});

test("bodies of tasks that end before they are durable are there for whoever asks meanwhile", async () => {
  const hand = createLogInHand();
  await using kit = await createTestDrover({ log: hand.log });
  const { drover } = kit;
  hand.hold();
  const count = 1500;
  const asked = Array.from({ length: count }, (_, index) =>
    drover.submit({ agentId: `agent-${index % 10}`, action: "x", id: `job-${index}` }),
  );
  const cancelled = Array.from({ length: count }, (_, index) => drover.cancel(`job-${index}`));
  const pages = [drover.tasks({ limit: 1000 }), drover.task("job-0")] as const;
  hand.release();
  const [{ tasks }, first] = await Promise.all(pages);
  await Promise.all([...asked, ...cancelled]);
  assert.equal(tasks.length, 1000);
  for (const task of [...tasks, first]) assert.deepEqual([task.action, task.state], ["x", "cancelled"]);
});

test("whoever is told that a task is done is told its result", async () => {
  const hand = createLogInHand();
  await using kit = await createTestDrover({ log: hand.log });
  const { drover } = kit;
  const work = Promise.withResolvers<unknown>();
  await drover.worker({ slots: 1 }, () => work.promise);
  const { taskId } = await drover.submit({ agentId: "ann", action: "x" });
  await kit.settle();
  hand.hold();
  const other = drover.submit({ agentId: "ann", action: "y" });
  await fewTurns();
  const running = drover.task(taskId);
  work.resolve({ answer: 42 });
  await fewTurns();
  const done = drover.task(taskId);
  hand.release();
  assert.equal((await running).state, "running");
  const { state, result } = await done;
  assert.deepEqual([state, result], ["done", { answer: 42 }]);
  await other;
});

test("bodies at hand are bounded in bytes: those of ended tasks go first, then the newest", async () => {
  const large = "x".repeat(1024 * 1024);
  const small = "x".repeat(12_000);
  const stored = new Map<number, Uint8Array>();
  const readRecord = async (seq: number) => {
    const payload = stored.get(seq);
    return payload === undefined ? null : { bytes: new Uint8Array(0), payload };
  };
  const bodies = createBodyStore({ readRecord } as unknown as Log);
  const keep = (at: number, text = large): void => {
    stored.set(at, new TextEncoder().encode(`${at}${text}`));
    bodies.keep(at, `${at}${text}`, null);
  };
  const atHand = (...seqs: number[]): boolean[] => seqs.map((at) => bodies.peek(seq(at)) !== undefined);
  for (let at = 1; at <= 60; at++) keep(at);
  for (let at = 101; at <= 200; at++) keep(at, small);
  for (let at = 1; at <= 10; at++) bodies.release(at);
  for (let at = 101; at <= 200; at++) bodies.release(at);
  assert.deepEqual(atHand(101, 200, 10, 60), [true, true, false, true], "what has ended is at hand if it is small");
  for (let at = 61; at <= 73; at++) keep(at);
  assert.deepEqual(atHand(101, 200, 11, 73), [false, false, true, true], "it gives way to what has not");
  for (let at = 74; at <= 80; at++) keep(at);
  assert.deepEqual(atHand(11, 73, 80), [true, true, false], "and the newest to what was there before");
  assert.equal(await bodies.read(seq(80)), `80${large}`);
  assert.equal(await bodies.read(seq(1)), `1${large}`);
  for (let at = 11; at <= 20; at++) bodies.release(at);
  keep(81);
  assert.deepEqual(atHand(81), [true], "room that was given back is used");
});

test("bodies of the tasks that ended last are at hand, whatever steps their numbers come in", () => {
  for (const step of [1, 3, 4, 8, 1024]) {
    const bodies = createBodyStore({ readRecord: async () => null } as unknown as Log);
    const all = Array.from({ length: 3000 }, (_, index) => 1 + index * step);
    for (const at of all) {
      bodies.keep(at, `body of ${at}`, null);
      bodies.release(at);
    }
    const atHand = all.filter((at) => bodies.peek(seq(at))?.text === `body of ${at}`);
    assert.ok(atHand.length > 500 && atHand.length <= 1024, `${atHand.length} with steps of ${step}`);
    assert.ok(atHand.includes(all.at(-1) as number), "the last one is");
  }
});

test("whoever waits for a task is told its result without a look into the log", async () => {
  const { log } = createLogInHand();
  const read: number[] = [];
  const readRecord: Log["readRecord"] = (at) => {
    read.push(at);
    return log.readRecord(at);
  };
  await using kit = await createTestDrover({ log: { ...log, readRecord } });
  const { drover } = kit;
  await drover.worker({ slots: 1 }, () => ({ answer: 42 }));
  const { taskId } = await drover.submit({ agentId: "ann", action: "x" });
  await kit.settle();
  assert.deepEqual((await drover.task(taskId)).result, { answer: 42 });
  assert.deepEqual(read, []);
});

test("results at hand are bounded in bytes together with bodies", () => {
  const bodies = createBodyStore({ readRecord: async () => null } as unknown as Log);
  const isAtHand = (at: number): boolean => bodies.peek(seq(at)) !== undefined;
  bodies.keepResult(1, "x".repeat(1000));
  bodies.keepResult(2, "x".repeat(16 * 1024));
  assert.deepEqual([1, 2].map(isAtHand), [true, false], "a large one is not kept");
  for (let at = 11; at <= 74; at++) bodies.keep(at, "x".repeat(1024 * 1024 - 200), null);
  assert.deepEqual([1, 11, 74].map(isAtHand), [false, true, true], "it gives way to what has not ended");
  bodies.keepResult(3, "x");
  assert.equal(isAtHand(3), false, "and takes nothing from it");
});
