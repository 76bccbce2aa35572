import assert from "node:assert/strict";
import { test } from "node:test";
import { drover } from "../../../test/kits/cli/canned-server.ts";
import { lines } from "../../../test/kits/cli/test-terminal.ts";

for (const [state, code, mark] of [
  ["done", "ended", "✔"],
  ["failed", "ended", "✘"],
  ["cancelled", "ended", "✘"],
  ["skipped", "ended", "✘"],
  ["running", "running", "✔"],
] as const)
  test(`what is ${state} has ${mark}`, async () => {
    const conditions = [{ code, ok: false, detail: `the task is ${state}`, numbers: {} }];
    const answer = { task: "t", state, summary: "So it is.", conditions, ahead: { count: 0, next: [] } };
    const { out } = await drover(["why", "t"], { "GET /tasks/t/why": answer });
    assert.equal(out, lines(`t is ${state}. So it is.`, "", `  ${mark} ${code}  the task is ${state}`));
  });
