/**
 * First in, first out, however the two alternate; and what has left is let go.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fifo, lengthOf, peek, push, shift, waiting } from "./fifo.ts";

test("what is put in comes out in order, and nothing that has left is held", () => {
  // Long runs, so that the array is cut on the way.
  const runs = fc.array(fc.tuple(fc.nat(3000), fc.nat(3000)), { maxLength: 8 });
  fc.assert(
    fc.property(runs, (all) => {
      const queue = fifo<{ readonly number: number }>();
      const model: number[] = [];
      let next = 0;
      for (const [puts, takes] of all) {
        for (let count = 0; count < puts; count++) {
          push(queue, { number: next });
          model.push(next++);
        }
        for (let count = 0; count < takes; count++) assert.equal(shift(queue)?.number, model.shift());
        assert.equal(lengthOf(queue), model.length);
        assert.equal(peek(queue)?.number, model[0]);
        const held = queue.items.filter((item) => item !== undefined);
        assert.deepEqual(
          held.map(({ number }) => number),
          model,
        );
        assert.equal([...waiting(queue)].length, model.length);
      }
    }),
    { numRuns: 50 },
  );
});
