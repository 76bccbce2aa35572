import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createClient } from "./client.ts";

const DOCUMENT = join(import.meta.dirname, "../../docs/reference/client.md");

test("the table of docs/reference/client.md has every method of a client, of its plans and of its files", () => {
  const rows = readFileSync(DOCUMENT, "utf8").match(/^\| about .*\n(\|.*\n)+/m)?.[0] ?? "";
  const named = new Set([...rows.matchAll(/`([\w.]+)[(`]/g)].map(([, name]) => name));
  const { plans, files, ...client } = createClient();
  const names = [
    ...Object.keys(client),
    ...Object.keys(plans).map((name) => `plans.${name}`),
    ...Object.keys(files).map((name) => `files.${name}`),
  ];
  assert.deepEqual(
    names.filter((name) => !named.has(name)),
    [],
  );
});
