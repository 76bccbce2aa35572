/**
 * Documents and comments name files that exist, and dependencies have a reason written down.
 *
 * A path may leave out its beginning (`turn/queue.ts`) and hold stars (`audit-*.ts`); some file must end with it.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");
const textOf = (path: string): string => readFileSync(join(root, path), "utf8");
const exclude = ["**/node_modules/**", "dist/**"];
const files = globSync("{src,test,tools,bench,examples,bin}/**/*.{ts,js}", { cwd: root, exclude }).map(
  (path) => `/${path}`,
);
const documents = globSync("{*.md,{docs,src,test,bench,examples}/**/*.md}", { cwd: root, exclude });

const isThere = (path: string): boolean => files.some((file) => matchesGlob(file, `/**/${path}`));
const missingIn = (text: string): string[] =>
  [...text.matchAll(/`(\w[\w./*-]*\.ts)`/g)].map(([, path = ""]) => path).filter((path) => !isThere(path));
const missingInComments = (text: string): string[] =>
  [...text.matchAll(/^ *(?:\/\*\*|\*|\/\/) .*$/gm)]
    .flatMap(([line]) => line.match(/(?<![\w./])\w[\w./*-]*(?<!\.d)\.ts\b/g) ?? [])
    .filter((path) => !isThere(path));

/** CHANGELOG tells of files as they were called then. */
for (const document of documents.filter((path) => path !== "CHANGELOG.md"))
  test(`every file that ${document} names exists`, () => assert.deepEqual(missingIn(textOf(document)), []));

test("every file that a comment names exists", () => {
  const missing = files.flatMap((file) => missingInComments(textOf(file)).map((path) => `${file} names ${path}`));
  assert.deepEqual(missing, []);
});

test("a planted path that is gone is found", () => {
  assert.deepEqual(missingIn("see `core/pump.ts`, `core/gone.ts`, `core/gone-*.ts`, `pu*.ts` and `pump.ts`"), [
    "core/gone.ts",
    "core/gone-*.ts",
  ]);
  const code = '/** As pump.ts has it. */\nimport { a } from "./elsewhere.ts";\n// Not as ' + "core/gone.ts has it.";
  assert.deepEqual(missingInComments(code), ["core/gone.ts"]);
});

test("the record of dependencies has a line for each, and for no other", () => {
  const record = textOf("docs/decisions/0014-dependencies.md");
  const { dependencies } = JSON.parse(textOf("package.json")) as { dependencies: Record<string, string> };
  const named = [...record.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
  assert.deepEqual(named, Object.keys(dependencies));
});
