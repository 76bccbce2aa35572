/**
 * A SlotMap is a Map, whatever is done to it.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SlotMap } from "./slot-map.ts";

const RUNS = { numRuns: process.env.DROVER_QUICK === "1" ? 200 : 2000 };

test("a slot map agrees with a Map after every step, order included", () => {
  const step = fc.record({ key: fc.nat(6).map(String), value: fc.option(fc.nat(), { nil: null }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const slots = new SlotMap<number>();
      const map = new Map<string, number>();
      for (const { key, value } of steps) {
        const before = map.get(key);
        if (value === null) map.delete(key);
        else map.set(key, value);
        if (value !== null && before === undefined) slots.add(key, value);
        else if (value !== null) slots.set(key, value);
        else if (steps.length % 2 === 0) assert.equal(slots.take(key), before);
        else assert.equal(slots.delete(key), before !== undefined);
        assert.deepEqual([slots.size, slots.get(key), slots.has(key)], [map.size, map.get(key), map.has(key)]);
        assert.deepEqual([[...slots.keys()], [...slots.values()]], [[...map.keys()], [...map.values()]]);
        assert.equal(slots.first(), [...map.values()][0]);
      }
    }),
    RUNS,
  );
});
