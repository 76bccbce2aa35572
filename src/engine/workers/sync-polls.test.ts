import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerId } from "../../core/base/brand.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createSyncPolls } from "./sync-polls.ts";

const ann = "ann" as WorkerId;

test("a poll ends when its time is over, though the wall clock was set back meanwhile", async () => {
  const clock = createHandClock({ at: 10_000_000 });
  const polls = createSyncPolls(clock);
  const poll = polls.wait(ann, { waitMs: 5000, signal: undefined, hasChanges: () => false });
  clock.setWall(6_400_000);
  await clock.advance(5000);
  await poll;
});

test("a thousand polls of workers that were told nothing cost nothing while they wait", async () => {
  const clock = createHandClock({ at: 0 });
  let alarms = 0;
  const counting = {
    ...clock,
    ringAt: (...given: Parameters<typeof clock.ringAt>) => {
      alarms++;
      return clock.ringAt(...given);
    },
  };
  const polls = createSyncPolls(counting);
  let looks = 0;
  const hasChanges = (): boolean => ++looks < 0;
  const count = 1000;
  const names = Array.from({ length: count }, (_, index) => `w${index}` as WorkerId);
  const waiting = names.map((name) => polls.wait(name, { waitMs: 30_000, signal: undefined, hasChanges }));
  await clock.advance(29_999);
  assert.deepEqual([looks, alarms], [count, count], "each has looked once, and waits for its end");
  await clock.advance(1);
  await Promise.all(waiting);
});

test("what a lost answer said is said again after a second", async () => {
  const clock = createHandClock({ at: 0 });
  const polls = createSyncPolls(clock);
  polls.markNotified(ann, ["drain"]);
  const hasChanges = (): boolean => !polls.wasNotified(ann, "drain", 1000);
  let isSaid = false;
  const poll = polls.wait(ann, { waitMs: 30_000, signal: undefined, hasChanges }).then(() => {
    isSaid = true;
  });
  await clock.advance(999);
  assert.equal(isSaid, false);
  await clock.advance(1);
  await poll;
});
