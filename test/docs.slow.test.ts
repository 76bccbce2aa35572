/**
 * The documentation, held to its word.
 *
 * Every `ts` block of README.md and docs/ is a whole program: it type-checks, it runs, and it prints exactly the lines
 * that its `// → ` comments promise, in that order. So are the blocks of other languages that say so, and those that
 * want a server get a real one (test/kits/document-blocks.ts has the marks). The README is tried by readme.slow.test.ts
 * in a fresh copy. (Code that is only to be looked at is fenced as `text`.) The reference names every knob with its
 * default, every error, every event with its fields, every call and every name that is exported; and no link between
 * documents leads nowhere.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { parse } from "yaml";
import { EXIT_MEANINGS } from "../src/cli/shell/problem.ts";
import { VERBS } from "../src/cli/verbs.ts";
import * as client from "../src/client/index.ts";
import { sentence } from "../src/core/base/index.ts";
import * as core from "../src/core/index.ts";
import { DEFAULT_CONFIG, FIELDS, type Reason, type Refusal, STRATEGIES } from "../src/core/index.ts";
import type { WhyCode } from "../src/core/why/conditions.ts";
import { type DroverErrorCode, refused } from "../src/engine/base/drover-error.ts";
import * as engine from "../src/engine/index.ts";
import * as gate from "../src/gate/index.ts";
import type { LogFailureCode } from "../src/log/log.ts";
import { readSettings, settingsSchema, WIRE_CODES } from "../src/protocol/index.ts";
import { taskFields } from "../src/protocol/shapes/index.ts";
import { type ExecTask, taskDocument } from "../src/worker/exec/contract.ts";
import * as worker from "../src/worker/index.ts";
import { cliReferenceFile, withVerbs } from "../tools/cli-reference.ts";
import { httpReferenceFile, withTables } from "../tools/http-reference.ts";
import { METRICS_FILE, metricsReference } from "../tools/metrics-reference.ts";
import { type Block, blocksOf, brokenPromise } from "./kits/document-blocks.ts";
import { etcdMissing, startEtcd } from "./kits/etcd.ts";
import { postgresMissing, startPostgres } from "./kits/postgres.ts";
import { commandsIn, startServe } from "./kits/serve-process.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const BLOCK_LIMIT_MS = 60_000;
const TOKEN = "a-long-random-text";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const place = mkdtempSync(join(tmpdir(), "drover-docs-"));
after(() => rmSync(place, { recursive: true, force: true }));
/** The programs all load the same sources: the types are stripped from them once. */
const env: NodeJS.ProcessEnv = {
  NODE_COMPILE_CACHE: join(place, "cache"),
  ...withoutDrover(process.env),
  XDG_CONFIG_HOME: place,
};

/** What this machine says about Drover is no business of the documents. */
function withoutDrover(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith("DROVER_")));
}

// ------------------------------------------------------------------ programs

/** What a program imports from the package, it imports from the sources here. */
const entryOf = (subpath: string): string => join(root, "src", subpath, "index.ts");
const toSources = (code: string): string =>
  code.replaceAll(/from "drover(\/\w+)?"/g, (_, subpath = "") => `from "${pathToFileURL(entryOf(subpath))}"`);

const isReadme = (name: string): boolean => name.startsWith("README");
const guides = globSync("docs/guide/*.md", { cwd: root }).sort();
const documents = ["README.md", ...globSync("docs/{guide,operate}/*.md", { cwd: root }).sort()];
const blocks = documents.flatMap(blocksOf).filter(({ name, language }) => language === "ts" || !isReadme(name));
const commands = commandsIn(join(place, "bin"));
const missing = { etcd: etcdMissing, postgres: postgresMissing };

test("there are programs in the README and in every guide", () => {
  for (const path of ["README.md", ...guides]) assert.ok(blocksOf(path).length > 0, `${path} has no program`);
});

