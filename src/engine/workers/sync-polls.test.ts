import assert from "node:assert/strict";
import { test } from "node:test";
import { within } from "../../../test/kits/waits.ts";
import type { WorkerId } from "../../core/base/brand.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createSyncPolls } from "./sync-polls.ts";

/** The clock is turned by hand: a poll that has not ended by then never does. */
const ended = (polls: readonly Promise<void>[]): Promise<unknown> =>
  within("the end of a poll whose time is over", Promise.all(polls), 5000);

const ann = "ann" as WorkerId;

test("a poll ends when its time is over, though the wall clock was set back meanwhile", async () => {
  const clock = createHandClock({ at: 10_000_000 });
  const polls = createSyncPolls(clock);
  const poll = polls.wait(ann, { waitMs: 5000, signal: undefined, hasChanges: () => false });
  clock.setWall(6_400_000);
  await clock.advance(5000);
  await ended([poll]);
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
  await ended(waiting);
});

/** When the alarms ring that these polls set, beginning one after the other, a millisecond apart. */
async function endsOf(workers: number, waitMs: number): Promise<Set<number>> {
  const clock = createHandClock({ at: 1 });
  const ends = new Set<number>();
  const odd: number[] = [];
  const polls = createSyncPolls({
    ...clock,
    ringAt: (at, ...given) => {
      ends.add(at);
      const lateMs = at - (clock.elapsed() + waitMs);
      if (lateMs > 0 || lateMs <= -100) odd.push(lateMs);
      return clock.ringAt(at, ...given);
    },
  });
  const waiting: Promise<void>[] = [];
  for (let index = 0; index < workers; index++) {
    const worker = `w${index}` as WorkerId;
    waiting.push(polls.wait(worker, { waitMs, signal: undefined, hasChanges: () => false }));
    await clock.advance(1);
  }
  assert.deepEqual(odd, [], "none ends late, nor much early");
  await clock.advance(waitMs);
  await ended(waiting);
  return ends;
}

test("long polls end together, a few at a time, and short ones when they were asked to", async () => {
  const ends = [...(await endsOf(250, 2500))];
  assert.ok(ends.length === 3 || ends.length === 4, `${ends.length} ends`);
  assert.deepEqual(
    ends.filter((at) => at % 100 !== 0),
    [],
  );
  assert.equal((await endsOf(20, 999)).size, 20);
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
  await ended([poll]);
});
