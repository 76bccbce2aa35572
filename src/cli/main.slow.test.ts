/**
 * The front door, `bin/drover.js`, as a shell starts it.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);
const bin = join(root, "bin/drover.js");
test("bin/drover.js runs the sources", async () => {
  const { stdout, stderr } = await run(process.execPath, [bin, "help", "exit-codes"]);
  assert.ok(stdout.startsWith("Exit codes"));
  assert.equal(stderr, "");
});
test("bin/drover.js passes on the exit code", async () => {
  await assert.rejects(run(process.execPath, [bin, "zebra"]), { code: 2 });
});
test("bin/drover.js is executable, as what npm links to must be", () => {
  const { stdout } = spawnSync("sh", ["-c", `test -x ${bin} && echo yes`], { encoding: "utf8" });
  assert.equal(stdout, "yes\n");
});
// Where the machine has a Node of its own, it may be an old one: then the pinned one must take over.
if (existsSync("/usr/bin/node"))
  test("bin/drover.js runs on the Node of the machine, whatever it is", async () => {
    const { stdout } = await run("/usr/bin/node", [bin, "--version"]);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });
