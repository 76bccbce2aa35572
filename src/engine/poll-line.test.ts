import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerId } from "../core/brand.ts";
import { createPollLine } from "./poll-line.ts";

const ann = "ann" as WorkerId;

test("a poll ends when its time is over, though the clock was set back meanwhile", async () => {
  const alarms = new Map<() => void, number>();
  let now = 1_000_000;
  const line = createPollLine({
    now: () => now,
    defer: setImmediate,
    // Like a real timer: it counts what passes, whatever the clock says.
    setAlarm: (at, ring) => {
      alarms.set(ring, at - now);
      return () => void alarms.delete(ring);
    },
    newId: () => "id",
  });
  const poll = line.wait(ann, { waitMs: 5000, signal: undefined, hasNews: () => false });
  now -= 3_600_000;
  for (let passed = 0; passed < 5000; passed += 1000) {
    now += 1000;
    for (const [ring, left] of [...alarms]) {
      alarms.set(ring, left - 1000);
      if (left > 1000) continue;
      alarms.delete(ring);
      ring();
    }
    await new Promise(setImmediate);
  }
  assert.equal(alarms.size, 0);
  await poll;
});
