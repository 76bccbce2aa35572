/**
 * Seed 000, the permit scheduler, case by case: what it promises, what it shows and what it tests.
 *
 * Every number, example, formula and test of that text that the gate covers is a row here. Where Drover differs on
 * purpose the row says so, with the reason; the traps behind those differences are T1 to T17 in the gate's own tests.
 * The loop engine around the seed's scheduler (max-loops, max-worktrees) is not a gate and is tested elsewhere.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CLASS_RANK,
  classOf,
  DEFAULT_GATE_SETTINGS,
  GATE_CLASSES,
  type GateClass,
} from "../../src/core/gate/settings.ts";
import { createGate, type GateOptions, GateRefusedError, type PermitGate } from "../../src/gate/index.ts";

type Stage = { gate: PermitGate; turn: (ms: number) => void };

/** The seed reads the machine's clock; here it is turned by hand. */
function stage(options: GateOptions = {}): Stage {
  let now = 0;
  const gate = createGate({ clock: { now: () => now, elapsed: () => now, ringAt: () => () => {} }, ...options });
  const turn = (ms: number): void => {
    now += ms;
    gate.advance();
  };
  return { gate, turn };
}

const names = (gate: PermitGate, status: "running" | "queued"): string[] =>
  gate.queueDetails().flatMap((detail) => (detail.status === status ? [detail.id] : []));

// Core types

test("config: the defaults are 10 concurrent, 50 requests per 60 s, normal", () => {
  const { maxConcurrent, requests, windowMs, defaultPriority } = DEFAULT_GATE_SETTINGS;
  assert.deepEqual(
    { maxConcurrent, requests, windowMs, defaultPriority },
    { maxConcurrent: 10, requests: 50, windowMs: 60_000, defaultPriority: "normal" },
  );
});

test("config: the defaults bind: the 11th call is queued, the 51st within a minute is rate limited", () => {
  const { gate, turn } = stage();
  for (let call = 1; call <= 10; call++) assert.equal(gate.schedule(`c${call}`).status, "ready");
  assert.equal(gate.schedule("c11").status, "queued");
  for (let call = 1; call <= 10; call++) gate.complete(`c${call}`);
  gate.complete("c11");
  for (let call = 12; call <= 50; call++) {
    assert.equal(gate.schedule(`c${call}`).status, "ready");
    gate.complete(`c${call}`);
  }
  turn(1000);
  assert.deepEqual(gate.schedule("c51"), { status: "rate-limited", retryAfterMs: 59_000 });
});

test("config: default_priority is what a call without one gets", () => {
  const { gate } = stage({ defaultPriority: "low" });
  gate.schedule("a");
  assert.equal(gate.queueDetails()[0]?.priority, "low");
});

// The seed numbers Low 0 to Critical 3, higher first. Drover ranks the other way round: lower first, as everywhere.
test("priority: critical before high before normal before low", () => {
  assert.deepEqual(GATE_CLASSES, ["critical", "high", "normal", "low"]);
  assert.deepEqual(CLASS_RANK, { critical: 0, high: 1, normal: 2, low: 3 });
  const { gate } = stage({ maxConcurrent: 1 });
  gate.schedule("running");
  for (const name of ["low", "normal", "critical", "high"] as const) gate.schedule(name, name);
  assert.deepEqual(names(gate, "queued"), GATE_CLASSES);
});

const inheritance: { name: string; call: Parameters<typeof classOf>[0]; gives: GateClass }[] = [
  { name: "from_parent(none) is normal", call: {}, gives: "normal" },
  { name: "a parent's priority is inherited: high", call: { priority: -100, type: "code" }, gives: "high" },
  {
    name: "a parent's priority is inherited over the type: low plan",
    call: { priority: 100, type: "plan" },
    gives: "low",
  },
  { name: "plan: high, it faces a person", call: { type: "plan" }, gives: "high" },
  { name: "spec: normal", call: { type: "spec" }, gives: "normal" },
  { name: "phase: normal", call: { type: "phase" }, gives: "normal" },
  { name: "ralph: normal", call: { type: "ralph" }, gives: "normal" },
  { name: "anything else: normal", call: { type: "dance" }, gives: "normal" },
];
for (const { name, call, gives } of inheritance) {
  test(`priority inheritance: ${name}`, () => assert.equal(classOf(call), gives));
}

