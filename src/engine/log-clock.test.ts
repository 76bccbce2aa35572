/**
 * Log time under a clock that jumps.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { instant } from "../core/brand.ts";
import { createHandHost } from "../testing/hand-host.ts";
import { openDrover } from "./drover.ts";
import { realHost } from "./host.ts";
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

const NO_INSTANTS: readonly unknown[] = [Number.NaN, undefined, null, "x", Number.POSITIVE_INFINITY, -1, 1e300, 5n];

test("a reading that is no instant is refused by name, and never becomes time", () => {
  let reading: unknown = 1000;
  const clock = createLogClock(() => reading as number, instant(0));
  assert.equal(clock.now(), 1000);
  for (const bad of NO_INSTANTS) {
    reading = bad;
    assert.throws(() => clock.now(), { name: "DroverError", code: "bad_request", message: /^now is / });
    assert.equal(clock.nowOrLast(), 1000);
  }
  reading = 1001.5;
  assert.equal(clock.now(), 1001);
  assert.throws(() => createLogClock(() => Number.NaN, instant(0)), { code: "bad_request" });
});

test("a bad reading refuses what is asked, changes nothing, and loses nothing that was reported", async () => {
  const { host, settle } = createHandHost({ at: 1000 });
  let bad: { readonly reading: unknown } | null = null;
  const now = (): number => (bad === null ? host.now() : (bad.reading as number));
  const drover = await openDrover({ host: { ...host, now } });
  const answers: (() => void)[] = [];
  await drover.worker({ slots: 9 }, () => new Promise<void>((resolve) => answers.push(resolve)));
  for (const reading of NO_INSTANTS) {
    await drover.submit({ agentId: "ann", action: "x" });
    await settle();
    bad = { reading };
    const { seq } = drover.state;
    await assert.rejects(drover.submit({ agentId: "ann", action: "y" }), { code: "bad_request", message: /^now is / });
    await assert.rejects(drover.cancel("tsk_1"), { code: "bad_request" });
    assert.equal(drover.state.seq, seq);
    answers.at(-1)?.();
    await settle();
    assert.equal(drover.state.inFlight, 0, "what a handler said counts");
    assert.equal((await drover.tasks()).count, answers.length);
    bad = null;
  }
  assert.ok((await drover.verify()).ok);
  for await (const { at } of drover.events()) assert.equal(at, 1000);
  await drover.close();
});

test("an alarm under a clock that says nothing rings later, not at once for ever", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  for (const reading of NO_INSTANTS) {
    let rung = 0;
    realHost(() => reading as number).setAlarm(5000, () => rung++, { keepAlive: true });
    context.mock.timers.tick(999);
    assert.equal(rung, 0);
    context.mock.timers.tick(1);
    assert.equal(rung, 1);
  }
});
