/**
 * Texts in a block: what is written is what was given, and a long one takes no more room than it needs.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { appendText, createBlock } from "./byte-block.ts";

const MEBIBYTE = 1024 * 1024;

test("a long text makes the block as large as the text, not as large as it could be at worst", () => {
  const block = createBlock(16);
  appendText(block, "x".repeat(MEBIBYTE));
  assert.deepEqual([block.length, block.bytes.length], [MEBIBYTE, MEBIBYTE]);
});

test("a text of any length and any letters is written as it is", () => {
  const block = createBlock(16);
  const texts = ["", "a", "é", "€".repeat(127), "x".repeat(129), "€".repeat(4096), "€".repeat(4097), "😀".repeat(5000)];
  for (const text of texts) appendText(block, text);
  assert.equal(block.bytes.toString("utf8", 0, block.length), texts.join(""));
});
