/**
 * Which finished work is known again: stories of edits.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readPlan } from "../cli/plan/plan-file.ts";
import { type Known, matchTasks } from "./identity.ts";

const plan = (tasks: string) => readPlan({ file: "p.yml", text: `tasks:\n${tasks}`, directory: "/" }).tasks;
const place = (tasks: string, known: Known[] = []) => matchTasks(plan(tasks), known);
const idsOf = (tasks: string, known: Known[] = []): Record<string, string> =>
  Object.fromEntries(place(tasks, known).map(({ task, id }) => [task.name, id]));
const ended = (ids: Record<string, string>, phase: string): Known[] => Object.values(ids).map((id) => ({ id, phase }));

const BEFORE = "  a: { run: one }\n  b: { run: two, needs: a }\n  c: { run: three }";

describe("an id", () => {
  test("is the task's name and two hashes, the same every time", () => {
    const { a = "" } = idsOf(BEFORE);
    assert.match(a, /^a\.[0-9a-f]{12}\.[0-9a-f]{8}$/);
    assert.deepEqual(idsOf(BEFORE), idsOf(BEFORE));
  });

  test("does not hang on the order in which things are written", () => {
    const [one, other] = [idsOf("  a: { run: x, env: { A: 1, B: 2 } }"), idsOf("  a: { env: { B: 2, A: 1 }, run: x }")];
    assert.deepEqual(one, other);
  });

  test("has no blank in it, and is short, whatever the values are", () => {
    const [id = ""] = Object.values(idsOf(`  a: { run: x, for: { X: ["b c\\td", ${"y".repeat(300)}] } }`));
    assert.match(id, /^a\[b_c_d\]\.[0-9a-f.]+$/);
    const [, long = ""] = Object.values(idsOf(`  a: { run: x, for: { X: [b, ${"y".repeat(300)}] } }`));
    assert.ok(long.length < 130);
  });
});

describe("after an edit", () => {
  const changes: [name: string, after: string, changed: string[]][] = [
    ["nothing changed", BEFORE, []],
    ["the command of a task that others need", BEFORE.replace("run: one", "run: uno"), ["a", "b"]],
    ["the command of one nobody needs", BEFORE.replace("run: three", "run: tres"), ["c"]],
    ["a variable", BEFORE.replace("run: three", "run: three, env: { X: 1 }"), ["c"]],
    ["a new need", BEFORE.replace("run: three", "run: three, needs: a"), ["c"]],
    ["a timeout", BEFORE.replace("run: one", "run: one, timeout: 5m"), []],
    [
      "attempts, priority, locks, project and tokens",
      BEFORE.replace("run: one", "run: one, attempts: 9, tokens: 5"),
      [],
    ],
    ["another name", BEFORE.replace("c:", "d:"), ["d"]],
  ];
  for (const [name, after, changed] of changes)
    test(`${name}: ${changed.length === 0 ? "all of it is still done" : `${changed} must run`}`, () => {
      const matched = place(after, ended(idsOf(BEFORE), "done"));
      const open = matched.filter(({ phase }) => phase !== "done").map(({ task }) => task.name);
      assert.deepEqual(open, changed);
    });

  test("what is done keeps its id, so that others still find it", () => {
    const before = idsOf(BEFORE);
    const after = BEFORE.replace("run: one", "run: one, timeout: 5m").replace("run: two", "run: dos");
    const matched = place(after, ended(before, "done"));
    assert.deepEqual(matched.find(({ task }) => task.name === "b")?.needs, [before.a]);
  });

  test("what is not done is another task under other rules, and has its place in the log no more", () => {
    const before = idsOf(BEFORE);
    const known = ended(before, "queued");
    const matched = place(BEFORE.replace("run: three", "run: three, timeout: 5m"), known);
    assert.equal(matched.find(({ task }) => task.name === "c")?.phase, null);
    assert.equal(matched.find(({ task }) => task.name === "a")?.phase, "queued");
  });
});
