import assert from "node:assert/strict";
import { test } from "node:test";
import { loneValues } from "./lone-values.ts";

test("a value without neighbours is lone, at the ends too; zero is a value", () => {
  assert.deepEqual(loneValues([0, null, 3, 4, null, undefined, 5, null, 1, 2, null, 7]), [0, 6, 11]);
  assert.deepEqual(loneValues([9]), [0]);
  assert.deepEqual(loneValues([]), []);
});
