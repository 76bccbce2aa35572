/**
 * A short plan may stand for very much, or have very many mistakes: what it costs to read it has bounds.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readPlanValue } from "./plan.ts";

const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

function problemsOf(tasks: object): string[] {
  const read = readPlanValue({ tasks }, "p");
  return read.ok ? [] : read.failure.map(({ message }) => message);
}

test("a plan with very many mistakes is not read to its end", () => {
  const tasks = Object.fromEntries(range(300).map((at) => [`task_${at}`, { run: "x", needs: `tusk_${at}x` }]));
  const found = problemsOf(tasks);
  assert.equal(found.length, 100);
  assert.match(found[0] ?? "", /^task_0 needs "tusk_0x", which is no task; /);
  const unknown = Object.fromEntries(range(300).map((at) => [`task_${at}`, { run: "x", rum: 1 }]));
  assert.equal(problemsOf(unknown).length, 100);
});

test("few values do not stand for more text than a plan may have", () => {
  const most = /hold more than 32 MiB of text, the most of one plan/;
  const long = "x".repeat(100_000);
  const values = { x: range(200), y: ["a", "b"] };
  assert.match(problemsOf({ a: { for: values, run: long } }).join(), most);
  assert.match(problemsOf({ a: { for: { x: [long], y: range(400) }, run: "x" } }).join(), most);
  assert.match(
    problemsOf({ a: { for: { x: [long] }, preset: "claude", prompt: "$".concat("{x}").repeat(500) } }).join(),
    most,
  );
  const read = readPlanValue({ defaults: { env: { LONG: long } }, tasks: { a: { for: values, run: "x" } } }, "p");
  assert.match(JSON.stringify(read), most);
  assert.deepEqual(problemsOf({ a: { for: { x: range(10_000) }, run: "x".repeat(1000) } }), []);
});

test("few names do not stand for more needs than a plan may have", () => {
  const found = problemsOf({
    a: { for: { x: range(900) }, run: "x" },
    b: { for: { x: range(9000) }, run: "x", needs: "a" },
  });
  assert.deepEqual(found, [
    "the tasks up to here have more than 200000 needs, the most of one plan; put tasks that only have needs between",
  ]);
  const between = { all: { needs: "a" }, b: { for: { x: range(9000) }, run: "x", needs: "all" } };
  assert.deepEqual(problemsOf({ a: { for: { x: range(900) }, run: "x" }, ...between }), []);
});

test("what no mark closes is a mistake of its task, however often it stands there", () => {
  const [found, ...others] = problemsOf({ a: { run: "$".concat("{{ x ").repeat(40_000) } });
  assert.match(found ?? "", /has no }} that closes it/);
  assert.deepEqual(others, []);
});
