import assert from "node:assert/strict";
import { test } from "node:test";
import { restAfterTry } from "./backoff.ts";

test("rests triple from a second to a quarter of an hour, plus at most a quarter", () => {
  const bases = [1000, 3000, 9000, 27_000, 81_000, 243_000, 729_000, 900_000, 900_000];
  for (const [index, base] of bases.entries())
    for (const id of ["a:1", "b:2", "c:3"]) {
      const rest = restAfterTry(id, index + 1);
      assert.ok(rest >= base && rest < base * 1.25 && Number.isInteger(rest), `${index + 1}: ${rest}`);
    }
  assert.ok(restAfterTry("a:1", 1_000_000) < 900_000 * 1.25);
});

test("the spread differs from one webhook to the next, and is the same for the same", () => {
  const rests = Array.from({ length: 100 }, (_, index) => restAfterTry(`t${index}:${index}`, 1));
  assert.ok(new Set(rests).size > 50);
  assert.equal(restAfterTry("t:1", 3), restAfterTry("t:1", 3));
});

test("a receiver may ask for more time, not for less, and for an hour at most", () => {
  assert.equal(restAfterTry("a:1", 1, 60_000), 60_000);
  assert.ok(restAfterTry("a:1", 3, 10) >= 9000);
  assert.equal(restAfterTry("a:1", 1, 3_600_000), 3_600_000);
  assert.equal(restAfterTry("a:1", 1, Number.MAX_SAFE_INTEGER), 3_600_000);
});
