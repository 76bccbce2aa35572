/**
 * The live gate with a clock turned by hand: the traps of the permit scheduler, one test each at least.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../std/hand-clock.ts";
import {
  createGate,
  GateClosedError,
  type GateOptions,
  GateRefusedError,
  type Permit,
  type PermitGate,
} from "./index.ts";

type Stage = { gate: PermitGate; turn: (ms: number) => void; alarms: () => number[] };

/** A gate whose clock moves only when it is turned. */
function stage(options: GateOptions = {}): Stage {
  const clock = createHandClock({ at: 1_000_000 });
  const { turn, alarms } = clock;
  return { gate: createGate({ clock, ...options }), turn, alarms };
}

/** Lets everything that is settled arrive. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await null;
}

/** Who has been admitted so far, in order. */
function watch(calls: Record<string, Promise<Permit>>): string[] {
  const admitted: string[] = [];
  for (const [name, call] of Object.entries(calls)) {
    call.then(
      () => admitted.push(name),
      (error: Error) => admitted.push(`${name} ${error.name}`),
    );
  }
  return admitted;
}

const ids = (gate: PermitGate, status: "running" | "queued"): string[] =>
  gate
    .queueDetails()
    .filter((detail) => detail.status === status)
    .map((detail) => detail.id);

test("T1 a queued caller keeps its place, and its own promise is resolved", async () => {
  const { gate } = stage({ maxConcurrent: 1 });
  const first = await gate.acquire("first");
  const admitted = watch({ second: gate.acquire("second"), third: gate.acquire("third") });
  first.release();
  await settled();
  assert.deepEqual(admitted, ["second"]);
  assert.deepEqual([ids(gate, "running"), ids(gate, "queued")], [["second"], ["third"]]);
  gate.complete("second");
  await settled();
  assert.deepEqual(admitted, ["second", "third"]);
});

test("T2 a promoted slot nobody waits for returns by itself", async () => {
  const { gate, turn } = stage({ maxConcurrent: 1, permitTtlMs: 1000 });
  gate.schedule("a");
  gate.schedule("nobody-waits");
  const admitted = watch({ last: gate.acquire("last") });
  gate.complete("a");
  turn(999);
  await settled();
  assert.deepEqual([ids(gate, "running"), admitted], [["nobody-waits"], []]);
  turn(1);
  await settled();
  assert.deepEqual(admitted, ["last"]);
});

test("T3 a wake-up between asking and waiting is not lost", async () => {
  const { gate } = stage({ maxConcurrent: 1 });
  gate.schedule("a");
  assert.equal(gate.schedule("b").status, "queued");
  gate.complete("a");
  assert.equal((await gate.wait("b")).id, "b", "admitted before anyone waited");
});

test("T4 completing promotes the next only within the request window", async () => {
  const { gate, turn } = stage({ maxConcurrent: 1, requests: 1, windowMs: 1000 });
  gate.schedule("a");
  const admitted = watch({ b: gate.acquire("b") });
  turn(10);
  gate.complete("a");
  turn(989);
  await settled();
  assert.deepEqual(admitted, []);
  turn(1);
  await settled();
  assert.deepEqual(admitted, ["b"]);
});

test("a wall clock that is set back holds up nobody", { timeout: 60_000 }, async (context) => {
  const { now } = Date;
  let behindMs = 0;
  context.mock.method(Date, "now", () => now() - behindMs);
  const gate = createGate({ requests: 1, windowMs: 20 });
  gate.schedule("first");
  behindMs = 3_600_000;
  assert.equal((await gate.acquire("second")).id, "second");
  gate.close();
});

test("T5 completing an unknown id, or twice, changes nothing", () => {
  const { gate } = stage({ maxConcurrent: 1 });
  for (const id of ["a", "b", "c"]) gate.schedule(id);
  gate.complete("unknown");
  gate.complete("b");
  assert.deepEqual([ids(gate, "running"), ids(gate, "queued")], [["a"], ["b", "c"]]);
  gate.complete("a");
  gate.complete("a");
  assert.deepEqual(ids(gate, "running"), ["b"]);
  assert.equal(gate.queueState().stats.completed, 1);
});

test("T5 an old permit cannot release the new one of the same id", async () => {
  const { gate, turn } = stage({ maxConcurrent: 1, permitTtlMs: 100 });
  const old = await gate.acquire("a");
  turn(100);
  const fresh = await gate.acquire("a");
  old.release();
  assert.deepEqual(ids(gate, "running"), ["a"]);
  fresh.release();
  fresh.release();
  assert.deepEqual([ids(gate, "running"), gate.queueState().stats.completed], [[], 1]);
});

test("T6 rate-limited callers wait in the queue, keep their order and do not wake together", async () => {
  const { gate, turn } = stage({ requests: 1, windowMs: 1000 });
  gate.schedule("a");
  const admitted = watch({
    low: gate.acquire("low", { priority: "low" }),
    high: gate.acquire("high", { priority: "high" }),
  });
  turn(1000);
  await settled();
  assert.deepEqual(admitted, ["high"]);
  turn(1000);
  await settled();
  assert.deepEqual(admitted, ["high", "low"]);
});

test("T7 a 429 blocks for what the provider asked, not for a window", () => {
  for (const askedMs of [2000, 300_000]) {
    const { gate, turn } = stage();
    gate.rateLimited(askedMs);
    assert.deepEqual(gate.schedule("a"), { status: "rate-limited", retryAfterMs: askedMs });
    turn(askedMs - 1);
    assert.deepEqual(ids(gate, "running"), []);
    turn(1);
    assert.deepEqual(ids(gate, "running"), ["a"]);
  }
});

test("T8 no call rests with a slot in its hand: a throttled one gives it back and queues with its age", async () => {
  const { gate, turn } = stage({ maxConcurrent: 1 });
  let tries = 0;
  const call = gate.withPermit(
    () => {
      if (tries++ === 0) throw Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 5000 });
      return "answer";
    },
    { id: "throttled" },
  );
  await settled();
  assert.deepEqual([ids(gate, "running"), ids(gate, "queued"), tries], [[], ["throttled"], 1]);
  turn(10);
  gate.schedule("later");
  assert.deepEqual(ids(gate, "queued"), ["throttled", "later"]);
  turn(4990);
  await settled();
  assert.equal(await call, "answer");
  assert.deepEqual([tries, ids(gate, "running")], [2, ["later"]]);
});

test("T9 the wait is at least one millisecond, and over when it says so", () => {
  const { gate, turn } = stage({ requests: 1, windowMs: 1000 });
  gate.schedule("a");
  turn(999);
  assert.deepEqual(gate.schedule("b"), { status: "rate-limited", retryAfterMs: 1 });
  turn(1);
  assert.deepEqual(ids(gate, "running"), ["a", "b"]);
});

test("T10 retry-after is the expiry that brings the count below the cap", () => {
  const { gate, turn } = stage({ requests: 2, windowMs: 1000 });
  gate.schedule("a");
  turn(300);
  gate.schedule("b");
  turn(100);
  assert.deepEqual(gate.schedule("c"), { status: "rate-limited", retryAfterMs: 600 });
});

test("T11 wait and service time are summed apart, and the estimate rests on service time", async () => {
  const { gate, turn } = stage({ maxConcurrent: 2 });
  for (const id of ["a", "b", "c"]) gate.schedule(id);
  turn(4000);
  gate.complete("a");
  turn(1000);
  const { waitMs, serviceMs, completed } = gate.queueState().stats;
  assert.deepEqual({ waitMs, serviceMs, completed }, { waitMs: 4000, serviceMs: 4000, completed: 1 });
  assert.deepEqual(gate.schedule("d"), { status: "queued", position: 1, estimatedWaitMs: 2000 });
});

test("T11 the time a throttled call ran is not counted as waiting", async () => {
  const { gate, turn } = stage();
  let tries = 0;
  const call = gate.withPermit(() => {
    turn(700);
    if (tries++ === 0) throw Object.assign(new Error(), { status: 529 });
  });
  await settled();
  turn(2000);
  await call;
  const { waitMs, serviceMs } = gate.queueState().stats;
  assert.deepEqual({ waitMs, serviceMs }, { waitMs: 2000, serviceMs: 1400 });
});

test("T12 promotions count in totals and peaks", () => {
  const { gate } = stage({ maxConcurrent: 2 });
  for (const id of ["a", "b", "c", "d"]) gate.schedule(id);
  gate.complete("a");
  const { scheduled, peakQueued, peakRunning } = gate.queueState().stats;
  assert.deepEqual({ scheduled, peakQueued, peakRunning }, { scheduled: 3, peakQueued: 2, peakRunning: 2 });
});

test("T13 rate limited is told by the clock, also when idle", () => {
  const { gate, turn } = stage({ requests: 1, windowMs: 1000 });
  assert.equal(gate.queueState().rateLimited, false);
  gate.schedule("a");
  gate.complete("a");
  assert.equal(gate.queueState().rateLimited, true);
  turn(1000);
  assert.equal(gate.queueState().rateLimited, false);
  gate.rateLimited(5000);
  turn(4999);
  assert.equal(gate.queueState().rateLimited, true);
  turn(1);
  assert.equal(gate.queueState().rateLimited, false);
});

test("T14 details: running by start, then queued by dispatch order, each with its times", () => {
  const { gate, turn } = stage({ maxConcurrent: 2 });
  gate.schedule("r1", "low");
  turn(10);
  gate.schedule("r2", "critical");
  turn(10);
  gate.schedule("q-low", "low");
  gate.schedule("q-high", "high");
  gate.schedule("q-normal");
  turn(5);
  assert.deepEqual(gate.queueDetails(), [
    { id: "r1", priority: "low", status: "running", waitMs: 0, runMs: 25 },
    { id: "r2", priority: "critical", status: "running", waitMs: 0, runMs: 15 },
    { id: "q-high", priority: "high", status: "queued", waitMs: 5 },
    { id: "q-normal", priority: "normal", status: "queued", waitMs: 5 },
    { id: "q-low", priority: "low", status: "queued", waitMs: 5 },
  ]);
});

test("T15 low is admitted after at most three steps of aging, however many criticals come", async () => {
  const { gate, turn } = stage({ maxConcurrent: 1, requests: 1_000_000, agingPerClassMs: 1000 });
  gate.schedule("c0", "critical");
  const admitted = watch({ low: gate.acquire("low", { priority: "low" }) });
  const perRound: number[] = [];
  for (let round = 1; round <= 31; round++) {
    gate.schedule(`c${round}`, "critical");
    turn(100);
    gate.complete(ids(gate, "running")[0] ?? "");
    await settled();
    perRound.push(admitted.length);
  }
  assert.deepEqual([perRound[28], perRound[29]], [0, 1], "at 3.0 s, not before");
});

test("T17 a crash between acquire and release gives the slot back at the end of the lease", async () => {
  const { gate, turn } = stage({ maxConcurrent: 1 });
  const crashed = await gate.acquire("crashed");
  const admitted = watch({ next: gate.acquire("next") });
  turn(599_999);
  await settled();
  assert.deepEqual(admitted, []);
  turn(1);
  await settled();
  assert.deepEqual(admitted, ["next"]);
  crashed.release();
  assert.deepEqual(ids(gate, "running"), ["next"]);
});

