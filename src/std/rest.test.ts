/**
 * A rest ends after its time, or with its signal, and leaves no alarm behind.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { restFor } from "./clock.ts";
import { createHandClock } from "./hand-clock.ts";

test("a rest takes its time, ends with its signal, and is none where that has fired", async () => {
  const clock = createHandClock({ at: 0 });
  const ended: string[] = [];
  const signal = new AbortController();
  const rests = [
    restFor(clock, 100).then(() => ended.push("time")),
    restFor(clock, 1000, { signal: signal.signal }).then(() => ended.push("signal")),
    restFor(clock, 1000, { signal: AbortSignal.abort() }).then(() => ended.push("none")),
  ];
  await rests[2];
  assert.deepEqual(ended, ["none"]);
  await clock.advance(99);
  assert.deepEqual(ended, ["none"]);
  await clock.advance(1);
  await rests[0];
  signal.abort();
  await rests[1];
  assert.deepEqual(ended, ["none", "time", "signal"]);
  assert.deepEqual(clock.alarms(), []);
});
