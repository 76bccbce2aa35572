import assert from "node:assert/strict";
import { test } from "node:test";
import { type Ahead, judge, nothingAhead, stopFetching } from "./ahead.ts";

const SLOTS = 4;
/** A sync reports a task for each age. */
const report = (ahead: Ahead, ...agesMs: readonly number[]): number => {
  judge(
    ahead,
    SLOTS,
    agesMs.map((age) => 1000 - age),
    1000,
  );
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
  assert.deepEqual([report(ahead, 50), report(ahead), report(ahead, 1, 50.1)], [3, 3, 0]);
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
