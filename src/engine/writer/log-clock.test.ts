/**
 * Log time under a clock that jumps.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holds } from "../../../test/kits/laws/cases.ts";
import { instant } from "../../core/base/brand.ts";
import { clockFrom } from "../../std/clock.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { openDrover } from "../drover.ts";
import { createLogClock } from "./log-clock.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = 10 * DAY;
/** What may pass between the readings of the two clocks. */
const BLINK_MS = 50;

/** A log clock over a wall clock that can be set, and time that passes for both. */
function logClockFrom(last: number | (() => number), maxJumpMs = 5 * MINUTE) {
  const at = { wall: START, elapsed: 777 };
  const clock = { now: () => at.wall, elapsed: () => at.elapsed };
  const logClock = createLogClock({
    clock,
    last: () => instant(typeof last === "number" ? last : last()),
    maxJumpMs: () => maxJumpMs,
  });
  const pass = (ms: number): number => {
    at.elapsed += ms;
    at.wall += ms;
    return logClock.now();
  };
  const set = (by: number): number => {
    at.wall += by;
    return logClock.now();
  };
  return { logClock, at, pass, set };
}

test("a clock that goes right is followed to the millisecond, small jumps ahead included", () => {
  const { pass, set } = logClockFrom(0);
  assert.equal(pass(1), START + 1);
  assert.equal(pass(9 * HOUR), START + 1 + 9 * HOUR);
  assert.equal(set(5 * MINUTE), START + 1 + 9 * HOUR + 5 * MINUTE);
});

test("a clock set back a day and mended three seconds later leaves log time where the clock is", () => {
  const { logClock, pass, set } = logClockFrom(0);
  assert.equal(set(-DAY), START, "never back");
  assert.equal(logClock.aheadMs(), DAY);
  assert.equal(pass(3 * SECOND), START + 1500, "half the pace");
  assert.equal(set(DAY), START + 3000);
  assert.equal(logClock.aheadMs(), 0);
  assert.equal(pass(500), START + 3500);
});

test("what others wrote counts: log time is not before it, and no time that passed is counted twice", () => {
  let last = 0;
  const { pass, set } = logClockFrom(() => last);
  last = START + HOUR;
  assert.equal(pass(HOUR + MINUTE), START + HOUR + MINUTE, "the clock is past it");
  last = START + 3 * HOUR;
  assert.equal(set(0), START + 3 * HOUR);
  assert.equal(set(DAY), START + 3 * HOUR, "doubted");
  assert.equal(set(-DAY), START + 3 * HOUR);
  assert.equal(pass(SECOND), START + 3 * HOUR + SECOND / 2, "half the pace");
});

test("what was shown and not written is forgotten at the beginning, unless the clock is doubted", () => {
  const { logClock, pass, set } = logClockFrom(START - HOUR);
  set(-DAY);
  pass(MINUTE);
  logClock.begin();
  assert.equal(logClock.now(), START - HOUR, "what the log says");
  pass(MINUTE);
  const shown = logClock.now();
  set(DAY);
  logClock.begin();
  assert.equal(logClock.now(), shown, "it has jumped just now");
});

test("while the clock is behind, log time goes on at half the pace until they meet", () => {
  const { logClock, pass, set } = logClockFrom(0);
  set(-HOUR);
  assert.equal(pass(HOUR), START + HOUR / 2);
  assert.equal(logClock.aheadMs(), HOUR / 2);
  assert.equal(pass(HOUR), START + HOUR, "twice the hour later they have met");
  assert.equal(logClock.aheadMs(), 0);
  assert.equal(pass(500), START + HOUR + 500);
});

test("a clock that jumps ahead is doubted, and believed when it has stayed there for a minute", () => {
  const { logClock, pass, set } = logClockFrom(0);
  assert.equal(set(DAY), START);
  assert.equal(logClock.aheadMs(), -DAY);
  assert.equal(pass(MINUTE - 1), START + MINUTE - 1, "log time goes on by what passes");
  assert.equal(pass(1), START + DAY + MINUTE);
  assert.equal(logClock.aheadMs(), 0);
});

test("a clock that jumps ahead for less than a minute has done no harm", () => {
  const { logClock, pass, set } = logClockFrom(0);
  set(DAY);
  pass(50 * SECOND);
  assert.equal(set(-DAY), START + 50 * SECOND);
  assert.equal(set(2 * DAY), START + 50 * SECOND);
  pass(50 * SECOND);
  assert.equal(set(DAY), START + 100 * SECOND, "another jump has its own minute");
  assert.equal(pass(50 * SECOND), START + 150 * SECOND);
  assert.equal(set(-3 * DAY), START + 150 * SECOND);
  assert.equal(logClock.aheadMs(), 0);
});

