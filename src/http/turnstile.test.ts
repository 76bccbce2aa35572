import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerRefusal } from "./problem.ts";
import { createTurnstile, type Visit } from "./turnstile.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const visit = (begin: Visit["begin"]): Visit => ({ begin, isGone: () => false, leave: () => assert.fail("it stayed") });

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
  await turn();
  assert.deepEqual(begun, [0, 1, 2]);
  for (const end of [ends[0], ends[2]]) end?.();
  await turn();
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
  await turn();
  assert.equal(count, 2);
});

/** Visits that note when they begin and when they leave, and go when the test says so. */
function visitors() {
  const [begun, left, gone]: [number[], number[], Set<number>] = [[], [], new Set()];
  const ends: (() => void)[] = [];
  const visitor = (number: number): Visit => ({
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
  for (let number = 0; number <= 901; number++) inTurn(visitor(number));
  for (let number = 1; number <= 900; number++) gone.add(number);
  ends[0]?.();
  await turn();
  assert.deepEqual(begun, [0, 901]);
  assert.equal(left.length, 900);
  ends[1]?.();
  await turn();
  inTurn(visitor(902));
  assert.deepEqual(begun, [0, 901, 902], "the place of the last is free again");
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
