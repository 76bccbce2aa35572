import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

/** All files that are loaded when this one is; types are erased and load nothing. */
function loadedBy(path: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  const text = readFileSync(path, "utf8");
  for (const [whole, target = ""] of text.matchAll(/^(?:import|export)\s[^;]*?from "([^"]+)";$/gm)) {
    if (/^(?:import|export) type\b/.test(whole)) continue;
    if (target.startsWith(".")) loadedBy(join(dirname(path), target), seen);
    else seen.add(target);
  }
  return seen;
}

test("a client starts without building a schema: it loads no package at all", () => {
  const loaded = [...loadedBy(join(import.meta.dirname, "index.ts"))];
  assert.ok(loaded.some((path) => path.endsWith("protocol/wire/endpoints.ts")));
  assert.deepEqual(
    loaded.filter((path) => !path.startsWith("/") && !path.startsWith("node:")),
    [],
  );
});
