/**
 * A gate that nobody speaks to lets every call out in the end, though its clock moves on with every reading and its
 * timer rings a little early: a call that waits for time alone must never be left without a timer.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holdsInTime } from "../../test/kits/laws/cases.ts";
import { createGate, type Permit, type PermitGate } from "./index.ts";

const RINGS_MAX = 2000;
const CALLS_MAX = 12;

type Timer = { readonly at: number; readonly fire: () => void };
type Call = { readonly does: "ends" | "is throttled" | "is forgotten"; readonly tokens: number };

const limits = fc.record({
  maxConcurrent: fc.integer({ min: 1, max: 3 }),
  requests: fc.integer({ min: 1, max: 4 }),
  windowMs: fc.constantFrom(1, 2, 20, 1000),
  permitTtlMs: fc.constantFrom(2, 50, 5000),
  tokens: fc.constantFrom({}, { perMinute: 100 }, { perMinute: 100, kind: "fixed" as const }),
});
const call: fc.Arbitrary<Call> = fc.record({
  does: fc.constantFrom("ends", "ends", "is throttled", "is forgotten"),
  tokens: fc.constantFrom(0, 40, 100),
});
/** How far a reading moves the clock on, and how early a timer rings; taken in turn, again and again. */
const moves = fc.array(fc.nat(3), { minLength: 1, maxLength: 7 });

/** A clock and timers of its own, for one gate. */
function createWorld(steps: readonly number[]) {
  const timers = new Set<Timer>();
  let now = 1_000_000;
  let taken = 0;
  const next = (): number => steps[taken++ % steps.length] as number;
  return {
    now(): number {
      const reading = now;
      now += next();
      return reading;
    },
    ringAt(at: number, fire: () => void): () => void {
      const timer = { at: Math.max(now + 1, at - Math.min(1, next())), fire };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    /** Rings what is due first; false if nothing is set. */
    ring(): boolean {
      const [first] = [...timers].sort((one, other) => one.at - other.at);
      if (first === undefined) return false;
      timers.delete(first);
      now = Math.max(now, first.at);
      first.fire();
      return true;
    },
  };
}

function meet(gate: PermitGate, permit: Permit, { does }: Call, isAgain: boolean): void {
  if (does === "is forgotten") return;
  if (does === "is throttled" && !isAgain) gate.rateLimited(10, permit.id);
  permit.release({ ok: does === "ends" || isAgain });
}

const arrive = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await null;
};

test("no call waits for ever at a gate whose clock moves with every reading", async () => {
  const calls = fc.array(call, { minLength: 1, maxLength: CALLS_MAX });
  await holdsInTime(5000, fc.tuple(limits, calls, moves), async ([settings, asked, steps]) => {
    const world = createWorld(steps);
    const gate = createGate({ ...settings, clock: { now: world.now, elapsed: world.now, ringAt: world.ringAt } });
    let waiting = asked.length;
    for (const [index, one] of asked.entries()) {
      void gate.acquire(`c${index}`, { tokens: one.tokens }).then((permit) => {
        waiting--;
        meet(gate, permit, one, index % 2 === 0);
      });
    }
    for (let rings = 0; rings < RINGS_MAX; rings++) {
      await arrive();
      if (waiting === 0) break;
      assert.ok(world.ring(), `${waiting} calls wait, and no timer is set`);
    }
    assert.equal(waiting, 0, `${RINGS_MAX} rings did not let them out`);
    gate.close();
  });
});
