import assert from "node:assert/strict";
import { test } from "node:test";
import { cutError, ERROR_LENGTH_MAX, errorText } from "./error-text.ts";
import { shown } from "./refusal.ts";

test("what was thrown is shown as text", () => {
  const rows: [unknown, string][] = [
    [new Error("no"), "no"],
    [new RangeError(""), "RangeError"],
    ["plain", "plain"],
    [{ list: ["x".repeat(200)] }, `{"list":["${"x".repeat(200)}"]}`],
    [new Map(), "a Map"],
    [undefined, "nothing"],
  ];
  for (const [thrown, text] of rows) assert.equal(errorText(thrown), text);
});

test("a long error is cut once, and says how long it was", () => {
  const cut = cutError("x".repeat(10_000));
  assert.match(cut, /^x+… \(10000 characters\)$/);
  assert.equal(cut.length, ERROR_LENGTH_MAX);
  assert.equal(cutError(cut), cut);
  assert.equal(cutError("x".repeat(ERROR_LENGTH_MAX)), "x".repeat(ERROR_LENGTH_MAX));
  assert.ok(cutError("\ud83d\ude00".repeat(ERROR_LENGTH_MAX)).isWellFormed());
});

test("a text in a refusal is measured without its quotes and escapes", () => {
  assert.equal(shown('"'.repeat(80)), JSON.stringify('"'.repeat(80)));
  assert.equal(shown("x".repeat(101)), `"${"x".repeat(80)}"… (101 characters)`);
  assert.equal(shown("\n".repeat(101)), `"${"\\n".repeat(80)}"… (101 characters)`);
});
