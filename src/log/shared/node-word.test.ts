/**
 * A node's word is believed by those that share its secret, in answer to their own question, and in full.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isQuestion, newQuestion, readWord, sealWord } from "./node-word.ts";

const secret = "5".repeat(64);
const word = { node: "a", url: "http://a:4747", leads: true, epoch: 3, moment: "here-7" };

test("a word is read as it was given, and not by other secrets, other questions, or with anything changed", () => {
  const question = newQuestion();
  assert.ok(isQuestion(question));
  assert.notEqual(newQuestion(), question);
  const told = sealWord(secret, question, word);
  assert.deepEqual(readWord(secret, question, JSON.parse(JSON.stringify(told))), word);
  assert.equal(readWord("6".repeat(64), question, told), null);
  assert.equal(readWord(secret, newQuestion(), told), null, "what was said before is worth nothing");
  for (const change of [
    { node: "b" },
    { url: "http://b:4747" },
    { leads: false },
    { epoch: 4 },
    { moment: "here-8" },
    { seal: "0" },
  ])
    assert.equal(readWord(secret, question, { ...told, ...change }), null, JSON.stringify(change));
});

test("what is no word is none", () => {
  const question = newQuestion();
  const told = sealWord(secret, question, word);
  for (const bad of [null, 1, "x", [], {}, { ...told, seal: undefined }, { ...told, leads: 1 }, { ...told, epoch: -1 }])
    assert.equal(readWord(secret, question, bad), null, JSON.stringify(bad));
  for (const bad of [null, "", "x", "0".repeat(31), "0".repeat(33), "G".repeat(32)]) assert.ok(!isQuestion(bad));
});