// schedule

type ScheduleRow = { name: string; given: (stage: Stage) => void; options?: GateOptions; ask?: string; gives: object };
const scheduled: ScheduleRow[] = [
  { name: "Ready when there is room", given: () => {}, gives: { status: "ready" } },
  {
    name: "Rejected, Already running",
    given: ({ gate }) => gate.schedule("x"),
    gives: { status: "rejected", reason: "Already running" },
  },
  {
    name: "Rejected, Already queued",
    options: { maxConcurrent: 1 },
    given: ({ gate }) => ["a", "x"].map((id) => gate.schedule(id)),
    gives: { status: "rejected", reason: "Already queued" },
  },
  {
    name: "a completed id may be scheduled again",
    given: ({ gate }) => {
      gate.schedule("x");
      gate.complete("x");
    },
    gives: { status: "ready" },
  },
  {
    name: "Queued with the default estimate: position 1 × 30 s ÷ 2",
    options: { maxConcurrent: 2 },
    given: ({ gate }) => ["a", "b"].map((id) => gate.schedule(id)),
    gives: { status: "queued", position: 1, estimatedWaitMs: 15_000 },
  },
  {
    name: "Queued third: position 3 × 30 s ÷ 2",
    options: { maxConcurrent: 2 },
    given: ({ gate }) => ["a", "b", "c", "d"].map((id) => gate.schedule(id)),
    gives: { status: "queued", position: 3, estimatedWaitMs: 45_000 },
  },
  {
    name: "the position counts only those ahead: a high one goes before two normal ones",
    options: { maxConcurrent: 1, defaultPriority: "high" },
    given: ({ gate }) => ["a", "b", "c"].map((id) => gate.schedule(id, "normal")),
    gives: { status: "queued", position: 1, estimatedWaitMs: 30_000 },
  },
  {
    // The seed sums run time as "wait time" and takes its mean; Drover keeps them apart, the formula is the same.
    name: "the estimate follows the mean service time once known: 2 × 400 ÷ 1",
    options: { maxConcurrent: 1 },
    given: ({ gate, turn }) => {
      gate.schedule("a");
      turn(400);
      gate.complete("a");
      for (const id of ["b", "c"]) gate.schedule(id);
    },
    gives: { status: "queued", position: 2, estimatedWaitMs: 800 },
  },
  {
    name: "RateLimited with window − (now − oldest): 60 − 20 s",
    options: { requests: 1 },
    given: ({ gate, turn }) => {
      gate.schedule("a");
      turn(20_000);
    },
    gives: { status: "rate-limited", retryAfterMs: 40_000 },
  },
  {
    name: "the checks come in order: a duplicate is rejected even when rate limited",
    options: { requests: 1 },
    given: ({ gate }) => gate.schedule("x"),
    gives: { status: "rejected", reason: "Already running" },
  },
  {
    name: "the checks come in order: rate before concurrency",
    options: { requests: 1, maxConcurrent: 1 },
    given: ({ gate }) => gate.schedule("a"),
    gives: { status: "rate-limited", retryAfterMs: 60_000 },
  },
  {
    // The seed prunes strictly older samples, so at the edge it says "retry in 0" (T9).
    name: "a sample exactly one window old no longer counts",
    options: { requests: 1 },
    given: ({ gate, turn }) => {
      gate.schedule("a");
      turn(60_000);
    },
    gives: { status: "ready" },
  },
];
for (const { name, given, options, ask = "x", gives } of scheduled) {
  test(`schedule: ${name}`, () => {
    const at = stage(options);
    given(at);
    assert.deepEqual(at.gate.schedule(ask), gives);
  });
}

