/**
 * When a node takes its journal for full, and when no longer.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LogFailure } from "../../log/index.ts";
import { createHandClock } from "../../std/index.ts";
import { createReadOnly } from "./read-only.ts";

test("a journal is full from the first refusal until it has committed, or taken words for a while", async () => {
  const clock = createHandClock({ at: 1000 });
  const said: string[] = [];
  const { reason, isFull, heard, committed } = createReadOnly(clock, (line) => said.push(line));
  const full = new LogFailure("journal-full", "it has no room left.");
  assert.equal(isFull(new LogFailure("unreachable", "gone"), 7), false);
  assert.equal(isFull(new Error("another"), 7), false);
  assert.equal(reason(), null);
  for (let count = 0; count < 3; count++) assert.ok(isFull(full, 7));
  assert.equal(reason(), "it has no room left.");
  assert.equal(said.length, 1, "it is said once");
  await clock.advance(9000);
  heard();
  assert.ok(reason() !== null, "a word may find room where a batch does not");
  await clock.advance(1000);
  heard();
  assert.equal(reason(), null);
  assert.match(said[1] ?? "", /no longer read-only/);
  isFull(full, 7);
  committed(7);
  assert.ok(reason() !== null, "what came before the refusal may be applied after it");
  committed(8);
  assert.equal(reason(), null);
  committed(9);
  assert.equal(said.length, 4);
});
