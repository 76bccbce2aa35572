/**
 * The seal of a call that was sent on is good for that caller and that length, and of nobody without the secret.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { forwardSeal, isForwardSeal } from "./forward-seal.ts";

const secret = "5".repeat(64);
const call = { authorization: "Bearer of-a-caller", length: "7" };

test("a seal holds for its own call, and for no other", () => {
  const seal = forwardSeal(secret, call);
  assert.ok(isForwardSeal(secret, call, seal));
  assert.ok(
    isForwardSeal(
      secret,
      { authorization: undefined, length: "7" },
      forwardSeal(secret, { ...call, authorization: "" }),
    ),
  );
  for (const other of [{ length: "8" }, { length: undefined }, { authorization: "Bearer of-another" }])
    assert.ok(!isForwardSeal(secret, { ...call, ...other }, seal), JSON.stringify(other));
  assert.ok(!isForwardSeal("6".repeat(64), call, seal));
  for (const bad of [undefined, "", "me", seal.slice(1), `${seal}0`, [seal]])
    assert.ok(!isForwardSeal(secret, call, bad));
});