describe("a program", { concurrency: 2 }, () => {
  for (const block of blocks)
    test(`in ${block.name} prints what it says`, {
      skip: block.engine !== null && missing[block.engine],
    }, async () => {
      const home = mkdtempSync(join(place, "run-"));
      for (const [name, text] of block.files) writeFileSync(join(home, name), text);
      // A worker in another language must bring its token itself; the other clients are tried with one elsewhere.
      const hasToken = block.language === "python";
      if (hasToken) writeFileSync(join(home, "drover.yml"), `server: { tokens: [{ role: admin, token: ${TOKEN} }] }\n`);
      writeFileSync(join(home, block.file), block.language === "ts" ? toSources(block.code) : block.code);
      await using engine = await startEngine(block);
      await using server = block.serve === null ? null : await startServe({ cwd: home, flags: block.serve, env });
      const { stdout, stderr } = await run(...commandOf(block, join(home, block.file)), {
        ...{ cwd: home, timeout: BLOCK_LIMIT_MS },
        env: {
          ...{ ...env, PATH: `${commands}:${env.PATH}` },
          ...(server === null ? {} : { DROVER_URL: server.url }),
          ...(engine === null ? {} : { LOG_URL: engine.log }),
          ...(hasToken ? { DROVER_TOKEN: TOKEN } : {}),
        },
      });
      const printed = stdout.split("\n").filter((line) => line.trim() !== "");
      assert.equal(brokenPromise(block.promises, printed), null);
      if (block.language === "ts") assert.equal(stderr, "");
    });
});

