import assert from "node:assert/strict";
import { test } from "node:test";
import { createSharedPlaces } from "./shared-places.ts";

test("the last tenth is kept for holders that have few, and given back it may be taken again", () => {
  const places = createSharedPlaces(1000);
  const taken = Array.from({ length: 900 }, () => places.take("ann"));
  assert.ok(taken.every((giveBack) => giveBack !== null));
  assert.equal(places.take("ann"), null);
  for (let number = 0; number < 10; number++) assert.notEqual(places.take("bob"), null);
  assert.equal(places.take("bob"), null);
  for (const giveBack of taken) giveBack?.();
  assert.equal(places.count(), 10);
  assert.notEqual(places.take("ann"), null);
});

test("what is needed may have the last place, and no more", () => {
  const places = createSharedPlaces(1000);
  for (let number = 0; number < 1000; number++) assert.notEqual(places.take("fleet", { isNeeded: true }), null);
  assert.equal(places.take("fleet", { isNeeded: true }), null);
  assert.equal(places.take("bob"), null);
});
