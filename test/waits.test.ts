/**
 * Waits that fail by a sentence instead of hanging.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inbox, until, within } from "./kits/waits.ts";

const never = new Promise<never>(() => {});

test("a wait in vain says what did not come", async () => {
  await assert.rejects(within("a word", never, 1), { message: "0.001 s have passed without a word" });
  let looks = 0;
  const look = async (): Promise<void> => void looks++;
  await assert.rejects(
    until(
      "rain",
      () => false,
      () => look().then(() => new Promise(setImmediate)),
      1,
    ),
    { message: "0.001 s have passed without rain" },
  );
  const before = looks;
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  assert.ok(looks <= before + 1, "it looks no more");
});

test("what comes in time comes through, and so do its errors", async () => {
  assert.equal(await within("a value", Promise.resolve(1)), 1);
  await assert.rejects(within("a value", Promise.reject(new Error("no"))), { message: "no" });
  let count = 0;
  await until("the third", () => ++count === 3);
  await assert.rejects(
    until("it", () => {
      throw new Error("broken");
    }),
    { message: "broken" },
  );
});

test("an inbox gives what came, in order, before and after it was asked for", async () => {
  const box = inbox<number>("a number");
  box.put(1);
  box.put(2);
  assert.deepEqual([await box.next(), await box.next()], [1, 2]);
  const asked = box.next();
  box.put(3);
  assert.equal(await asked, 3);
});
