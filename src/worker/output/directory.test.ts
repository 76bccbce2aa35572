import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { createOutputDirectory, type OutputDirectory } from "./directory.ts";

const home = mkdtempSync(join(tmpdir(), "drover-logs-"));
after(() => rmSync(home, { recursive: true, force: true }));
const BLOCK = 4096;

function put(
  directory: OutputDirectory,
  taskId: string,
  attempt: number,
  options: { age: number; bytes?: number },
): string {
  const path = directory.pathOf(taskId, attempt);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "x".repeat(options.bytes ?? 10));
  utimesSync(path, 1000 - options.age, 1000 - options.age);
  return path;
}

test("the oldest logs go when there is too much, an empty directory with them, and what is written stays", async () => {
  const directory = createOutputDirectory(join(home, "a"), 10 * BLOCK);
  const held = put(directory, "held", 1, { age: 900 });
  directory.hold(held);
  const old = put(directory, "old", 1, { age: 800, bytes: 3 * BLOCK });
  const middle = put(directory, "old", 2, { age: 500, bytes: 3 * BLOCK });
  const young = put(directory, "young", 1, { age: 10, bytes: 3 * BLOCK });
  assert.equal(await directory.trim(), 0);
  const last = put(directory, "last", 1, { age: 0, bytes: 2 * BLOCK });
  await directory.letGo(last);
  assert.deepEqual([held, old, middle, young, last].map(existsSync), [true, false, true, true, true]);
  await directory.letGo(held);
  put(directory, "more", 1, { age: 0, bytes: 4 * BLOCK });
  assert.equal(await directory.trim(), 2);
  assert.deepEqual([held, middle, young].map(existsSync), [false, false, true]);
  assert.equal(existsSync(dirname(old)), false);
});

test("a small log counts as a block, so that their number is bounded too", async () => {
  const directory = createOutputDirectory(join(home, "b"), 10 * BLOCK);
  for (let index = 0; index < 30; index++) await directory.letGo(put(directory, `t${index}`, 1, { age: 100 - index }));
  const left = Array.from({ length: 30 }, (_, index) => existsSync(directory.pathOf(`t${index}`, 1)));
  assert.ok(left.filter(Boolean).length <= 10);
  assert.equal(left.at(-1), true);
  assert.equal(left[0], false);
});

test("the latest attempt of a task is found, and ids that climb do not", async () => {
  const directory = createOutputDirectory(join(home, "c"), BLOCK * 100);
  assert.equal(await directory.latestOf("t"), null);
  for (const attempt of [1, 2, 10]) put(directory, "t", attempt, { age: 0 });
  assert.equal(await directory.latestOf("t"), 10);
  for (const id of ["../../x", "..", "a/../../b", "/etc/passwd"])
    assert.equal(dirname(dirname(directory.pathOf(id, 1))), join(home, "c"), id);
});
