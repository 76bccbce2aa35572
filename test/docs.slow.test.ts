/**
 * The documentation, held to its word.
 *
 * Every `ts` block of README.md and docs/guide/ is a whole program: it type-checks, it runs, and it prints exactly the
 * lines that its `// → ` comments promise, in that order. (Code that is only to be looked at is fenced as `text`.) The
 * reference names every knob with its default, every error, every event with its fields and every name that is
 * exported; and no link between documents leads nowhere.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import * as core from "../src/core/index.ts";
import { DEFAULT_CONFIG, FIELDS, type Refusal } from "../src/core/index.ts";
import type { WhyCode } from "../src/core/why-gates.ts";
import { type DroverErrorCode, refused } from "../src/engine/drover-error.ts";
import * as engine from "../src/engine/index.ts";
import * as gate from "../src/gate/index.ts";
import type { LogFailureCode } from "../src/log/log.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const BLOCK_LIMIT_MS = 60_000;
const PROMISE = /\/\/ → (.*)$/gm;

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const place = mkdtempSync(join(tmpdir(), "drover-docs-"));
after(() => rmSync(place, { recursive: true, force: true }));
/** The programs all load the same sources: the types are stripped from them once. */
const env = { ...process.env, NODE_COMPILE_CACHE: join(place, "cache") };

// ------------------------------------------------------------------ programs

type Block = { readonly name: string; readonly file: string; readonly code: string };

function blocksOf(path: string): Block[] {
  const text = read(path);
  return [...text.matchAll(/^```(?:ts|js)\n(.*?)^```$/gms)].map(({ 1: code = "", index }) => {
    const line = text.slice(0, index).split("\n").length;
    return { name: `${path}:${line}`, file: `${path.replaceAll(/\W/g, "-")}-${line}.mts`, code };
  });
}

/** What a program imports from the package, it imports from the sources here. */
const entryOf = (subpath: string): string => join(root, "src", subpath, "index.ts");
const toSources = (code: string): string =>
  code.replaceAll(/from "drover(\/\w+)?"/g, (_, subpath = "") => `from "${pathToFileURL(entryOf(subpath))}"`);

const documents = ["README.md", ...globSync("docs/guide/*.md", { cwd: root }).sort()];
const blocks = documents.flatMap(blocksOf);

test("there are programs in the README and in every guide", () => {
  for (const path of documents) assert.ok(blocksOf(path).length > 0, `${path} has no program`);
});

describe("a program", { concurrency: 4 }, () => {
  for (const { name, file, code } of blocks)
    test(`in ${name} prints what it says`, async () => {
      const home = mkdtempSync(join(place, "run-"));
      writeFileSync(join(home, file), toSources(code));
      const flags = ["--disable-warning=ExperimentalWarning", join(home, file)];
      const { stdout, stderr } = await run(process.execPath, flags, { cwd: home, env, timeout: BLOCK_LIMIT_MS });
      assert.deepEqual(
        stdout.split("\n").filter((line) => line !== ""),
        [...code.matchAll(PROMISE)].map(([, line]) => line),
      );
      assert.equal(stderr, "");
    });
});

test("every program in the documents type-checks", async () => {
  const home = mkdtempSync(join(place, "types-"));
  for (const { file, code } of blocks) writeFileSync(join(home, file), code);
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      rootDir: "/",
      typeRoots: [join(root, "node_modules/@types")],
      paths: { drover: [join(root, "src/index.ts")], "drover/*": [join(root, "src/*/index.ts")] },
      // A program in a document may leave a value to its reader.
      noUnusedLocals: false,
      noUnusedParameters: false,
    },
    include: ["*.mts"],
  };
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(root, "node_modules/.bin/tsc");
  const { stdout } = await run(compiler, ["-p", home]).catch((error: { stdout: string }) => error);
  assert.equal(stdout, "");
});

// ----------------------------------------------------------------- reference

