/**
 * A reading of the whole log is done once for all who ask, and leaves as long a rest as it took.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { shared } from "./watching.ts";

test("a reading is shared by those who ask meanwhile; the next one begins after a rest", async () => {
  const clock = createHandClock({ at: 1_800_000_000_000 });
  const beganAt: number[] = [];
  const began = clock.elapsed();
  const read = shared(clock, async () => {
    beganAt.push(clock.elapsed() - began);
    await new Promise<void>((resolve) => void clock.ringAt(clock.elapsed() + 300, resolve));
    return beganAt.length;
  });
  const both = [read(), read()];
  await clock.advance(300);
  assert.deepEqual(await Promise.all(both), [1, 1]);
  const next = read();
  await clock.advance(299);
  assert.deepEqual(beganAt, [0]);
  await clock.advance(301);
  assert.equal(await next, 2);
  assert.deepEqual(beganAt, [0, 600]);
});
