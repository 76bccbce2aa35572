import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { type ExecOptions, readExecOptions } from "./options.ts";

const good: ExecOptions = { command: "agent --fast", data: ".drover" };

test("what is not said has its default", () => {
  const setup = readExecOptions(good);
  assert.deepEqual(setup.argv, ["agent", "--fast"]);
  assert.deepEqual(
    [setup.data, setup.cwd, setup.base, setup.isolation],
    [resolve(".drover"), resolve("."), "HEAD", "none"],
  );
  assert.deepEqual([setup.maxWorktrees, setup.logBytesMax, setup.logBytesTotalMax], [50, 10 * 2 ** 20, 2 ** 30]);
  assert.deepEqual([setup.idleTimeoutMs, setup.startTimeoutMs, setup.setup, setup.workerId], [null, null, null, null]);
});

test("the kill grace is the whole ladder, of which SIGINT has half unless it is said", () => {
  const ladderOf = (options: Partial<ExecOptions>) => readExecOptions({ ...good, ...options }).ladder;
  assert.deepEqual(ladderOf({}), { interruptGraceMs: 5000, terminateGraceMs: 5000 });
  assert.deepEqual(ladderOf({ killGraceMs: 3 }), { interruptGraceMs: 1, terminateGraceMs: 2 });
  assert.deepEqual(ladderOf({ killGraceMs: 0 }), { interruptGraceMs: 0, terminateGraceMs: 0 });
  assert.deepEqual(ladderOf({ killGraceMs: 10, interruptGraceMs: 10 }), { interruptGraceMs: 10, terminateGraceMs: 0 });
  assert.throws(
    () => ladderOf({ killGraceMs: 10, interruptGraceMs: 11 }),
    /interruptGraceMs must be at most killGraceMs/,
  );
});

test("further words stand behind the command's own", () => {
  assert.deepEqual(readExecOptions({ ...good, args: ["a b"] }).argv, ["agent", "--fast", "a b"]);
  assert.deepEqual(readExecOptions({ ...good, command: "a | b", shell: true }).argv, ["/bin/sh", "-c", "a | b"]);
});

const bad: [Partial<ExecOptions> | object, RegExp][] = [
  [{ data: "" }, /^Error: data must be the path of a directory/],
  [{ command: undefined }, /either a command \(--exec\) or a preset \(--preset\)/],
  [{ preset: "claude" }, /and not both/],
  [{ command: undefined, preset: "toString" }, /preset must be one of claude, codex, aider/],
  [{ command: undefined, preset: "claude", shell: true }, /not run by a shell/],
  [{ command: "a", shell: true, args: ["b"] }, /would be lost/],
  [{ command: "a | b" }, /needs a shell/],
  [{ env: ["1A=b"] }, /^Error: env: /],
  [{ isolation: "container" }, /isolation must be none, worktree or by-task/],
  [{ base: "--upload-pack=x" }, /base must be a branch, tag or commit/],
  [{ maxWorktrees: 0 }, /maxWorktrees must be a whole number of at least 1/],
  [{ killGraceMs: -1 }, /killGraceMs must be/],
  [{ killGraceMs: Number.NaN }, /killGraceMs must be/],
  [{ idleTimeoutMs: 0 }, /idleTimeoutMs must be whole milliseconds, at least 1/],
  [{ startTimeoutMs: 1.5 }, /startTimeoutMs must be/],
  [{ logBytesMax: 100 }, /logBytesMax must be a whole number of at least 4096/],
];
for (const [options, expected] of bad)
  test(`what makes no sense is refused: ${JSON.stringify(options)}`, () => {
    assert.throws(() => readExecOptions({ ...good, ...options } as ExecOptions), expected);
  });