async function startEngine({ engine }: Block): Promise<(AsyncDisposable & { readonly log: string }) | null> {
  if (engine === null) return null;
  if (engine === "etcd") {
    const cluster = await startEtcd();
    return { log: cluster.url("drover"), [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() };
  }
  const server = await startPostgres();
  return { log: server.url(), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

function commandOf({ language }: Block, file: string): [command: string, args: string[]] {
  if (language === "sh") return ["/bin/sh", ["-e", file]];
  if (language === "python") return ["python3", [file]];
  return [process.execPath, ["--disable-warning=ExperimentalWarning", file]];
}

test("every program in the documents type-checks", async () => {
  const home = mkdtempSync(join(place, "types-"));
  for (const { file, code, language } of blocks) if (language === "ts") writeFileSync(join(home, file), code);
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
  const { stdout } = await run(compiler, ["-p", home, "--singleThreaded"]).catch((error: { stdout: string }) => error);
  assert.equal(stdout, "");
});

test("every drover.yml in the documents is a good config", () => {
  for (const { name, files } of blocks) {
    const text = files.get("drover.yml");
    if (text === undefined) continue;
    const read = readSettings(parse(text));
    assert.ok(read.ok, `${name}: ${read.ok ? "" : sentence(read.failure)}`);
  }
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

type Knobs = { readonly properties: Readonly<Record<string, Knobs & { readonly default: unknown }>> };
function* serviceKnobs(): Generator<[path: string, value: unknown]> {
  const { server, webhooks, cluster, log } = (settingsSchema as unknown as Knobs).properties;
  for (const [section, knobs] of Object.entries({ server, webhooks, cluster }))
    for (const [key, knob] of Object.entries(knobs?.properties ?? {})) yield [`${section}.${key}`, knob.default];
  yield ["log.url", log?.properties.url?.default];
}

test("docs/reference/config.md has every knob with its default", () => {
  const rows = rowsOf(read("docs/reference/config.md"));
  const knobs = [...leavesOf(DEFAULT_CONFIG, ""), ...serviceKnobs()];
  for (const [path, value] of knobs) {
    const shown = `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
    assert.ok(rows.has(path), `${path} is not in the table`);
    assert.ok(rows.get(path)?.startsWith(shown), `${path} is ${shown}, the table says ${rows.get(path)}`);
  }
  const known = new Set(knobs.map(([path]) => path));
  for (const path of rows.keys()) assert.ok(known.has(path), `${path} is in the table and is no knob`);
});

type Allowed = {
  readonly properties?: Readonly<Record<string, Allowed>>;
  readonly anyOf?: readonly Allowed[];
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
};
function* knobSchemas(schema: Allowed, path: readonly string[] = []): Generator<[path: string, schema: Allowed]> {
  if (schema.properties === undefined) yield [path.join("."), schema];
  else for (const [key, inner] of Object.entries(schema.properties)) yield* knobSchemas(inner, [...path, key]);
}
const wordsOf = ({ enum: own = [], anyOf = [] }: Allowed): string[] => [...own, ...anyOf.flatMap(wordsOf)];

test("docs/reference/config.md has the words and the ranges that each knob allows", () => {
  const rows = rowsOf(read("docs/reference/config.md"));
  let compared = 0;
  for (const [path, schema] of knobSchemas(settingsSchema as Allowed)) {
    const limits = rows.get(path)?.split(" | ")[1] ?? "";
    const words = wordsOf(schema);
    if (words.length > 0) {
      const shown = [...limits.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
      assert.deepEqual(shown, words, path);
      compared++;
    }
    const range = /^(−?[\d ]+) to (−?[\d ]+)/
      .exec(limits)
      ?.slice(1)
      .map((bound) => bound.replace("−", "-"));
    if (range === undefined) continue;
    const bounds = range.map((bound) => Number(bound.replaceAll(" ", "")));
    assert.deepEqual(bounds, [schema.minimum, schema.maximum], path);
    compared++;
  }
  assert.ok(compared > 20, `${compared} compared`);
});

test("docs/reference/http.md has every call, field, answer and code as the protocol has them", () => {
  const text = httpReferenceFile();
  assert.equal(text, withTables(text), "npx node tools/http-reference.ts writes it anew");
});

test("docs/reference/cli.md has every verb, flag and exit code; the guide has every verb and exit code", () => {
  const text = cliReferenceFile();
  assert.equal(text, withVerbs(text), "npx node tools/cli-reference.ts writes it anew");
  const guide = read("docs/guide/cli.md");
  const verbs = VERBS.map(({ name }) => name).filter((name) => !new RegExp(`\\| .*\`${name}\\b`).test(guide));
  assert.deepEqual(verbs, [], "verbs that are not in the table of the guide");
  const codes = [...guide.matchAll(/^\| (\d+) +\| ([a-z ]+?) +\|/gm)].map(([, code, name]) => [Number(code), name]);
  assert.deepEqual(
    codes,
    EXIT_MEANINGS.map(([code, name]) => [code, name]),
  );
});

test("docs/reference/metrics.md has every metric", async () => {
  assert.equal(read(METRICS_FILE), await metricsReference(), "npx node tools/metrics-reference.ts writes it anew");
});

test("docs/reference/client.md names every method and every exported name", () => {
  const text = read("docs/reference/client.md");
  const names = [...Object.keys(client.createClient()), ...Object.keys(client), ...Object.keys(worker)];
  assert.deepEqual(
    names.filter((name) => !isNamed(text, name)),
    [],
  );
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

const REASONS: Record<Reason["type"], true> = {
  ...{ "only-worker-available": true, "round-robin": true, random: true },
  ...{ "least-loaded": true, "resource-fit": true, affinity: true },
};

test("docs/reference/events.md has every reason of a start, and limits.md what each strategy costs", () => {
  const [, reasons = ""] = /`reason` is one of\n([\s\S]*?)\.\n/.exec(read("docs/reference/events.md")) ?? [];
  const names = [...reasons.matchAll(/`([a-z-]+)(?: \{[^}]*\})?`/g)].map(([, name]) => name);
  for (const reason of Object.keys(REASONS)) assert.ok(names.includes(reason), `${reason} is not in the list`);
  const costs = read("docs/reference/limits.md").toLowerCase();
  for (const strategy of STRATEGIES) assert.ok(costs.includes(strategy), `${strategy} is not named`);
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
  "group-unknown": { group: "g" },
  "plan-unknown": { plan: "p" },
  "plan-live": { plan: "p" },
  "task-exists": { task: "t" },
  "task-ended": { task: "t", state: "done" },
  "task-not-ended": { task: "t", state: "queued" },
  "task-not-parked": { task: "t", state: "queued" },
  "approval-late": { task: "t", deadline: 1, now: 2 },
  "queue-full": { limit: "maxQueue", agent: "a", queued: 1, maxQueue: 1, maxPerAgent: 1 },
  backpressure: { usage: 1, rejectThreshold: 1, agent: "a" },
  "no-workers": { agent: "a" },
  "batch-too-large": { submitted: 2, max: 1 },
  "project-unknown": { project: "p" },
  "too-many": { what: "w", max: 1 },
  "worker-unknown": { worker: "w" },
  "worker-local": { worker: "w" },
  "worker-exists": { worker: "w" },
  "attempt-stale": { task: "t", attempt: 1, current: 2 },
  "session-lost": { worker: "w" },
  "sync-stale": { worker: "w", n: 1, last: 2 },
  "permit-exists": { permit: "p" },
  "permit-settled": { permit: "p" },
  "permit-unknown": { permit: "p" },
  "bytes-per-minute": { project: "p", stored: 2, max: 1, retryAfterMs: 5 },
  "log-full": { bytes: 2, max: 1 },
  "gate-unknown": { gate: "g" },
  "gate-configured": { gate: "g" },
  "gate-in-use": { gate: "g", running: 1, queued: 0 },
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
  bytes_per_minute: true,
  log_full: true,
  budget_exhausted: true,
  stale_attempt: true,
  session_lost: true,
  stale_sync: true,
  log_failed: true,
  deposed: true,
  no_leader: true,
  overloaded: true,
  closed: true,
  stopped: true,
  broken: true,
  damaged: true,
  too_large: true,
  over_capacity: true,
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
  unreachable: true,
  "journal-full": true,
  refused: true,
  diverged: true,
};

test("docs/reference/errors.md has every code, and every refusal with its code", () => {
  const sections = read("docs/reference/errors.md").split("\n## ");
  const rowsUnder = (title: string): Map<string, string> =>
    rowsOf(sections.find((text) => text.startsWith(title)) ?? "");
  const codes = rowsUnder("Codes");
  const refusals = rowsUnder("Refusals");
  assert.deepEqual([...codes.keys()].sort(), Object.keys(CODES).sort());
  const onTheWire = rowsUnder("On the wire");
  for (const [code, { status, retryable }] of Object.entries(WIRE_CODES)) {
    const [, shown, again] = (onTheWire.get(code) ?? "").match(/^(\d+) *\| (yes|no) /) ?? [];
    assert.deepEqual([code, shown, again], [code, String(status), retryable ? "yes" : "no"]);
  }
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
  approval: true,
  children: true,
  ...{ ended: true, running: true, "fleet-paused": true, "project-paused": true, "task-paused": true },
  "plan-paused": true,
  ...{ dependency: true, artifact: true, "not-before": true, "backing-off": true, stopping: true, deadline: true },
  ...{ "fleet-in-flight": true, "fleet-budget": true, "project-in-flight": true, "project-budget": true },
  ...{ "express-lane": true, "project-turn": true, "agent-in-flight": true, "agent-turn": true, position: true },
  ...{ "type-limit": true, lock: true, provider: true, permit: true },
  ...{ "no-workers": true, "never-fits": true, "worker-room": true, affinity: true, hold: true, tab: true },
};

test("docs/reference/embed.md names every method, every exported name and every condition of why", async () => {
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

test("docs/reference/embed.md has every field of a task, and docs/guide/workers.md those that a command reads", () => {
  const [, section = ""] = /\nThe body of a task:\n\n([\s\S]*?)\n\n/.exec(read("docs/reference/embed.md")) ?? [];
  const cells = [...section.matchAll(/^\| (`.*?) +\|/gm)].map(([, cell = ""]) => cell);
  const fields = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, field]) => field));
  assert.deepEqual(fields.toSorted(), Object.keys(taskFields).sort());
  const [, stdin = ""] = /\*\*In\.\*\* [^:]*:([^.]*)\./.exec(read("docs/guide/workers.md")) ?? [];
  const every = new Proxy({} as ExecTask, { get: () => 1 });
  const document = Object.keys(JSON.parse(taskDocument(every, 1, "/")));
  assert.deepEqual(
    [...stdin.matchAll(/`(\w+)`/g)].map(([, field]) => field),
    document,
  );
});

/** Named as code: `name`, `name(…)` or the like. */
const isNamed = (text: string, name: string): boolean =>
  text.includes(`\`${name}\``) || text.includes(`\`${name}(`) || text.includes(`\`${name}<`);

// --------------------------------------------------------------------- links

const everything = globSync("{*.md,docs/**/*.md,src/**/*.md,examples/**/*.md}", { cwd: root }).sort();

test("no link leads nowhere", () => {
  for (const path of everything)
    for (const [, target = "", anchor = ""] of read(path).matchAll(/\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)/g)) {
      const file = target === "" ? path : join(dirname(path), target);
      assert.ok(existsSync(join(root, file)), `${path} links to ${target}`);
      if (anchor !== "") assert.ok(anchorsOf(file).has(anchor), `${path} links to ${target}${anchor}`);
    }
});

test("docs/conformance.md names files that are there", () => {
  const named = [
    ...read("docs/conformance.md").matchAll(
      /`((?:core|log|gate|engine|protocol|server|worker|cli|test)\/[^`\s]*\.ts)`/g,
    ),
  ];
  const gone = named.map(([, path = ""]) => (path.startsWith("test/") ? path : `src/${path}`));
  assert.deepEqual(
    gone.filter((path) => globSync(path, { cwd: root }).length === 0),
    [],
  );
  assert.ok(named.length > 50, `${named.length} files`);
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
