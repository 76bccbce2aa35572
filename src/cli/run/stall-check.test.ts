/**
 * A run in which nothing runs: when it goes on by itself, a person is told when; when it never will, it is over.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readPlan } from "../plan/plan-file.ts";
import { createStallCheck } from "./stall-check.ts";
import { createRunState, newRow, type Row } from "./state.ts";

const NOW = Date.UTC(2026, 0, 31, 12);
const HOUR = 3_600_000;
type Why = { readonly shut: readonly string[]; readonly at?: number | null };

async function look(
  whys: Readonly<Record<string, Why>>,
  { running = false, inFlight = 0, trees = null as string | null } = {},
): Promise<{ over: string | null; told: string[]; asks: readonly string[]; misfits: readonly string[] }> {
  const text = `tasks: { ${Object.keys(whys).map((name) => `${name}: { run: x, worktree: ${name === "tree"} }`)} }`;
  const rows = readPlan({ file: "p.yml", text, directory: "/" }).tasks.map(
    ({ name, work }): Row =>
      newRow({
        name,
        id: `${name}.1.2`,
        parent: name === "kid" ? "a.1.2" : null,
        hasWorktree: work.worktree !== null,
      }),
  );
  if (running) Object.assign(rows[0] as Row, { state: "running" });
  const told: string[] = [];
  const drover = {
    async why(id: string) {
      const { shut, at = null } = whys[id.split(".")[0] ?? ""] as Why;
      return { summary: `${id} waits.`, conditions: shut.map((code) => ({ code, ok: false })), earliestStart: at };
    },
    workers: async () => [{ inFlight }],
  };
  const noted = (line: string): void => void told.push(line);
  const stallCheck = createStallCheck({
    drover,
    runState: createRunState(rows),
    now: () => NOW,
    noted,
    shortage: async () => trees,
  });
  const over = await stallCheck();
  // What was told once is not told again.
  assert.deepEqual(await stallCheck(), over);
  return { over: over?.why ?? null, told, asks: over?.asks ?? [], misfits: over?.misfits ?? [] };
}

const budget: Why = { shut: ["project-budget"] };
const rows: [name: string, given: Parameters<typeof look>, over: string | null, told: string[]][] = [
  ["something runs", [{ a: budget }, { running: true }], null, []],
  ["something is about to start", [{ a: budget, b: { shut: [] } }], null, []],
  ["something that was stopped still has a slot", [{ a: budget }, { inFlight: 1 }], null, []],
  ["nothing ever will", [{ a: budget, b: { shut: ["dependency"] } }], "a: a waits.", []],
  ["nothing will for a year", [{ a: { ...budget, at: NOW + 8760 * HOUR } }], "a: a waits.", []],
  [
    "one will in an hour, another never",
    [{ a: budget, b: { shut: ["provider"], at: NOW + HOUR } }],
    null,
    ["nothing runs before 2026-01-31T13:00:00.000Z: b: b waits."],
  ],
  ["a tree must go first", [{ tree: { shut: ["worker-room"] } }, { trees: "1 exists" }], "tree: 1 exists", []],
  ["a tree has gone meanwhile", [{ a: budget, tree: { shut: ["worker-room"] } }], null, []],
  [
    "a tree would be no help",
    [{ a: budget, tree: { shut: ["dependency"] } }, { trees: "1 exists" }],
    "a: a waits.",
    [],
  ],
  [
    "a tree must go first, and one will start in an hour",
    [{ tree: { shut: ["worker-room"] }, b: { shut: ["provider"], at: NOW + HOUR } }, { trees: "1 exists" }],
    null,
    ["nothing runs before 2026-01-31T13:00:00.000Z: b: b waits."],
  ],
  ["one rests for a second", [{ a: { shut: ["backing-off"], at: NOW + 1000 } }], null, []],
];

describe("nothing runs, and", () => {
  for (const [name, given, over, told] of rows)
    test(name, async () => assert.deepEqual(await look(...given), { over, told, asks: [], misfits: [] }));

  test("people are asked: by all of them", async () => {
    const ask: Why = { shut: ["approval"] };
    assert.deepEqual((await look({ a: ask, b: { shut: ["dependency"] }, c: ask })).asks, ["a", "c"]);
  });

  test("a child fits no worker: it is named, and none of the plan's own is", async () => {
    const unfit: Why = { shut: ["never-fits"] };
    assert.deepEqual((await look({ a: unfit, kid: unfit })).misfits, ["kid"]);
  });
});
