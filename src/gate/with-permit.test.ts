/**
 * Permits are given back on every path: by withPermit, by `await using`, and when a signal aborts.
 */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { createGate, GateRefusedError, type PermitGate } from "./index.ts";

function stage(maxConcurrent = 1): { gate: PermitGate; turn: (ms: number) => void } {
  let now = 0;
  const gate = createGate({ maxConcurrent, clock: { now: () => now, elapsed: () => now, ringAt: () => () => {} } });
  const turn = (ms: number): void => {
    now += ms;
    gate.advance();
  };
  return { gate, turn };
}

const rateLimitError = (fields: object): Error => Object.assign(new Error("rate limited"), { status: 429 }, fields);

async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await null;
}

test("withPermit gives back what the call gives and releases the permit", async () => {
  const { gate } = stage();
  assert.equal(await gate.withPermit((permit) => permit.id, { id: "a" }), "a");
  const own = (): Promise<string> => gate.withPermit((permit) => permit.id);
  assert.notEqual(await own(), await own(), "a call without a name has one of its own");
  assert.deepEqual(gate.queueState().running, 0);
});

test("withPermit throws on what the call throws, releases, and is no throttle", async () => {
  const { gate } = stage();
  const own = new Error("mine");
  await assert.rejects(
    gate.withPermit(() => Promise.reject(own)),
    (error) => error === own,
  );
  assert.deepEqual([gate.queueState().running, gate.queueState().rateLimited], [0, false]);
});

test("withPermit stops after its attempts and throws the provider's error on", async () => {
  const { gate, turn } = stage();
  let calls = 0;
  const last = rateLimitError({});
  const call = gate.withPermit(
    () => {
      calls++;
      throw last;
    },
    { attempts: 3 },
  );
  const outcome = assert.rejects(call, (error) => error === last);
  for (const restMs of [2000, 4000]) {
    await settled();
    turn(restMs);
  }
  await outcome;
  assert.deepEqual([calls, gate.queueState().running, gate.queueState().queued], [3, 0, 0]);
});

test("withPermit refuses an id that already runs, without making the call", async () => {
  const { gate } = stage(5);
  gate.schedule("a");
  await assert.rejects(
    gate.withPermit(() => assert.fail(), { id: "a" }),
    (error) => error instanceof GateRefusedError && error.reason === "Already running",
  );
});

test("await using releases at the end of the block, also when it is left by an error", async () => {
  const { gate } = stage();
  await assert.rejects(async () => {
    await using permit = await gate.acquire("a");
    assert.equal(gate.queueState().running, 1);
    throw new Error(permit.id);
  });
  assert.equal(gate.queueState().running, 0);
});

test("a signal that was aborted before asking is refused with its reason", async () => {
  const { gate } = stage();
  const reason = new Error("too late");
  await assert.rejects(gate.acquire("a", { signal: AbortSignal.abort(reason) }), (error) => error === reason);
  assert.equal(gate.queueState().running, 0);
});

test("aborted while queued: the ticket is gone and the next one is admitted in its place", async () => {
  const { gate } = stage();
  gate.schedule("running");
  const controller = new AbortController();
  const waiting = gate.acquire("waiting", { signal: controller.signal });
  const next = gate.acquire("next");
  const reason = new Error("never mind");
  controller.abort(reason);
  await assert.rejects(waiting, (error) => error === reason);
  gate.complete("running");
  assert.equal((await next).id, "next");
  assert.equal(gate.queueState().queued, 0);
});

test("aborted after the grant: the permit is the caller's, and the signal holds no listener any more", async () => {
  const { gate } = stage();
  gate.schedule("running");
  const controller = new AbortController();
  const waiting = gate.acquire("waiting", { signal: controller.signal });
  assert.equal(getEventListeners(controller.signal, "abort").length, 1);
  gate.complete("running");
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  controller.abort();
  const permit = await waiting;
  assert.equal(gate.queueState().running, 1);
  permit.release();
  assert.equal(gate.queueState().running, 0);
});

test("a throttled call that waits for its next turn can be aborted", async () => {
  const { gate } = stage();
  const controller = new AbortController();
  const reason = new Error("enough");
  const call = gate.withPermit(() => Promise.reject(rateLimitError({})), { signal: controller.signal });
  await settled();
  controller.abort(reason);
  await assert.rejects(call, (error) => error === reason);
  assert.deepEqual([gate.queueState().running, gate.queueState().queued], [0, 0]);
});

test("token windows hold calls by their estimates and settle by their usage", async () => {
  let now = 0;
  const gate = createGate({
    clock: { now: () => now, elapsed: () => now, ringAt: () => () => {} },
    tokens: { perMinute: 100 },
  });
  const first = await gate.acquire("a", { tokens: 90 });
  const second = gate.acquire("b", { tokens: 50 });
  assert.equal(gate.queueState().queued, 1);
  first.release({ usage: { inputTokens: 20, outputTokens: 20, cacheCreationTokens: 10 } });
  assert.equal((await second).id, "b");
  gate.complete("b", { usage: 50 });
  assert.equal(gate.queueState().rateLimited, true);
  now = 60_000;
  assert.equal(gate.queueState().rateLimited, false);
});

test("projects share a gate by weight", async () => {
  const { gate } = stage();
  gate.schedule("running");
  const order: string[] = [];
  for (let index = 0; index < 6; index++) {
    for (const [project, weight] of [
      ["a", 2],
      ["b", 1],
    ] as const) {
      void gate.acquire(`${project}${index}`, { project, weight }).then((permit) => {
        order.push(project);
        permit.release();
      });
    }
  }
  gate.complete("running");
  while (order.length < 12) await null;
  assert.equal(order.slice(0, 6).filter((project) => project === "a").length, 4);
});

test("on the real clock a waiter is admitted when the window frees, and the process stays for it", async () => {
  const gate = createGate({ requests: 1, windowMs: 5 });
  (await gate.acquire("a")).release();
  const permit = await gate.acquire("b");
  assert.ok(permit.grantedAt > 0);
  gate.close();
});

test("a clock turned by hand without a timer is looked at again while someone waits", async () => {
  let now = 0;
  const gate = createGate({ requests: 1, windowMs: 60_000, now: () => now });
  gate.schedule("a");
  const waiting = gate.acquire("b");
  now = 60_000;
  assert.equal((await waiting).id, "b");
  gate.close();
});
