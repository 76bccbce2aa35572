import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurnstile } from "./turnstile.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("so many begin at once, and the others in the order they came, one for each that is over", async () => {
  const inTurn = createTurnstile(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  for (let number = 0; number < 4; number++)
    inTurn((over) => {
      begun.push(number);
      ends.push(over);
    });
  assert.deepEqual(begun, [0, 1]);
  ends[1]?.();
  assert.deepEqual(begun, [0, 1], "a place is free in the next turn of the event loop");
  await turn();
  assert.deepEqual(begun, [0, 1, 2]);
  for (const end of [ends[0], ends[2]]) end?.();
  await turn();
  inTurn(() => begun.push(4));
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
});

test("what is over at once still leaves the rest of the turn to others", async () => {
  const inTurn = createTurnstile(1);
  let count = 0;
  for (let number = 0; number < 3; number++)
    inTurn((over) => {
      count++;
      over();
    });
  assert.equal(count, 1);
  await turn();
  assert.equal(count, 2);
});
