import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join, relative } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { fileNameOf } from "./safe-name.ts";

const nasty = [
  ...[
    "..",
    ".",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "-rf",
    ".hidden",
    "a..b",
    "a.lock",
    "x.",
    "~",
    "@{u}",
  ],
  ...["%2e%2e", "a:b", "a*?[", "\u0000".replace("\u0000", "z"), "ü", "日本", "x".repeat(256), "CON", "a+b", "HEAD"],
];

test("a plain id stays as it is", () => {
  for (const id of ["t1", "task_7", "sch_daily_20260131T120000Z", "0199a213-81c0-7800", "v1.2.3"])
    assert.equal(fileNameOf(id), id);
});

for (const id of nasty)
  test(`no id climbs out of its directory: ${id.slice(0, 20)}`, () => {
    const name = fileNameOf(id);
    assert.match(name, /^[A-Za-z0-9_+][A-Za-z0-9_.+-]*$/);
    assert.ok(name.length <= 120);
    assert.equal(relative("/data/logs", join("/data/logs", name)), name);
    execFileSync("git", ["check-ref-format", `refs/heads/drover/${name}-1`]);
  });

test("two ids never share a name", () => {
  const id = fc.string({ unit: fc.constantFrom(..."ab/.-+_:"), minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(fc.uniqueArray(id, { minLength: 2, maxLength: 30 }), (ids) => {
      assert.equal(new Set(ids.map(fileNameOf)).size, ids.length);
    }),
  );
  // Not even one that is spelled like another's changed name.
  assert.notEqual(fileNameOf(fileNameOf("a/b")), fileNameOf("a/b"));
});
