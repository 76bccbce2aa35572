/**
 * Which versions of Node are told that they are too old.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { complaintAbout } from "./node-version.ts";

const rows: [version: string, complaint: string | null][] = [
  ["20.20.2", "Drover needs Node 24 or newer, this is 20.20.2"],
  ["23.11.0", "Drover needs Node 24 or newer, this is 23.11.0"],
  ["24.0.0", null],
  ["26.1.0", null],
  ["100.0.0", null],
];
for (const [version, complaint] of rows)
  test(`Node ${version}: ${complaint ?? "welcome"}`, () => assert.equal(complaintAbout(version), complaint));

test("the engine and the test kit look at the version before they load anything else", () => {
  const firstOf = (path: string): string =>
    readFileSync(new URL(path, import.meta.url), "utf8").match(/^(?:import|export) [^;]*;/m)?.[0] ?? "";
  assert.equal(firstOf("./index.ts"), 'import "./node-version.ts";');
  assert.match(firstOf("../testing/index.ts"), /^import "\.\.\/engine\/index\.ts";$/);
});