test("W1 ten loops that work without a permit never wait for each other's", async () => {
  const { gate } = stage({ maxConcurrent: 2, requests: 1000 });
  const loop = async (): Promise<number> => {
    let calls = 0;
    for (; calls < 3; calls++) await gate.withPermit(() => settled());
    return calls;
  };
  const loops = Array.from({ length: 10 }, loop);
  assert.deepEqual(await Promise.all(loops), Array(10).fill(3));
  assert.equal(gate.queueState().stats.peakRunning, 2);
});

test("L9 a burst of 429s is one throttle, a smaller hint shortens nothing, and one probe goes out", async () => {
  const { gate, turn } = stage({ maxConcurrent: 6 });
  const burst = ["a", "b", "c", "d", "e", "f"];
  for (const id of burst) gate.schedule(id);
  for (const id of burst) gate.rateLimited(id === "c" ? 10_000 : 100, id);
  for (const id of burst) gate.complete(id, { ok: false });
  assert.deepEqual(gate.schedule("g"), { status: "rate-limited", retryAfterMs: 10_000 });
  gate.schedule("h");
  turn(10_000);
  assert.deepEqual([ids(gate, "running"), ids(gate, "queued")], [["g"], ["h"]]);
  gate.complete("g");
  gate.schedule("i");
  assert.deepEqual(ids(gate, "running"), ["h", "i"]);
});

test("L10 a late success of an old call does not end the back-off", () => {
  const { gate, turn } = stage();
  for (const id of ["old", "throttled"]) gate.schedule(id);
  gate.rateLimited(1000, "throttled");
  gate.complete("throttled", { ok: false });
  gate.complete("old");
  for (const id of ["p", "q"]) gate.schedule(id);
  turn(1999);
  assert.deepEqual(ids(gate, "running"), []);
  turn(1);
  assert.deepEqual(ids(gate, "running"), ["p"]);
});

test("L11 a loop that already runs is held too: every call passes the gate", async () => {
  const { gate, turn } = stage();
  const made: string[] = [];
  const loop = async (): Promise<void> => {
    await gate.withPermit(() => made.push("call-1"));
    await gate.withPermit(() => made.push("call-2"));
  };
  gate.schedule("other");
  const running = loop();
  gate.rateLimited(4000, "other");
  await settled();
  assert.deepEqual(made, ["call-1"]);
  turn(4000);
  await running;
  assert.deepEqual(made, ["call-1", "call-2"]);
});

test("D12 a success reported for a probe that was throttled does not clear the back-off", () => {
  const { gate, turn } = stage();
  gate.rateLimited(0);
  gate.schedule("probe");
  turn(2000);
  gate.rateLimited(0, "probe");
  gate.complete("probe", { ok: true });
  assert.deepEqual(gate.schedule("next"), { status: "rate-limited", retryAfterMs: 4000 });
});

test("cancel is true only for a queued id, and its waiter is told", async () => {
  const { gate } = stage({ maxConcurrent: 1 });
  gate.schedule("running");
  const waiting = gate.acquire("waiting");
  assert.deepEqual([gate.cancel("running"), gate.cancel("unknown"), gate.cancel("waiting")], [false, false, true]);
  await assert.rejects(waiting, (error) => error instanceof GateRefusedError && error.reason === "Cancelled");
  assert.equal(gate.cancel("waiting"), false);
  await assert.rejects(gate.wait("waiting"), (error) => error instanceof GateRefusedError && error.id === "waiting");
});

test("close refuses whoever waits or asks, twice is fine, and what runs may complete", async () => {
  const { gate, alarms } = stage({ maxConcurrent: 1 });
  const running = await gate.acquire("running");
  const waiting = gate.acquire("waiting");
  gate.close();
  gate.close();
  await assert.rejects(waiting, GateClosedError);
  await assert.rejects(gate.acquire("late"), GateClosedError);
  assert.throws(() => gate.schedule("late"), GateClosedError);
  running.release();
  assert.deepEqual([gate.queueState().running, alarms().length], [0, 0]);
});
