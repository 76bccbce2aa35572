import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { execLogs } from "./logs.ts";

const home = mkdtempSync(join(tmpdir(), "drover-place-"));
after(() => rmSync(home, { recursive: true, force: true }));
const tail = async (taskId: string, attempt = 1) =>
  taskId === "t" ? { taskId, attempt, isRunning: false, text: `of ${attempt}\n`, isCut: true } : null;
const placeOf = (data: string): string => execLogs(data, tail).place;

test("a place keeps its name, whoever comes there, and no two have the same", () => {
  const data = join(home, "a", "data");
  const place = placeOf(data);
  assert.match(place, /^[\w-]{36}$/);
  assert.deepEqual([placeOf(data), readdirSync(data)], [place, ["place"]]);
  assert.equal(readFileSync(join(data, "place"), "utf8"), `${place}\n`);
  assert.notEqual(placeOf(join(home, "b")), place);
});

test("where the name cannot be kept, or is none, there is one for this life", () => {
  const file = join(home, "file");
  writeFileSync(file, "");
  assert.match(placeOf(file), /^[\w-]{36}$/);
  const data = mkdtempSync(join(home, "c-"));
  for (const text of ["", "../x", "a b", "x".repeat(101)]) {
    writeFileSync(join(data, "place"), text);
    assert.match(placeOf(data), /^[\w-]{36}$/, text);
    assert.deepEqual(readdirSync(data), ["place"]);
  }
});

test("what is read is what the handler has", async () => {
  const { read } = execLogs(join(home, "d"), tail);
  const size = { lines: 5, bytes: 100 };
  assert.deepEqual(await read({ taskId: "t", attempt: 2, ...size }), { text: "of 2\n", truncated: true });
  assert.equal(await read({ taskId: "u", attempt: 2, ...size }), null);
});
