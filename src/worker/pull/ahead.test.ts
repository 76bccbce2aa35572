import assert from "node:assert/strict";
import { test } from "node:test";
import { type Ahead, judge, nothingAhead, rest, stopFetching, wantedAhead } from "./ahead.ts";

const SLOTS = 4;
const NOBODY = Number.NEGATIVE_INFINITY;
/** A sync reports a task for each age, while so many are here. */
function leave(ahead: Ahead, agesMs: readonly number[], { held = 0, heldMs = NOBODY, now = 1000 }): number {
  const load = { slots: SLOTS, cameAt: agesMs.map((age) => now - age), held, heldSince: now - heldMs };
  judge(ahead, load, now);
  return ahead.count;
}
const report = (ahead: Ahead, ...agesMs: readonly number[]): number => leave(ahead, agesMs, {});
/** Three syncs full of short tasks. */
const hurry = (ahead: Ahead, now: number): number => {
  for (let sync = 0; sync < 3; sync++) leave(ahead, [1, 1], { now });
  return ahead.count;
};
const upTo = (most: number): Ahead => ({ ...nothingAhead(), most });

test("three syncs in a row that were full of short tasks, and it fetches ahead", () => {
  const ahead = upTo(3);
  assert.deepEqual([report(ahead, 1, 2, 3, 10), report(ahead, 0, 10), report(ahead, 1, 1)], [0, 0, 3]);
});

test("one task that takes longer than a moment begins the count anew, and few at a time are no backlog", () => {
  const ahead = upTo(3);
  assert.deepEqual([report(ahead, 1, 1), report(ahead, 1, 1), report(ahead, 1, 10.1)], [0, 0, 0]);
  assert.deepEqual([report(ahead, 1, 1), report(ahead, 1), report(ahead), report(ahead, 1, 1)], [0, 0, 0, 0]);
  assert.equal(report(ahead, 1, 1), 3);
});

test("what was fetched ahead may wait for a slot first: it goes on up to a longer time, and no further", () => {
  const ahead = upTo(3);
  for (let sync = 0; sync < 3; sync++) report(ahead, 1, 1);
  assert.deepEqual([report(ahead, 49), report(ahead), report(ahead, 1, 50)], [3, 3, 0]);
  assert.deepEqual([report(ahead, 1, 1), report(ahead, 1, 1), report(ahead, 1, 1)], [0, 0, 3], "and all begins anew");
});

test("where none may be fetched ahead none is, however short they are", () => {
  const ahead = upTo(0);
  for (let sync = 0; sync < 9; sync++) assert.equal(report(ahead, 0, 0, 0, 0), 0);
});

test("who is told to stop fetching needs three such syncs again", () => {
  const ahead = upTo(1);
  for (let sync = 0; sync < 3; sync++) report(ahead, 1, 1);
  stopFetching(ahead);
  assert.deepEqual([report(ahead, 1, 1), report(ahead, 1, 1), report(ahead, 1, 1)], [0, 0, 1]);
});

test("what is still here is looked at too: while it is no longer short, nothing is fetched", () => {
  const ahead = upTo(3);
  hurry(ahead, 1000);
  assert.equal(leave(ahead, [1, 1, 1], { held: 1, heldMs: 49 }), 3);
  assert.equal(leave(ahead, [1, 1, 1], { held: 1, heldMs: 50 }), 0);
  for (let sync = 0; sync < 5; sync++) assert.equal(leave(ahead, [1, 1, 1], { held: 1, heldMs: 3000 }), 0);
  assert.equal(ahead.shortSyncs, 0, "and the count begins when it has ended");
});

test("it is asked for only by a sync that has to do with half of the slots or more", () => {
  const ahead = upTo(3);
  hurry(ahead, 1000);
  const wanted = [
    { reported: 0, held: 0 },
    { reported: 1, held: 0 },
    { reported: 0, held: 2 },
    { reported: 1, held: 1 },
    { reported: 0, held: 1 },
  ].map(({ reported, held }) => {
    leave(ahead, Array(reported).fill(1), { held, heldMs: 1 });
    return wantedAhead(ahead);
  });
  assert.deepEqual(wanted, [0, 0, 3, 3, 0]);
});

test("after a give-back there is a rest, twice as long when the stretch before was shorter than the last", () => {
  const ahead = upTo(3);
  let now = 0;
  const rests: number[] = [];
  for (const stretchMs of [0, 999, 1999, 4000, 10, 10, 10, 10, 10, 10, 10, 10]) {
    now += stretchMs;
    assert.equal(hurry(ahead, now), 3);
    stopFetching(ahead);
    rest(ahead, now);
    // What goes back a moment later was fetched before.
    rest(ahead, now + 50);
    rests.push(ahead.restMs);
    assert.equal(hurry(ahead, now + ahead.restMs - 1), 0);
    now += ahead.restMs;
  }
  assert.deepEqual(
    rests,
    [1, 2, 4, 1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1000),
  );
});
