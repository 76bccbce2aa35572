/**
 * The lines of a worker: for a person at a terminal, and for nobody else.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import type { ExecOutcome } from "../../worker/index.ts";
import type { Terminal } from "../shell/terminal.ts";
import { taskLines } from "./task-lines.ts";

const task = { taskId: "fix-7", agentId: "ann", action: "write the\u001b[2J page", attempt: 2 };

async function shown(
  outcome: ExecOutcome,
  flags: Parameters<typeof taskLines>[1] = {},
  more: Partial<Terminal> = {},
): Promise<string> {
  let now = 1000;
  const terminal = testTerminal({ now: () => now });
  const answer = await taskLines({ ...terminal, ...more }, flags)(task, async () => {
    now += 4200;
    return outcome;
  });
  assert.equal(answer, outcome);
  assert.equal(terminal.shown(), "");
  return terminal.complained();
}

test("a task has a line when it begins and one when it ends, with nothing that a terminal would obey", async () => {
  const start = "start     fix-7  write the␛[2J page  (attempt 2)\n";
  const rows: [ExecOutcome, string][] = [
    [{ outcome: "done", result: 1 }, "done      fix-7  4.2s\n"],
    [{ outcome: "failed", error: "exit code 1:\nno" }, "failed    fix-7  4.2s  exit code 1:␊no\n"],
    [{ outcome: "requeue", error: "later" }, "again     fix-7  4.2s  later\n"],
    [{ outcome: "again", note: "2 tests fail" }, "again     fix-7  4.2s  2 tests fail\n"],
    [{ outcome: "cancelled", error: "enough" }, "cancelled fix-7  4.2s  enough\n"],
    [{ outcome: "failed", error: "x".repeat(500) }, `failed    fix-7  4.2s  ${"x".repeat(200)}\n`],
  ];
  for (const [outcome, line] of rows) assert.equal(await shown(outcome), start + line);
});

test("there is none with --quiet, with --json, and where standard error is no terminal", async () => {
  const done: ExecOutcome = { outcome: "done" };
  assert.equal(await shown(done, { quiet: true }), "");
  assert.equal(await shown(done, { json: true }), "");
  assert.equal(await shown(done, {}, { isErrorTerminal: false }), "");
});
