import assert from "node:assert/strict";
import { test } from "node:test";
import { createSharedSlots } from "./shared-slots.ts";

test("the last tenth is kept for holders that have few, and given back it may be taken again", () => {
  const slots = createSharedSlots(1000);
  const taken = Array.from({ length: 900 }, () => slots.take("ann"));
  assert.ok(taken.every((giveBack) => giveBack !== null));
  assert.equal(slots.take("ann"), null);
  for (let number = 0; number < 10; number++) assert.notEqual(slots.take("bob"), null);
  assert.equal(slots.take("bob"), null);
  for (const giveBack of taken) giveBack?.();
  assert.equal(slots.count(), 10);
  assert.notEqual(slots.take("ann"), null);
});

test("what is needed may have the last slot, and no more", () => {
  const slots = createSharedSlots(1000);
  for (let number = 0; number < 1000; number++) assert.notEqual(slots.take("fleet", { isNeeded: true }), null);
  assert.equal(slots.take("fleet", { isNeeded: true }), null);
  assert.equal(slots.take("bob"), null);
});

test("who takes several at once is counted with all of them", () => {
  const slots = createSharedSlots(1000);
  const giveBack = slots.take("ann", { slots: 900 });
  assert.equal(slots.take("ann"), null);
  assert.equal(slots.take("bob", { slots: 101 }), null, "there are not as many");
  assert.notEqual(slots.take("bob", { slots: 100 }), null);
  giveBack?.();
  assert.equal(slots.count(), 100);
});
