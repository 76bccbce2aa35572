import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

/** All files that are loaded when this one is; types are erased and load nothing. */
function loadedBy(path: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  const text = readFileSync(path, "utf8");
  for (const [whole, target = ""] of text.matchAll(/^(?:import|export)\s(?:[^;]*?from )?"([^"]+)";$/gm)) {
    if (/^(?:import|export) type\b/.test(whole)) continue;
    if (target.startsWith(".")) loadedBy(join(dirname(path), target), seen);
    else seen.add(target);
  }
  return seen;
}

const load = (entry: string): string[] => [...loadedBy(join(import.meta.dirname, "..", entry))];
const packagesOf = (loaded: readonly string[]): string[] =>
  loaded.filter((path) => !path.startsWith("/") && !path.startsWith("node:"));

test("a client starts without building a schema: it loads no package at all", () => {
  const loaded = load("client/index.ts");
  assert.ok(loaded.some((path) => path.endsWith("protocol/wire/endpoints.ts")));
  assert.deepEqual(packagesOf(loaded), []);
});

for (const entry of ["client", "worker", "gate"])
  test(`drover/${entry} loads neither the engine nor SQLite, and no package`, () => {
    const loaded = load(`${entry}/index.ts`);
    const heavy = /\/src\/(engine|log|server|http|sim|testing)\/|^node:sqlite$/;
    assert.deepEqual([...packagesOf(loaded), ...loaded.filter((path) => heavy.test(path))], []);
  });

test("the engine does load SQLite, so that looking for it means something", () => {
  assert.ok(load("engine/index.ts").some((path) => path.includes("/src/log/")));
  assert.ok(load("log/sqlite/database.ts").includes("node:sqlite"));
});
