/**
 * A gate says the same whoever hosts it: the library and the engine are told one story and give the same answers,
 * totals and lists.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { restore, snapshotLines } from "../../core/snapshot/snapshot.ts";
import { createGate } from "../../gate/index.ts";
import { createTestDrover } from "../../testing/index.ts";

type Host = {
  advance(ms: number): Promise<void>;
  /** The status of a call that asks, with what is said of its wait. */
  ask(id: string): Promise<unknown>;
  release(id: string): Promise<void>;
  throttle(id: string, retryAfterMs: number): Promise<void>;
  look(): Promise<{ readonly stats: object; readonly calls: readonly unknown[] }>;
};

function libraryHost(): Host {
  let now = 1_000_000;
  const gate = createGate({ maxConcurrent: 1, requests: 3, windowMs: 10_000, now: () => now });
  return {
    advance: async (ms) => {
      now += ms;
      gate.advance();
    },
    ask: async (id) => gate.schedule(id),
    release: async (id) => gate.complete(id),
    throttle: async (id, retryAfterMs) => {
      gate.rateLimited(retryAfterMs, id);
      gate.complete(id, { ok: false });
    },
    look: async () => ({
      stats: gate.queueState().stats,
      calls: gate.queueDetails().map(({ id, status, runMs, waitMs }) => [id, status, (runMs ?? waitMs) / 1000]),
    }),
  };
}

async function engineHost(): Promise<Host> {
  const config = { gates: { llm: { maxConcurrent: 1, requests: 3, window: "10s" } } };
  const { drover, clock } = await createTestDrover({ at: 1_000_000, config });
  return {
    advance: (ms) => clock.advance(ms),
    ask: async (id) => {
      const { status, position, estimatedWaitMs, retryAfterMs } = await drover.permits.ask({ gate: "llm", id });
      if (status === "rate-limited") return { status, retryAfterMs };
      return status === "queued" ? { status, position, estimatedWaitMs } : { status: "ready" };
    },
    release: (id) => drover.permits.settle(id),
    throttle: (id, retryAfterMs) => drover.permits.settle(id, { rateLimited: { retryAfterMs } }),
    look: async () => {
      const { stats, calls } = await drover.gate("llm");
      return { stats, calls: calls.map(({ id, state, seconds }) => [id, state, seconds]) };
    },
  };
}

async function storyOf({ advance, ask, release, throttle, look }: Host): Promise<unknown[]> {
  const told: unknown[] = [await ask("a"), await ask("b"), await ask("c"), await look()];
  await advance(1000);
  await release("a");
  await advance(500);
  await release("b");
  told.push(await look());
  await advance(500);
  await release("c");
  told.push(await ask("d"), await ask("e"), await look());
  await advance(8000);
  told.push(await look());
  await throttle("d", 5000);
  told.push(await ask("f"), await look());
  await advance(5000);
  told.push(await look());
  return told;
}

test("the engine's gate answers, counts and lists as the library's does", async () => {
  const [library, engine] = [await storyOf(libraryHost()), await storyOf(await engineHost())];
  assert.deepEqual(engine, library);
  assert.deepEqual(engine.slice(0, 4), [
    { status: "ready" },
    { status: "queued", position: 1, estimatedWaitMs: 30_000 },
    { status: "queued", position: 2, estimatedWaitMs: 60_000 },
    {
      stats: { scheduled: 1, completed: 0, rateLimited: 0, waitMs: 0, serviceMs: 0, peakQueued: 2, peakRunning: 1 },
      calls: [
        ["a", "running", 0],
        ["b", "queued", 0],
        ["c", "queued", 0],
      ],
    },
  ]);
  assert.deepEqual(engine[5], { status: "rate-limited", retryAfterMs: 8000 });
  assert.deepEqual(engine[9], { status: "rate-limited", retryAfterMs: 5000 });
  assert.deepEqual((engine[11] as { stats: unknown }).stats, {
    ...{ scheduled: 5, completed: 4, rateLimited: 4, waitMs: 23_500, serviceMs: 2000, peakQueued: 2, peakRunning: 1 },
  });
});

test("totals outlive the engine, and calls of a task name it", async () => {
  const kit = await createTestDrover();
  await kit.drover.worker({}, (_task, context) => context.withPermit("llm", () => new Promise(() => {})));
  await kit.drover.submit({ id: "t", agentId: "ann", project: "web", action: "think", priority: "high" });
  await kit.settle();
  await kit.clock.advance(1500);
  const { calls, stats } = await kit.drover.gate("llm");
  assert.deepEqual(
    calls.map(({ id: _, ...call }) => call),
    [{ class: "high", state: "running", seconds: 1.5, project: "web", task: "t" }],
  );
  assert.equal(stats.scheduled, 1);
  const restored = restore(snapshotLines(kit.drover.state));
  assert.deepEqual(restored.gates.get("llm" as never)?.totals, stats);
});

test("a list of calls is bounded, those next in line first; a gate nobody knows is not found", async () => {
  const config = { gates: { llm: { maxConcurrent: 2 }, unused: {} } };
  const { drover } = await createTestDrover({ config });
  for (let index = 0; index < 1010; index++)
    await drover.permits.ask({ gate: "llm", id: `c${index}`, class: index < 20 ? "low" : "normal" });
  const { calls, queued } = await drover.gate("llm");
  assert.deepEqual([calls.length, queued], [1000, 1008]);
  assert.deepEqual(
    calls.slice(0, 4).map(({ id, state }) => [id, state]),
    [
      ["c0", "running"],
      ["c1", "running"],
      ["c20", "queued"],
      ["c21", "queued"],
    ],
  );
  assert.deepEqual((await drover.gate("unused")).calls, []);
  await assert.rejects(drover.gate("nobody"), { code: "not_found" });
  await assert.rejects(drover.gate("" as never), { code: "bad_request" });
  await drover.close();
});
