/**
 * A bit set is a set of small whole numbers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyOutside, type BitSet, bitSet, bitsOf, hasBit, setAll, setBit } from "./bit-set.ts";

/** The edges of words, and some in between. */
const bit = fc.oneof(fc.constantFrom(0, 31, 32, 63, 64, 95, 127), fc.nat(130));
const numbers = fc.array(bit, { maxLength: 12 });

function setOf(members: Iterable<number>): BitSet {
  const set = bitSet();
  for (const member of members) setBit(set, member, true);
  return set;
}
const sorted = (members: Iterable<number>): number[] => [...new Set(members)].sort((left, right) => left - right);

test("what was put in and not taken out is in it, in ascending order", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(bit, fc.boolean()), { maxLength: 30 }), (moves) => {
      const set = bitSet();
      const naive = new Set<number>();
      for (const [member, on] of moves) {
        setBit(set, member, on);
        if (on) naive.add(member);
        else naive.delete(member);
      }
      assert.deepEqual([...bitsOf(set)], sorted(naive));
      for (let member = 0; member < 200; member++) assert.equal(hasBit(set, member), naive.has(member));
    }),
    { numRuns: 500 },
  );
});

test("whole sets are put in and taken out, whatever their lengths", () => {
  fc.assert(
    fc.property(numbers, numbers, (members, mask) => {
      const joined = setOf(members);
      setAll(joined, setOf(mask), true);
      assert.deepEqual([...bitsOf(joined)], sorted([...members, ...mask]));
      const left = setOf(members);
      setAll(left, setOf(mask), false);
      assert.deepEqual([...bitsOf(left)], sorted(members.filter((member) => !mask.includes(member))));
    }),
    { numRuns: 500 },
  );
});

test("any outside two sets: as plain lists say", () => {
  fc.assert(
    fc.property(numbers, numbers, numbers, (members, closed, other) => {
      const outside = members.some((member) => !closed.includes(member) && !other.includes(member));
      assert.equal(anyOutside(setOf(members), setOf(closed), setOf(other)), outside);
    }),
    { numRuns: 500 },
  );
});