/** The rows of all tables in a text, by the name in their first cell. */
function rowsOf(text: string): Map<string, string> {
  const rows = text.matchAll(/^\| `([^`]+)` +\|(.*)$/gm);
  return new Map([...rows].map(([, name = "", rest = ""]) => [name, rest.trim()]));
}

function* leavesOf(value: unknown, path: string): Generator<[path: string, value: unknown]> {
  if (typeof value !== "object" || value === null) yield [path, value];
  else for (const [key, inner] of Object.entries(value)) yield* leavesOf(inner, path === "" ? key : `${path}.${key}`);
}

test("docs/reference/config.md has every knob with its default", () => {
  const rows = rowsOf(read("docs/reference/config.md"));
  for (const [path, value] of leavesOf(DEFAULT_CONFIG, "")) {
    const shown = `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
    assert.ok(rows.has(path), `${path} is not in the table`);
    assert.ok(rows.get(path)?.startsWith(shown), `${path} is ${shown}, the table says ${rows.get(path)}`);
  }
  const known = new Set([...leavesOf(DEFAULT_CONFIG, "")].map(([path]) => path));
  for (const path of rows.keys()) assert.ok(known.has(path), `${path} is in the table and is no knob`);
});

test("docs/reference/events.md has every event with its fields", () => {
  const items = read("docs/reference/events.md").matchAll(/^- `([^`]+)` (.*(?:\n {2}.*)*)/gm);
  const rows = new Map([...items].map(([, kind = "", rest = ""]) => [kind, rest]));
  for (const [kind, fields] of Object.entries(FIELDS)) {
    const row = rows.get(kind);
    assert.ok(row !== undefined, `${kind} is not in a list`);
    for (const field of fields) assert.ok(row.includes(`\`${field}\``), `${kind} has a field ${field}`);
  }
  for (const kind of rows.keys()) assert.ok(Object.hasOwn(FIELDS, kind), `${kind} is no event`);
});

/** One of each: a refusal that is missing here does not compile. */
const REFUSALS: { readonly [Type in Refusal["type"]]: Omit<Extract<Refusal, { type: Type }>, "type"> } = {
  "bad-field": { field: "f", value: "v", expected: "e" },
  "unknown-field": { field: "f", known: [] },
  "past-deadline": { field: "f", deadline: 0, now: 1 },
  cycle: { path: [] },
  "dependency-unknown": { field: "f", dependency: "d" },
  "dependency-refused": { field: "f", dependency: "d" },
  "task-unknown": { task: "t" },
  "task-exists": { task: "t" },
  "task-ended": { task: "t", state: "done" },
  "task-not-ended": { task: "t", state: "queued" },
  "queue-full": { limit: "maxQueue", agent: "a", queued: 1, maxQueue: 1, maxPerAgent: 1 },
  backpressure: { usage: 1, rejectThreshold: 1, agent: "a" },
  "no-workers": { agent: "a" },
  "batch-too-large": { submitted: 2, max: 1 },
  "project-unknown": { project: "p" },
  "too-many": { what: "w", max: 1 },
  "worker-unknown": { worker: "w" },
  "worker-exists": { worker: "w" },
  "attempt-stale": { task: "t", attempt: 1, current: 2 },
  "session-lost": { worker: "w" },
  "sync-stale": { worker: "w", n: 1, last: 2 },
  "permit-exists": { permit: "p" },
  "permit-unknown": { permit: "p" },
  "schedule-unknown": { schedule: "s" },
  "budget-exhausted": { project: "p", limit: 1, used: 1 },
  "dependency-failed": { task: "t", dependency: "d", state: "failed" },
};
const CODES: Record<DroverErrorCode, true> = {
  bad_request: true,
  not_found: true,
  conflict: true,
  queue_full: true,
  backpressure: true,
  batch_too_large: true,
  limit: true,
  budget_exhausted: true,
  stale_attempt: true,
  session_lost: true,
  stale_sync: true,
  log_failed: true,
  deposed: true,
  overloaded: true,
  closed: true,
  stopped: true,
  broken: true,
};
const LOG_CODES: Record<LogFailureCode, true> = {
  "disk-full": true,
  "read-only": true,
  io: true,
  corrupt: true,
  locked: true,
  closed: true,
  "unsupported-version": true,
  pruned: true,
};

