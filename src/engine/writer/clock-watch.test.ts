/**
 * Log time and the clock that are apart are told, once each time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../core/base/index.ts";
import { createClockWatch } from "./clock-watch.ts";
import { createLogClock } from "./log-clock.ts";

const START = 1_767_225_600_000;

/** A log clock over clocks that a test moves. */
function world(last = START) {
  const at = { wall: START, elapsed: 0 };
  const said: (string | null)[] = [];
  const clock = { now: () => at.wall, elapsed: () => at.elapsed };
  const onReading = createClockWatch((text) => said.push(text));
  const logClock = createLogClock({ clock, last: () => instant(last), maxJumpMs: () => 300_000, onReading });
  const pass = (ms: number, jumpMs = 0): void => {
    at.elapsed += ms;
    at.wall += ms + jumpMs;
    logClock.nowOrLast();
  };
  return { said, pass };
}

test("a clock that jumps far ahead is told before it is believed, and when it is", () => {
  const { said, pass } = world();
  pass(1000);
  assert.deepEqual(said, []);
  pass(1000, 3_600_000);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^THE CLOCK of this machine has jumped 3600 s ahead .* believed/);
  for (let second = 0; second < 59; second++) pass(1000);
  assert.equal(said.length, 1, "once");
  pass(1000);
  assert.deepEqual(said.slice(1), [null]);
});

test("a clock that was set back, or is behind the log from the start, is told until they meet", () => {
  const { said, pass } = world();
  pass(1000, -20_000);
  assert.match(said[0] ?? "", /^THE CLOCK of this machine was found 2\d s behind the time in the log/);
  for (let second = 0; second < 40; second++) pass(1000);
  assert.deepEqual(said.slice(1), [null]);
  const late = world(START + 60_000);
  late.pass(1);
  assert.match(late.said[0] ?? "", /found 60 s behind the time in the log/);
});

test("a few seconds are nothing", () => {
  const { said, pass } = world();
  for (const jump of [4000, -4000, 200_000, 10]) pass(1000, jump);
  assert.deepEqual(said, []);
});