// In the seed a rate-limited caller is not queued and must come back by itself; in Drover it keeps a place (T6).
test("schedule: what is rate limited stays in the queue and is admitted by itself", () => {
  const { gate, turn } = stage({ requests: 1 });
  gate.schedule("a");
  gate.schedule("b");
  assert.deepEqual(gate.schedule("b"), { status: "rejected", reason: "Already queued" });
  turn(60_000);
  assert.deepEqual(names(gate, "running"), ["a", "b"]);
});

// wait_for_slot

// The seed's loop schedules again after waking and is refused (T1); here one ticket is resolved.
test("wait_for_slot: returns at once when ready, later when queued, and fails when rejected", async () => {
  const { gate } = stage({ maxConcurrent: 1 });
  assert.equal((await gate.acquire("a")).id, "a");
  const waiting = gate.acquire("b");
  await assert.rejects(
    gate.acquire("a"),
    (error) => error instanceof GateRefusedError && error.reason === "Already running",
  );
  await assert.rejects(
    gate.acquire("b"),
    (error) => error instanceof GateRefusedError && error.reason === "Already queued",
  );
  gate.complete("a");
  assert.equal((await waiting).id, "b");
});

// complete

test("complete: opens a slot, counts, and starts the next by priority and then by submission", () => {
  const { gate, turn } = stage({ maxConcurrent: 1 });
  gate.schedule("running");
  for (const id of ["n1", "n2"]) gate.schedule(id);
  turn(1);
  gate.schedule("h", "high");
  for (const expected of ["h", "n1", "n2"]) {
    gate.complete(names(gate, "running")[0] ?? "");
    assert.deepEqual(names(gate, "running"), [expected]);
  }
  assert.equal(gate.queueState().stats.completed, 3);
});

// handle_rate_limit

// The seed fills the window with false samples and sleeps with the slot in hand (T7, T8). Drover blocks for as long as
// the provider asked, at least 2^throttles s, apart from the window, and returns at once.
test("handle_rate_limit: nobody starts until the time is over, whoever reported it", () => {
  const { gate, turn } = stage();
  gate.schedule("a");
  gate.rateLimited(5000, "a");
  gate.complete("a", { ok: false });
  assert.equal(gate.queueState().stats.rateLimited, 1);
  assert.deepEqual(gate.schedule("b"), { status: "rate-limited", retryAfterMs: 5000 });
  turn(4999);
  assert.equal(gate.queueState().running, 0);
  turn(1);
  assert.equal(gate.queueState().running, 1);
});

// queue_state and queue_details

test("queue_state: running, queued, rate limited and the six totals of the seed, wait and service apart", () => {
  const { gate, turn } = stage({ maxConcurrent: 1, requests: 2 });
  for (const id of ["a", "b"]) gate.schedule(id);
  turn(300);
  gate.complete("a");
  gate.schedule("c");
  assert.deepEqual(gate.queueState(), {
    running: 1,
    queued: 1,
    rateLimited: true,
    stats: { scheduled: 2, completed: 1, rateLimited: 1, waitMs: 300, serviceMs: 300, peakQueued: 1, peakRunning: 1 },
  });
});

