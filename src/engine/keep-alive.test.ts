/**
 * When an alarm keeps the program alive: while time will move something, and not to let go of old results.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../std/hand-clock.ts";
import { type Drover, openDrover } from "./drover.ts";

async function open(config: object = {}) {
  const clock = createHandClock({ at: 1_000_000_000, isAtRest: async () => true });
  const { settle } = clock;
  const alarms = new Map<object, boolean>();
  const drover: Drover = await openDrover({
    config,
    clock: {
      ...clock,
      ringAt: (at, ring, options) => {
        const key = {};
        alarms.set(key, options?.keepAlive !== false);
        const cancel = clock.ringAt(at, ring, options);
        return () => {
          alarms.delete(key);
          cancel();
        };
      },
    },
  });
  return { drover, settle, isKeptAlive: () => [...alarms.values()].includes(true) };
}

test("a call that waits for its gate's window keeps the program alive", async () => {
  const { drover, settle, isKeptAlive } = await open({ gates: { llm: { requests: 1, window: "3s" } } });
  await drover.withPermit("llm", () => "out");
  await settle();
  assert.equal(isKeptAlive(), false);
  const stop = new AbortController();
  const waiting = drover.withPermit("llm", () => "out", { signal: stop.signal });
  await settle();
  assert.equal(isKeptAlive(), true);
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await drover.close();
});

test("a result that will expire keeps nobody alive, nor does a task that nobody here can run", async () => {
  const { drover, settle, isKeptAlive } = await open();
  await drover.worker({}, () => "done");
  const { taskId } = await drover.submit({ agentId: "ann", action: "build" });
  await drover.ended(taskId);
  await drover.submit({ agentId: "ann", action: "train", capabilities: ["gpu"] });
  await settle();
  assert.equal(isKeptAlive(), false);
  await drover.close();
});

test("a task that rests before its next attempt keeps the program alive", async () => {
  const { drover, settle, isKeptAlive } = await open();
  await drover.worker({}, () => Promise.reject(new Error("no")));
  await drover.submit({ agentId: "ann", action: "build" });
  await settle();
  assert.equal(isKeptAlive(), true);
  await drover.close();
});
