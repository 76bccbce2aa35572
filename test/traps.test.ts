/**
 * The traps: those that span layers, and the list of all of them.
 *
 * Each id stands for a defect that a real implementation of one of the specs had, or that a prototype of this one had.
 * Some test's name begins with each id, so whoever breaks one again reads in the failure which trap it was.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createTestDrover } from "../src/testing/index.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

test("W1 ten tasks that each need a permit, on ten slots, through a gate of one, all end", async () => {
  const config = { scheduler: { maxInFlight: 10 }, gates: { default: { maxConcurrent: 1, requests: 1000 } } };
  const kit = await createTestDrover({ config });
  let calls = 0;
  await kit.drover.worker({ slots: 10 }, async (_, { withPermit }) => {
    for (let call = 0; call < 3; call++) await withPermit("llm", () => void calls++);
  });
  await Promise.all(Array.from({ length: 30 }, (_, index) => kit.drover.submit(task(`t${index}`))));
  await kit.settle();
  assert.equal((await kit.drover.stats()).metrics.tasksCompleted, 30);
  assert.equal(calls, 90);
});

test("L11 a task that runs already is held at the gate like one that has not begun", async () => {
  const kit = await createTestDrover();
  const calls: number[] = [];
  await kit.drover.worker({ slots: 2 }, async ({ taskId }, { withPermit }) => {
    await withPermit("llm", () => {
      if (taskId === "first" && calls.length === 0) {
        calls.push(-1);
        throw Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 8000 });
      }
      calls.push(kit.clock.now());
    });
  });
  const begun = kit.clock.now();
  await kit.drover.submit(task("first"));
  await kit.settle();
  await kit.drover.submit(task("second"));
  await kit.clock.advance(60_000);
  assert.deepEqual(calls, [-1, begun + 8000, begun + 8000]);
});

const upTo = (letter: string, last: number, ...without: number[]): string[] =>
  Array.from({ length: last }, (_, index) => index + 1)
    .filter((number) => !without.includes(number))
    .map((number) => `${letter}${number}`);

const TRAPS: readonly string[] = [
  ...upTo("T", 17),
  ...upTo("W", 5),
  ...upTo("L", 14, 12),
  ...["P1", "P2", "P4", "P5", "P6", "P7", "P8", "P10", "P12", "P13", "P14", "P17", "P18", "P21", "P22", "P23"],
  ...upTo("Q", 20, 7, 13),
  ...upTo("C", 20, 11, 14),
  ...upTo("D", 13),
];

/** Names of tests and of rows that become tests. */
const NAMES = /(?:\b(?:test|it)\(|\bname:)\s*["'`]((?:[A-Z]\d+ )+)/g;

function idsWithTests(): Set<string> {
  const root = join(import.meta.dirname, "..");
  const ids = new Set<string>();
  for (const path of globSync("{src,test}/**/*.ts", { cwd: root }))
    for (const [, found = ""] of readFileSync(join(root, path), "utf8").matchAll(NAMES))
      for (const id of found.trim().split(" ")) ids.add(id);
  return ids;
}

test("some test's name begins with each trap's id", () => {
  const ids = idsWithTests();
  assert.deepEqual(
    TRAPS.filter((id) => !ids.has(id)),
    [],
    "traps without a test",
  );
  assert.deepEqual(
    [...ids].filter((id) => !TRAPS.includes(id)).sort(),
    [],
    "names that begin like a trap nobody knows",
  );
});