test("a machine that slept is believed a minute after it woke up", () => {
  // While it sleeps nothing elapses; the wall clock goes on.
  const { pass, set } = logClockFrom(0);
  pass(HOUR);
  assert.equal(set(8 * HOUR), START + HOUR);
  assert.equal(pass(MINUTE), START + 9 * HOUR + MINUTE);
});

test("at the beginning the wall clock is believed, unless the log ends later", () => {
  assert.equal(logClockFrom(START - 300 * DAY).logClock.now(), START);
  const { logClock, at, pass } = logClockFrom(START + MINUTE);
  assert.equal(logClock.now(), START + MINUTE);
  assert.equal(logClock.alarmFor(instant(START + MINUTE + SECOND)), at.elapsed + 2 * SECOND, "half the pace");
  assert.equal(pass(2 * SECOND), START + MINUTE + SECOND);
});

test("no alarm is further away than a minute, nor than the end of a doubt", () => {
  const { logClock, at, pass, set } = logClockFrom(0);
  pass(0);
  assert.equal(logClock.alarmFor(instant(START + DAY)), at.elapsed + MINUTE);
  assert.equal(logClock.alarmFor(instant(START + 10)), at.elapsed + 10);
  assert.equal(logClock.alarmFor(instant(START - 10)), at.elapsed);
  set(DAY);
  pass(45 * SECOND);
  assert.equal(logClock.alarmFor(instant(START + DAY)), at.elapsed + 15 * SECOND);
});

type Step = { readonly do: "pass" | "set" | "pause"; readonly ms: number };
const span = fc.oneof(fc.nat(60), fc.nat(10 * MINUTE), fc.nat(3 * DAY));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: span }) },
  fc.record({
    do: fc.constant("set" as const),
    ms: fc.oneof(
      span,
      span.map((ms) => -ms),
    ),
  }),
  fc.record({ do: fc.constant("pause" as const), ms: fc.nat(BLINK_MS) }),
);

test("whatever the wall clock does, log time is never back, never still, never too fast, and meets it again", () => {
  holds(20_000, fc.tuple(fc.integer({ min: -DAY, max: DAY }), fc.array(step, { maxLength: 40 })), ([late, steps]) => {
    const at = { wall: START, elapsed: 777, pauseMs: 0 };
    const clock = {
      elapsed: () => {
        const reading = at.elapsed;
        at.elapsed += at.pauseMs;
        at.wall += at.pauseMs;
        return reading;
      },
      now: () => at.wall,
    };
    const logClock = createLogClock({ clock, last: () => instant(START + late), maxJumpMs: () => 5 * MINUTE });
    /** What any reading so far says of now: log time may be no later than the latest of these. */
    let projected = Math.max(START + late, at.wall);
    let before: number = logClock.now();
    let readAt = at.elapsed;
    const look = (): void => {
      const passed = at.elapsed - readAt;
      readAt = at.elapsed;
      const now = logClock.now();
      projected = Math.max(projected + passed + at.pauseMs, at.wall);
      assert.ok(now >= before, `back from ${before} to ${now}`);
      assert.ok(now >= before + Math.floor(passed / 2) - BLINK_MS, `${passed} ms passed, ${now - before} shown`);
      assert.ok(now <= projected + BLINK_MS, `${now - projected} ms ahead of every reading`);
      before = now;
    };
    for (const { do: what, ms } of steps) {
      if (what === "pause") at.pauseMs = ms;
      else {
        if (what === "pass") at.elapsed += ms;
        at.wall = Math.max(0, at.wall + ms);
        look();
      }
    }
    // Left alone it is believed or met: no later than a doubt, and twice what they are apart.
    at.pauseMs = 0;
    logClock.now();
    const patience = MINUTE + 2 * Math.max(0, logClock.aheadMs()) + 2;
    for (const ms of [patience - MINUTE, MINUTE]) {
      at.elapsed += ms;
      at.wall += ms;
      logClock.now();
    }
    assert.equal(logClock.now(), at.wall);
  });
});

test("an alarm rings when it is due, and no alarm leaves log time past an instant for longer than a look", () => {
  holds(20_000, fc.tuple(fc.array(step, { maxLength: 20 }), fc.nat(2 * HOUR)), ([steps, ahead]) => {
    const { logClock, at, pass, set } = logClockFrom(0);
    for (const { do: what, ms } of steps) {
      if (what === "set") set(Math.max(-at.wall, ms));
      else pass(ms);
    }
    const due = instant(logClock.now() + ahead);
    for (let looks = 0; logClock.now() < due; looks++) {
      assert.ok(looks < 1000, "it never comes");
      const ringsAt = logClock.alarmFor(due);
      assert.ok(ringsAt > at.elapsed - 1e-6 && ringsAt <= at.elapsed + MINUTE);
      pass(Math.ceil(Math.max(1, ringsAt - at.elapsed)));
    }
  });
});

test("a clock that is given is the only one there is, and is believed", async () => {
  let reading = START;
  const clock = clockFrom(() => reading);
  const logClock = createLogClock({ clock, last: () => instant(0), maxJumpMs: () => 5 * MINUTE });
  reading += DAY;
  assert.equal(logClock.now(), START + DAY);
  reading -= HOUR;
  assert.equal(logClock.now(), START + DAY);
  reading += 1000;
  assert.equal(logClock.now(), START + DAY + 500);
});

test("what a jump ahead brings about comes when the jump is noticed and believed", async () => {
  for (const [maxClockJump, expected] of [
    ["5m", MINUTE],
    ["2h", 0],
  ] as const) {
    const clock = createHandClock({ at: START });
    const drover = await openDrover({ clock, config: { log: { maxClockJump } } });
    await drover.worker({}, () => {});
    await drover.submit({ id: "t", agentId: "ann", action: "x", notBefore: START + HOUR });
    clock.setWall(START + HOUR + 1);
    let waited = 0;
    for (; (await drover.task("t")).state !== "done" && waited < 5 * MINUTE; waited += 1000) await clock.advance(1000);
    assert.ok(waited >= expected && waited <= expected + MINUTE, `${maxClockJump}: ${waited} ms`);
    assert.ok(Math.abs(drover.logTime().aheadMs) <= 1);
    await clock.settle();
    await drover.close();
  }
});

test("a wall clock set back a day for three seconds fails no deadline", async () => {
  const clock = createHandClock({ at: START });
  const drover = await openDrover({ clock });
  await drover.submit({ id: "before", agentId: "ann", action: "x", deadline: START + HOUR });
  clock.setWall(START - DAY);
  await drover.submit({ id: "during", agentId: "ann", action: "x" });
  assert.equal(drover.logTime().aheadMs, DAY);
  await clock.advance(3000);
  clock.setWall(START + 3000);
  await drover.submit({ id: "after", agentId: "ann", action: "x", deadline: START + 5 * MINUTE });
  assert.deepEqual(drover.logTime(), { at: START + 3000, aheadMs: 0 });
  await clock.advance(4 * MINUTE);
  for (const id of ["before", "after"]) assert.equal((await drover.task(id)).state, "queued", id);
  await clock.advance(MINUTE);
  assert.equal((await drover.task("after")).state, "failed");
  await drover.close();
});

const NO_INSTANTS: readonly unknown[] = [Number.NaN, undefined, null, "x", Number.POSITIVE_INFINITY, -1, 1e300, 5n];

test("a reading that is no instant is refused by name, and never becomes time", () => {
  let reading: unknown = 1000;
  const clock = { now: () => reading as number, elapsed: () => 0 };
  const logClock = createLogClock({ clock, last: () => instant(0), maxJumpMs: () => 1000 });
  assert.equal(logClock.now(), 1000);
  for (const bad of NO_INSTANTS) {
    reading = bad;
    assert.throws(() => logClock.now(), { name: "DroverError", code: "bad_request", message: /^now is / });
    assert.equal(logClock.nowOrLast(), 1000);
  }
  reading = 1001.5;
  assert.equal(logClock.now(), 1001);
  const blind = { now: () => Number.NaN, elapsed: () => 0 };
  assert.throws(() => createLogClock({ clock: blind, last: () => instant(0), maxJumpMs: () => 1000 }), {
    code: "bad_request",
  });
});

test("a bad reading refuses what is asked, changes nothing, and loses nothing that was reported", async () => {
  const clock = createHandClock({ at: 1000 });
  let bad: { readonly reading: unknown } | null = null;
  const now = (): number => (bad === null ? clock.now() : (bad.reading as number));
  const drover = await openDrover({ clock: { ...clock, now } });
  const answers: (() => void)[] = [];
  await drover.worker({ slots: 9 }, () => new Promise<void>((resolve) => answers.push(resolve)));
  for (const reading of NO_INSTANTS) {
    await drover.submit({ agentId: "ann", action: "x" });
    await clock.settle();
    bad = { reading };
    const { seq } = drover.state;
    await assert.rejects(drover.submit({ agentId: "ann", action: "y" }), { code: "bad_request", message: /^now is / });
    await assert.rejects(drover.cancel("tsk_1"), { code: "bad_request" });
    assert.equal(drover.state.seq, seq);
    answers.at(-1)?.();
    await clock.settle();
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
    clockFrom(() => reading as number).ringAt(5000, () => rung++, { keepAlive: true });
    context.mock.timers.tick(999);
    assert.equal(rung, 0);
    context.mock.timers.tick(1);
    assert.equal(rung, 1);
  }
});
