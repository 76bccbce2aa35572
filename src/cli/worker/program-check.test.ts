import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkProgram } from "./preflight.ts";

const home = mkdtempSync(join(tmpdir(), "drover-program-"));
after(() => rmSync(home, { recursive: true }));
writeFileSync(join(home, "agent.sh"), "#!/bin/sh\n");
chmodSync(join(home, "agent.sh"), 0o755);
writeFileSync(join(home, "notes.txt"), "");
const place = { cwd: home, env: { PATH: home } };

test("a worker whose program is not there is refused before it joins", () => {
  const bad = [{ command: "nosuch --x" }, { command: ["nosuch"] }, { command: "./nosuch" }, { command: "./notes.txt" }];
  for (const options of bad) assert.throws(() => checkProgram(options, place), /was not found, so this worker/);
  assert.throws(() => checkProgram({ preset: "claude" }, place), /the program claude was not found/);
});

test("one whose program is there, or cannot be known beforehand, is not", () => {
  checkProgram({ command: "agent.sh --x" }, place);
  checkProgram({ command: ["./agent.sh"] }, place);
  checkProgram({ command: "nosuch | cat", shell: true }, place);
  checkProgram({ command: "./built-later", isolation: "worktree" }, place);
});
