import assert from "node:assert/strict";
import { test } from "node:test";
import { nextTurn } from "../std/clock.ts";
import { ServerRefusal } from "./problem.ts";
import { createTurnstile, type Visit } from "./turnstile.ts";

const visit = (begin: Visit["begin"]): Visit => ({
  holder: "ann",
  begin,
  isGone: () => false,
  leave: () => assert.fail("it stayed"),
});

test("so many begin at once, and the others in the order they came, one for each that is over", async () => {
  const inTurn = createTurnstile(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  for (let number = 0; number < 4; number++)
    inTurn(
      visit((over) => {
        begun.push(number);
        ends.push(over);
      }),
    );
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.();
  assert.deepEqual(begun, [0, 1], "a place is free in the next turn of the event loop");
  await nextTurn();
  assert.deepEqual(begun, [0, 1, 2]);
  for (const end of [ends[0], ends[2]]) end?.();
  await nextTurn();
  inTurn(visit(() => begun.push(4)));
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
});

test("what is over at once still leaves the rest of the turn to others", async () => {
  const inTurn = createTurnstile(1);
  let count = 0;
  for (let number = 0; number < 3; number++)
    inTurn(
      visit((over) => {
        count++;
        over();
      }),
    );
  assert.equal(count, 1);
  await nextTurn();
  assert.equal(count, 2);
});

/** Visits that note when they begin and when they leave, and go when the test says so. */
function visitors() {
  const [begun, left, gone]: [number[], number[], Set<number>] = [[], [], new Set()];
  const ends: (() => void)[] = [];
  const visitor = (number: number, holder = "ann"): Visit => ({
    holder,
    begin: (over) => {
      begun.push(number);
      ends.push(over);
    },
    isGone: () => gone.has(number),
    leave: () => void left.push(number),
  });
  return { begun, left, gone, ends, visitor };
}

test("those that have gone are passed over in one turn, however many they are", async () => {
  const inTurn = createTurnstile(1);
  const { begun, left, gone, ends, visitor } = visitors();
  for (let number = 0; number <= 899; number++) inTurn(visitor(number));
  for (let number = 1; number <= 898; number++) gone.add(number);
  ends[0]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 899]);
  assert.equal(left.length, 898);
  ends[1]?.();
  await nextTurn();
  inTurn(visitor(902));
  assert.deepEqual(begun, [0, 899, 902], "the place of the last is free again");
});

test("the line has an end, and those that have gone do not fill it", () => {
  const inTurn = createTurnstile(1, 3);
  const { left, gone, visitor } = visitors();
  for (let number = 0; number < 4; number++) inTurn(visitor(number));
  assert.throws(
    () => inTurn(visitor(4)),
    (error) => error instanceof ServerRefusal && error.code === "overloaded",
  );
  gone.add(2);
  inTurn(visitor(5));
  assert.deepEqual(left, [2]);
  assert.throws(() => inTurn(visitor(6)), ServerRefusal);
});

test("holders take turns: who wants one waits for one of each other", async () => {
  const inTurn = createTurnstile(1);
  const { begun, ends, visitor } = visitors();
  for (const number of [0, 1, 2, 3]) inTurn(visitor(number));
  inTurn(visitor(10, "bob"));
  inTurn(visitor(20, "cid"));
  inTurn(visitor(11, "bob"));
  for (let over = 0; over < 6; over++) {
    ends[over]?.();
    await nextTurn();
  }
  assert.deepEqual(begun, [0, 1, 10, 20, 2, 11, 3]);
});

test("the last tenth of the lines is kept for holders with few calls in them", () => {
  const inTurn = createTurnstile(1, 1000);
  const { gone, left, visitor } = visitors();
  for (let number = 0; number <= 900; number++) inTurn(visitor(number));
  assert.throws(() => inTurn(visitor(901)), /900 calls of this kind wait/);
  for (let number = 1000; number < 1010; number++) inTurn(visitor(number, "bob"));
  assert.throws(() => inTurn(visitor(1010, "bob")), ServerRefusal);
  for (let number = 1; number <= 900; number++) gone.add(number);
  inTurn(visitor(902));
  assert.equal(left.length, 900);
});

test("a line whose callers have all gone costs nobody a turn", async () => {
  const inTurn = createTurnstile(1, 3);
  const { begun, gone, ends, visitor } = visitors();
  for (const [number, holder] of [
    [0, "ann"],
    [1, "ann"],
    [2, "bob"],
    [3, "cid"],
  ] as const)
    inTurn(visitor(number, holder));
  gone.add(1);
  inTurn(visitor(4, "ann"));
  gone.add(2).add(4);
  inTurn(visitor(5, "dan"));
  ends[0]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 3]);
  ends[1]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 3, 5]);
});

test("where a holder may not have all slots, one that never ends stands in its own way alone", async () => {
  const inTurn = createTurnstile(4, 100, 2);
  const { begun, ends, visitor } = visitors();
  for (const number of [0, 1, 2, 3, 4]) inTurn(visitor(number));
  assert.deepEqual(begun, [0, 1]);
  for (const number of [10, 11, 12]) inTurn(visitor(number, "bob"));
  assert.deepEqual(begun, [0, 1, 10, 11], "others have the rest");
  inTurn(visitor(20, "cid"));
  ends[2]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 1, 10, 11, 12], "bob has been waiting, and has one slot again");
  ends[3]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 1, 10, 11, 12, 20]);
  ends[4]?.();
  ends[5]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 1, 10, 11, 12, 20], "ann has as many as may be, though slots are free");
  ends[0]?.();
  await nextTurn();
  assert.deepEqual(begun, [0, 1, 10, 11, 12, 20, 2], "one of hers ended, and her next begins");
});
