/**
 * The simulator as a program: its flags, its help, and what it refuses.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

test("the figures of docs/scale.md are those of the run", () => {
  const [main, document] = ["main.ts", "../../docs/scale.md"].map((path) => join(import.meta.dirname, path));
  const { stdout } = spawnSync(process.execPath, [main as string, "cells"], { encoding: "utf8" });
  assert.ok(readFileSync(document as string, "utf8").includes(stdout), stdout);
});

const flags: { args: string[]; code: number; says: RegExp; script?: string }[] = [
  { args: ["--help"], code: 0, says: /npm run simulate -- --seed 42/, script: "simulate" },
  { args: ["--help"], code: 0, says: /^ {2}drover simulate --seed 42/m },
  { args: ["--bogus"], code: 2, says: /^error: Unknown option '--bogus'[\s\S]*\n {2}drover simulate \[--seed N\]/ },
  {
    args: ["--seed", "5", "--steps", "15", "--runs", "1"],
    code: 0,
    says: /^seed 5, 1 run of 15 steps[\s\S]*every rule held/,
  },
  { args: ["--seed", "-5"], code: 2, says: /seed/ },
  { args: ["--seed", "five"], code: 2, says: /--seed is a whole number from 0 to \d+, not "five"/ },
  { args: ["--steps", "0"], code: 2, says: /--steps is a whole number from 1 to 100000, not "0"/ },
  { args: ["--faults", "crash,ghosts"], code: 2, says: /--faults is all, none, or some of .*not "ghosts"/ },
  { args: ["--sneed", "5"], code: 2, says: /--sneed/ },
  { args: ["5"], code: 2, says: /'5'/ },
  { args: ["cells", "--help"], code: 0, says: /^ {2}drover simulate cells \[--cells N\]/m },
  { args: ["cells", "--cells", "20", "--projects", "500"], code: 0, says: /^seed 1: 500 projects on 20 cells/ },
  { args: ["cells", "--cells", "1"], code: 2, says: /--cells is a whole number from 2 to 10000, not "1"/ },
];
for (const { args, code, says, script = "" } of flags)
  test(`${script} simulate ${args.join(" ")} ends with ${code}`, () => {
    const main = join(import.meta.dirname, "main.ts");
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
      encoding: "utf8",
      env: { ...process.env, npm_lifecycle_event: script },
    });
    assert.equal(status, code, stderr);
    assert.match(code === 0 ? stdout : stderr, says);
  });
