/**
 * Log time under a clock that jumps.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { instant } from "../core/brand.ts";
import { createLogClock } from "./log-clock.ts";

function clockAt(start: number, last: number) {
  let reading = start;
  const clock = createLogClock(() => reading, instant(last));
  return {
    clock,
    set: (at: number): number => {
      reading = at;
      return clock.now();
    },
  };
}

test("a clock that goes right is followed to the millisecond, forward jumps included", () => {
  const { set } = clockAt(1000, 0);
  assert.deepEqual([1000, 1001, 5000, 9_000_000].map(set), [1000, 1001, 5000, 9_000_000]);
});

test("a clock set back an hour slows log time to half, until the two meet", () => {
  const { set } = clockAt(10_000_000, 0);
  assert.equal(set(10_000_000), 10_000_000);
  assert.equal(set(6_400_000), 10_000_000, "never back");
  assert.equal(set(6_402_000), 10_001_000, "half the pace");
  assert.equal(set(13_600_000), 13_600_000, "twice the hour later they have met");
  assert.equal(set(13_600_500), 13_600_500);
});

test("a log that ends in the future does not stop its timers", () => {
  const { clock, set } = clockAt(1000, 61_000);
  assert.equal(set(1000), 61_000);
  assert.equal(clock.machineTimeOf(instant(62_000)), 3000, "a second of log time is two of the machine's");
  assert.equal(set(3000), 62_000);
});

test("whatever the clock does, log time never goes back, and an alarm rings when it is due", () => {
  fc.assert(
    fc.property(
      fc.nat(1_000_000),
      fc.array(fc.integer({ min: -100_000, max: 100_000 }), { maxLength: 50 }),
      (last, steps) => {
        let reading = 500_000;
        const clock = createLogClock(() => reading, instant(last));
        let before: number = clock.now();
        for (const step of steps) {
          reading = Math.max(0, reading + step);
          const now = clock.now();
          assert.ok(now >= before && now >= Math.min(reading, now));
          const due = instant(now + 777);
          reading = clock.machineTimeOf(due);
          before = clock.now();
          assert.ok(before >= due, "the alarm is not early");
        }
      },
    ),
    { numRuns: 500 },
  );
});
