/**
 * A fifo is an array that is pushed to and shifted from.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fifo, itemAt, peek, push, retain, shift, toArray, waiting } from "./fifo.ts";

/** So many in, or (negative) so many out. */
const moves = fc.array(fc.integer({ min: -900, max: 900 }), { maxLength: 20 });

test("what goes in comes out in the same order, however often it went round the ring", () => {
  fc.assert(
    fc.property(moves, (given) => {
      const queue = fifo<number>();
      let naive: number[] = [];
      let next = 0;
      for (const move of given) {
        for (let count = 0; count < move; count++) {
          push(queue, next);
          naive.push(next++);
        }
        for (let count = 0; count < -move; count++) assert.equal(shift(queue), naive[count]);
        if (move < 0) naive = naive.slice(-move);
        assert.equal(queue.length, naive.length);
        assert.equal(peek(queue), naive[0]);
        assert.deepEqual([...waiting(queue)], naive);
        assert.deepEqual(toArray(queue), naive);
        assert.deepEqual(
          naive.map((_, index) => itemAt(queue, index)),
          naive,
        );
        const held = queue.items.filter((item) => item !== undefined);
        assert.equal(held.length, naive.length, "nothing that has left is held");
      }
      assert.ok(queue.items.length <= Math.max(1024, 4 * naive.length), "what is gone is let go");
    }),
    { numRuns: 100 },
  );
});

test("of what waits only some may be kept, in their order", () => {
  const queue = fifo<number>();
  for (let number = 0; number < 40; number++) push(queue, number);
  for (let number = 0; number < 10; number++) shift(queue);
  retain(queue, (number) => number % 7 === 0);
  assert.deepEqual([...waiting(queue), queue.length], [14, 21, 28, 35, 4]);
  push(queue, 3);
  assert.equal(shift(queue), 14);
});

test("an empty fifo has nothing to give", () => {
  const queue = fifo<string>();
  assert.equal(shift(queue), undefined);
  assert.equal(peek(queue), undefined);
  assert.equal(queue.length, 0);
});
