/**
 * Tasks as text, a line each or in an array, and what is said of text that is none.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readBatch } from "./batch-text.ts";
import { CliProblem } from "./problem.ts";

const A = { action: "a" };

for (const [text, places] of [
  ['{"action":"a"}', ["f:1"]],
  ['\n{"action":"a"}\r\n\n  {"action":"a"}\n', ["f:2", "f:4"]],
  ['[{"action":"a"},\n{"action":"a"}]', ["f, item 1", "f, item 2"]],
] as const)
  test(`${JSON.stringify(text)} is ${places.length} of them`, () => {
    const { tasks, placeOf } = readBatch(text, "f");
    assert.deepEqual(tasks, Array(places.length).fill(A));
    assert.deepEqual(
      places.map((_, index) => placeOf(index)),
      places,
    );
  });

for (const [text, said] of [
  ["", "f has no task"],
  [" \n\n", "f has no task"],
  ["[]", "f has no task"],
  ['{"action":"a"}\n{oops', "f:2 is not JSON: "],
  ['[{"action":"a"},', "f is not JSON: "],
  ['{"action":"a"}\n7', "f:2 is no object"],
  ['[{"action":"a"}, null]', "f, item 2 is no object"],
  ["7\n".repeat(10_001), "f has 10001 tasks, and a batch at most 10000"],
] as const)
  test(`${JSON.stringify(text.slice(0, 30))} is refused: ${said}`, () => {
    assert.throws(
      () => readBatch(text, "f"),
      (error) =>
        error instanceof CliProblem && error.problem.exit === 2 && error.message.startsWith(`--batch: ${said}`),
    );
  });