test("docs/reference/errors.md has every code, and every refusal with its code", () => {
  const sections = read("docs/reference/errors.md").split("\n## ");
  const rowsUnder = (title: string): Map<string, string> =>
    rowsOf(sections.find((text) => text.startsWith(title)) ?? "");
  const codes = rowsUnder("Codes");
  const refusals = rowsUnder("Refusals");
  assert.deepEqual([...codes.keys()].sort(), Object.keys(CODES).sort());
  assert.deepEqual([...rowsUnder("The log").keys()].sort(), Object.keys(LOG_CODES).sort());
  assert.deepEqual([...refusals.keys()].sort(), Object.keys(REFUSALS).sort());
  for (const [type, fields] of Object.entries(REFUSALS)) {
    const { code, retryable } = refused({ type, ...fields } as Refusal);
    const row = refusals.get(type) ?? "";
    assert.ok(row.startsWith(`\`${code}\` `), `${type} is a ${code}; the table says ${row}`);
    for (const field of Object.keys(fields)) assert.ok(row.includes(`\`${field}\``), `${type} has a field ${field}`);
    assert.ok(codes.get(code)?.startsWith(retryable ? "yes" : "no"), `${code} is retryable: ${retryable}`);
  }
});

const WHY_CODES: Record<WhyCode, true> = {
  ...{ ended: true, running: true, "fleet-paused": true, "project-paused": true, "task-paused": true },
  ...{ dependency: true, artifact: true, "not-before": true, "retry-rest": true, stopping: true, deadline: true },
  ...{ "fleet-in-flight": true, "fleet-budget": true, "project-in-flight": true, "project-budget": true },
  ...{ "express-lane": true, "project-turn": true, "agent-in-flight": true, "agent-turn": true, position: true },
  ...{ "type-limit": true, lock: true, provider: true },
  ...{ "no-workers": true, "never-fits": true, "worker-room": true, affinity: true, hold: true, tab: true },
};

test("docs/reference/embed.md names every method, every exported name and every gate of why", async () => {
  const text = read("docs/reference/embed.md");
  const drover = await engine.openDrover();
  await drover.close();
  const permits = gate.createGate();
  permits.close();
  const methods = [...Object.keys(drover), ...Object.keys(permits)];
  const names = [core, engine, gate].flatMap((entry) => Object.keys(entry));
  const missing = [...methods, ...names, ...Object.keys(WHY_CODES)].filter((name) => !isNamed(text, name));
  assert.deepEqual(missing, []);
});

/** Named as code: `name`, `name(…)` or the like. */
const isNamed = (text: string, name: string): boolean =>
  text.includes(`\`${name}\``) || text.includes(`\`${name}(`) || text.includes(`\`${name}<`);

// --------------------------------------------------------------------- links

const everything = globSync("{*.md,docs/**/*.md,src/**/*.md}", { cwd: root }).sort();

test("no link leads nowhere", () => {
  for (const path of everything)
    for (const [, target = "", anchor = ""] of read(path).matchAll(/\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)/g)) {
      const file = target === "" ? path : join(dirname(path), target);
      assert.ok(existsSync(join(root, file)), `${path} links to ${target}`);
      if (anchor !== "") assert.ok(anchorsOf(file).has(anchor), `${path} links to ${target}${anchor}`);
    }
});

function anchorsOf(path: string): Set<string> {
  const titles = read(path).matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...titles].map(
      ([, title = ""]) =>
        `#${title
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, "")
          .replaceAll(" ", "-")}`,
    ),
  );
}
