import assert from "node:assert/strict";
import { test } from "node:test";
import { remember } from "./bounded-map.ts";

test("the oldest entry goes when there are too many, and one that is remembered again is the newest", () => {
  const map = new Map<string, number>();
  for (const [index, key] of ["a", "b", "c", "a", "d"].entries()) remember(map, key, index, 3);
  assert.deepEqual([...map], Object.entries({ c: 2, a: 3, d: 4 }));
});
