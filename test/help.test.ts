/**
 * Commands that are asked for help give it, and call that a success.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

for (const [script, usage] of [
  ["test/run.ts", "npm test -- "],
  ["bench/main.ts", "npm run bench -- "],
] as const)
  for (const flag of ["--help", "-h"])
    test(`${script} ${flag} says how it is used`, () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [script, flag], { encoding: "utf8" });
      assert.deepEqual([status, stderr], [0, ""]);
      assert.ok(stdout.startsWith(usage), stdout);
    });