test("the table of the TUI: ten running, then the queued by priority and age, with the times it shows", () => {
  const { gate, turn } = stage();
  const startedAgo = new Map([
    [1, 2300],
    [7, 1800],
    [2, 3100],
    [3, 2900],
    [4, 2500],
    [5, 2100],
    [6, 1500],
    [8, 900],
    [9, 400],
    [10, 200],
  ]);
  const queuedAgo = new Map([
    [11, 5200],
    [12, 4800],
    [13, 3100],
    [14, 2000],
    [15, 500],
  ]);
  // Eleven to thirteen wait longer than the ten have run, so ten others ran before them.
  for (let filler = 0; filler < 10; filler++) gate.schedule(`filler-${filler}`, "critical");
  const exec = (number: number): string => `exec-${String(number).padStart(3, "0")}`;
  const happenings = [...queuedAgo].map(([number, ago]) => ({ number, ago, isStart: false }));
  happenings.push(...[...startedAgo].map(([number, ago]) => ({ number, ago, isStart: true })));
  happenings.sort((a, b) => b.ago - a.ago);
  let left = 5200;
  let fillers = 0;
  for (const { number, ago, isStart } of happenings) {
    turn(left - ago);
    left = ago;
    gate.schedule(exec(number), isStart ? "critical" : number > 13 ? "low" : "normal");
    if (isStart) gate.complete(`filler-${fillers++}`);
  }
  turn(left);
  const details = gate.queueDetails();
  const running = details.filter(({ status }) => status === "running");
  const queued = details.filter(({ status }) => status === "queued");
  assert.deepEqual([running.length, queued.length, gate.queueState().rateLimited], [10, 5, false]);
  // The seed sorts running and queued together by priority only; Drover lists the running ones by start (T14).
  const byStart = [...startedAgo].sort((a, b) => b[1] - a[1]);
  assert.deepEqual(
    running.map(({ id, runMs }) => [id, runMs]),
    byStart.map(([number, ago]) => [exec(number), ago]),
  );
  assert.deepEqual(
    queued.map(({ id, priority, waitMs }) => [id, priority, waitMs]),
    [...queuedAgo].map(([number, ago]) => [exec(number), number > 13 ? "low" : "normal", ago]),
  );
});

// The integration with the loop engine: steps 1 to 4

test("integration: the slot is released on success, on a rate limit and on any other error", async () => {
  const { gate, turn } = stage();
  assert.equal(await gate.withPermit(() => "answer"), "answer");
  assert.equal(gate.queueState().running, 0);
  await assert.rejects(gate.withPermit(() => Promise.reject(new Error("no"))));
  assert.equal(gate.queueState().running, 0);
  const error = Object.assign(new Error("429"), { status: 429, retryAfterMs: 3000 });
  await assert.rejects(gate.withPermit(() => Promise.reject(error), { attempts: 1 }));
  assert.deepEqual([gate.queueState().running, gate.queueState().rateLimited], [0, true]);
  turn(3000);
  assert.equal(gate.queueState().rateLimited, false);
});

// The seed's own tests

test("test_concurrent_limit", () => {
  const { gate } = stage({ maxConcurrent: 2 });
  assert.equal(gate.schedule("a", "normal").status, "ready");
  assert.equal(gate.schedule("b", "normal").status, "ready");
  const third = gate.schedule("c", "normal");
  assert.ok(third.status === "queued" && third.position === 1);
  gate.complete("a");
  const { running, queued } = gate.queueState();
  assert.deepEqual({ running, queued }, { running: 2, queued: 0 });
});

test("test_priority_ordering", () => {
  const { gate } = stage({ maxConcurrent: 1 });
  gate.schedule("running", "normal");
  gate.schedule("low", "low");
  gate.schedule("normal", "normal");
  gate.schedule("high", "high");
  gate.complete("running");
  assert.deepEqual(names(gate, "running"), ["high"]);
});

test("test_rate_limiting", () => {
  const { gate } = stage({ maxConcurrent: 10, requests: 3, windowMs: 60_000 });
  for (const id of ["a", "b", "c"]) gate.schedule(id, "normal");
  assert.equal(gate.schedule("d", "normal").status, "rate-limited");
});

// Why not just a semaphore: the four reasons

test("summary: priority, visibility, rate limiting, statistics", () => {
  const { gate, turn } = stage({ maxConcurrent: 1 });
  for (const id of ["running", "calm"]) gate.schedule(id);
  gate.schedule("urgent", "critical");
  assert.deepEqual(names(gate, "queued"), ["urgent", "calm"], "1 priority, 2 visibility");
  gate.rateLimited(10_000, "running");
  gate.complete("running", { ok: false });
  assert.deepEqual(names(gate, "running"), [], "3 rate limiting");
  turn(10_000);
  const { waitMs, peakQueued } = gate.queueState().stats;
  assert.deepEqual({ waitMs, peakQueued }, { waitMs: 10_000, peakQueued: 2 }, "4 statistics");
});
