/**
 * A sorted list is a sorted array, however it came to be.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BrokenInvariant } from "../base/result.ts";
import {
  beginningOf,
  clear,
  countBefore,
  countWhile,
  first,
  front,
  insert,
  items,
  positionOf,
  remove,
  reseat,
  type SortedList,
  sortedList,
} from "./sorted-list.ts";

type Item = { readonly at: number; readonly order: number };
const compare = (left: Item, right: Item): number => left.at - right.at || left.order - right.order;

/** Adds (a number from 0) and takes out: the first (below -20), or another by its place (any other negative one). */
const moves = (maxLength: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: -40, max: 60 }), { maxLength, size: "max" });

function play(given: readonly number[], repeat: number): { list: SortedList<Item>; naive: Item[] } {
  const list = sortedList(compare);
  const naive: Item[] = [];
  let order = 0;
  for (const move of given) {
    for (let times = 0; times < repeat; times++) {
      if (move >= 0) {
        const item = { at: move, order: order++ };
        insert(list, item);
        naive.push(item);
        naive.sort(compare);
      } else if (naive.length > 0) {
        const [item] = naive.splice(move < -20 ? 0 : (-move * 7919) % naive.length, 1);
        remove(list, item as Item);
      }
    }
  }
  return { list, naive };
}

function isSame({ list, naive }: { list: SortedList<Item>; naive: Item[] }): void {
  assert.deepEqual([...items(list)], naive);
  assert.equal(list.size, naive.length);
  assert.equal(first(list), naive[0]);
  assert.ok(list.chunks.every((chunk, index) => chunk.length > beginningOf(list, index) && chunk.length <= 512));
  assert.ok(list.head <= 32 + list.size, "empty places are few, or fewer than items");
  for (const [place, item] of naive.entries()) assert.equal(countBefore(list, item), place);
  assert.deepEqual(front(list, 70), naive.slice(0, 70));
  for (const limit of [-1, 0, 30, 59, 60]) {
    const ahead = naive.filter(({ at }) => at < limit).length;
    assert.equal(
      countWhile(list, ({ at }) => at < limit),
      ahead,
    );
  }
}

test("a sorted list holds what a sorted array holds, in the same order", () => {
  fc.assert(
    fc.property(moves(60), (given) => isSame(play(given, 1))),
    { numRuns: 1000 },
  );
});

test("and so it does over many chunks", () => {
  fc.assert(
    fc.property(moves(40), (given) => isSame(play(given, 60))),
    { numRuns: 20 },
  );
});

test("a list rebuilt from the same items in any order has the same order", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer(), { maxLength: 60 }), fc.nat(), (numbers, turn) => {
      const given = numbers.map((at, order) => ({ at, order }));
      const turned = [...given.slice(turn % (given.length + 1)), ...given.slice(0, turn % (given.length + 1))];
      const [left, right] = [given, turned].map((some) => {
        const list = sortedList(compare);
        for (const item of some) insert(list, item);
        return [...items(list)];
      });
      assert.deepEqual(left, right);
    }),
  );
});

test("an item whose rank changes is put where it belongs, within its chunk and beyond", () => {
  type Movable = { at: number; order: number };
  const steps = fc.array(fc.tuple(fc.nat(), fc.integer({ min: -3, max: 3 }), fc.boolean()), { maxLength: 60 });
  fc.assert(
    fc.property(fc.constantFrom(1, 2, 20, 1500), fc.nat(600), steps, (count, gone, given) => {
      const naive: Movable[] = Array.from({ length: count + gone }, (_, order) => ({ at: order * 2, order }));
      const list = sortedList<Movable>(compare);
      for (const item of naive) insert(list, item);
      for (const item of naive.splice(0, gone)) remove(list, item);
      for (const [who, by, isFar] of given) {
        const item = naive[who % count] as Movable;
        const from = positionOf(list, item);
        item.at += isFar ? by * count : by;
        reseat(list, item, from);
        naive.sort(compare);
      }
      isSame({ list, naive });
    }),
  );
});

test("taking out what is not in the list is a broken invariant", () => {
  const list = sortedList(compare);
  assert.throws(() => remove(list, { at: 1, order: 1 }), BrokenInvariant);
  insert(list, { at: 1, order: 1 });
  assert.throws(() => remove(list, { at: 1, order: 1 }), BrokenInvariant, "equal, but another object");
  assert.throws(() => remove(list, { at: 2, order: 1 }), BrokenInvariant);
});

test("a list that was cleared is as good as new", () => {
  const { list } = play([1, 2, 3, -30, 4, -30], 3);
  clear(list);
  isSame({ list, naive: [] });
  const item = { at: 1, order: 1 };
  insert(list, item);
  isSame({ list, naive: [item] });
});
