import assert from "node:assert/strict";
import { test } from "node:test";
import { LastOnes, remember } from "./bounded-map.ts";

test("the oldest entry goes when there are too many, and one that is remembered again is the newest", () => {
  const map = new Map<string, number>();
  for (const [index, key] of ["a", "b", "c", "a", "d"].entries()) remember(map, key, index, 3);
  assert.deepEqual([...map], Object.entries({ c: 2, a: 3, d: 4 }));
});

test("looking for the oldest does not take longer the more there are", () => {
  /** Each look begins at the first place of the map, and passes over what was deleted there. */
  let looks = 0;
  class Watched extends Map<number, true> {
    override keys(): ReturnType<Map<number, true>["keys"]> {
      looks++;
      return super.keys();
    }
  }
  const [max, count] = [1000, 10_000];
  const map = new Watched();
  for (let key = 0; key < count; key++) {
    remember(map, key, true, max);
    assert.ok(map.size <= max && map.has(key) && (key < 500 || map.has(key - 500)));
  }
  assert.ok(looks <= (8 * count) / max, `${looks} looks for ${count} entries`);
});

test("of what is only added the last so many are there, and no more than twice as many", () => {
  const last = new LastOnes<number, number>(10);
  for (let added = 1; added <= 100; added++) {
    last.set(added, -added);
    const there = Array.from({ length: added }, (_, index) => index + 1).filter((key) => last.get(key) === -key);
    assert.ok(there.length >= Math.min(10, added) && there.length <= 20, `${there.length} of ${added}`);
    assert.deepEqual(
      there,
      there.map((_, index) => added - there.length + 1 + index),
    );
  }
});
