/**
 * What is published works: packed, installed into an empty project, run as plain JavaScript, type-checked.
 *
 * The sources are copied first, so that building leaves the work tree alone. Nothing here needs a network: what npm
 * would fetch is there already, and linked in.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { undocumented } from "../kits/public-face.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const home = mkdtempSync(join(tmpdir(), "drover-package-"));
const project = join(home, "project");
const installed = join(project, "node_modules/drover");
/** A cache of its own: what was compiled here is of no use to anybody later. */
const compiled = join(home, "compiled");
after(() => rmSync(home, { recursive: true, force: true }));

function run(command: string, args: readonly string[], cwd: string): string {
  const path = `${dirname(process.execPath)}:${process.env.PATH ?? ""}`;
  const env = {
    ...process.env,
    PATH: path,
    npm_config_cache: join(home, "cache"),
    NODE_COMPILE_CACHE: compiled,
    npm_config_update_notifier: "false",
  };
  // A test that runs tests would otherwise speak the runner's own language on its output.
  const { NODE_TEST_CONTEXT: _, ...clean } = env as Record<string, string>;
  const done = spawnSync(command, args, { cwd, env: clean, encoding: "utf8" });
  assert.equal(done.status, 0, `${command} ${args.join(" ")}\n${done.stdout}\n${done.stderr}\n${done.error ?? ""}`);
  return done.stdout;
}

before(() => {
  const copy = join(home, "copy");
  mkdirSync(copy);
  for (const path of globSync(["bin", "src", "tools", "docs", "schema", "*.json", "*.md", "LICENSE"], { cwd: ROOT }))
    cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  run("npm", ["pack", "--pack-destination", home], copy);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "stranger", version: "1.0.0", type: "module" }));
  const [tarball = ""] = globSync("drover-*.tgz", { cwd: home });
  mkdirSync(installed, { recursive: true });
  run("tar", ["-xzf", join(home, tarball), "-C", installed, "--strip-components", "1"], project);
  const modules = join(project, "node_modules");
  for (const name of readdirSync(join(ROOT, "node_modules")).filter((one) => !one.startsWith(".")))
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  // As npm does it for everything under "bin".
  const { bin } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  mkdirSync(join(modules, ".bin"));
  for (const [name, path] of Object.entries<string>(bin))
    symlinkSync(join("../drover", path), join(modules, ".bin", name));
});

test("the package holds compiled files and their types, no source, no test, no simulator", () => {
  const files = globSync("**/*", { cwd: installed, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1));
  const expected = [
    ...[/^dist\/page\/(index\.html|made-of\.txt|assets\/[\w.-]+\.(js|css))$/, /^docs\/images\/[\w-]+\.png$/],
    ...[/^dist\/.+\.(js|d\.ts)$/, /^bin\/drover\.js$/, /^schema\/.+\.json$/, /^docs\/.+\.(md|json)$/],
    ...[/^package\.json$/, /^LICENSE$/, /^[A-Z]+\.md$/],
  ];
  const strays = files.filter((file) => !expected.some((pattern) => pattern.test(file)));
  assert.deepEqual(strays, []);
  const unwanted = files.filter((file) => /\.test\.|log-contract|(^|\/)sim\/|(^|\/)bench\//.test(file));
  assert.deepEqual(unwanted, []);
  for (const file of [
    "dist/log/sqlite/thread.js",
    "dist/engine/snapshots/snapshot-thread.js",
    "dist/page/index.html",
    "LICENSE",
    "CONTRIBUTING.md",
  ])
    assert.ok(files.includes(file), `${file} is missing`);
});

test("nothing is run where it is installed", () => {
  const { scripts } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  const atInstall = ["preinstall", "install", "postinstall", "prepare"];
  assert.deepEqual(
    atInstall.filter((name) => Object.hasOwn(scripts, name)),
    [],
  );
});

test("every export leads to a file, and its types do too", () => {
  const { exports } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  for (const target of Object.values<string | Record<string, string>>(exports))
    for (const path of typeof target === "string" ? [target] : Object.values(target))
      assert.ok(readFileSync(join(installed, path)).length > 0, path);
});

test("publint finds nothing in it", () => {
  run(join(ROOT, "node_modules/.bin/publint"), ["run", installed, "--strict", "--pack", "false"], project);
});

/** Drover is ES modules alone: what TypeScript 4.6 and older looked for, and CommonJS, have no part in it. */
const ARE_THE_TYPES_WRONG = `
import { readFileSync } from "node:fs";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";

const { entrypoints, problems } = await checkPackage(
  createPackageFromTarballData(new Uint8Array(readFileSync(process.argv[2]))),
);
const ours = problems.filter(({ resolutionKind }) => !["node10", "node16-cjs"].includes(resolutionKind));
console.log(JSON.stringify({ entries: Object.keys(entrypoints).length, problems: ours }));
`;

test("its types are found, and are right, by every way of resolving them", () => {
  const [tarball = ""] = globSync("drover-*.tgz", { cwd: home });
  writeFileSync(join(project, "attw.mjs"), ARE_THE_TYPES_WRONG);
  const found = JSON.parse(run(process.execPath, ["attw.mjs", join(home, tarball)], project));
  assert.deepEqual(found, { entries: 10, problems: [] });
});

test("every public name and field has a sentence for those who hover over it", () => {
  const silent = (): string[] =>
    [...undocumented(installed, join(ROOT, "node_modules/@types"))].flatMap(([entry, names]) =>
      names.map((name) => `${entry} ${name}`),
    );
  assert.deepEqual(silent(), []);
  const file = join(installed, "dist/core/base/result.d.ts");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replaceAll(/\/\*\*.*?\*\//gs, ""));
  const found = silent();
  writeFileSync(file, text);
  assert.ok(found.includes("./core Failed") && found.includes("./core Ok.value"), `a silent one is found: ${found}`);
});

const PROGRAM = `
import assert from "node:assert/strict";
import { DroverError, openDrover } from "drover";
import { planRound, score } from "drover/core";
import { createGate } from "drover/gate";
import { openDrover as same, openSqliteLog } from "drover/engine";
import { createTestDrover } from "drover/testing";

assert.equal(openDrover, same);
assert.equal(score({ type: "code", runnableAt: 0, depth: 3, iteration: 1 }, 300_000), 135);
const none = { projects: [], tasks: [], workers: [], usage: {}, active: {}, started: {}, completed: {} };
assert.deepEqual(planRound({ now: 0, ...none }), []);
assert.deepEqual(createGate({}).schedule("a"), { status: "ready" });

const first = await openDrover({ data: "data" });
await first.worker({ slots: 2 }, async (task, { withPermit }) => withPermit("llm", () => task.params.n * 2));
const { taskId } = await first.submit({ agentId: "ann", action: "double", params: { n: 21 } });
assert.equal((await first.wait(taskId)).result, 42);
await assert.rejects(first.submit({ agentId: "ann" }), DroverError);
const seq = await first.snapshot();
assert.ok(seq > 0);
await first.close();
const second = await openDrover({ data: "data" });
assert.equal((await second.task(taskId)).result, 42);
assert.ok((await second.verify()).ok);
await second.close();
const log = await openSqliteLog({ directory: "data", readOnly: true });
assert.equal((await log.checkpoints()).length, 1);
await log.close();

await using test = await createTestDrover({ at: 0 });
await test.drover.submit({ id: "t", agentId: "ann", action: "wait", notBefore: 1000 });
await test.clock.advance(1000);
assert.equal((await test.drover.task("t")).state, "queued");
console.log("all is well");
`;

test("a stranger's program runs on it, threads and all", () => {
  writeFileSync(join(project, "program.mjs"), PROGRAM);
  assert.equal(run(process.execPath, ["program.mjs"], project).trim(), "all is well");
});

test("the command is there, and serves, works and verifies", async () => {
  const drover = join(project, "node_modules/.bin/drover");
  const { version } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  assert.equal(run(drover, ["--version"], project), `${version}\n`);
  const args = ["serve", "--port", "0", "--json", "--log-level", "silent", "--data", "served"];
  const path = `${dirname(process.execPath)}:${process.env.PATH ?? ""}`;
  const env = { ...process.env, PATH: path, NODE_COMPILE_CACHE: compiled };
  const server = spawn(drover, args, { cwd: project, env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [first] = await once(server.stdout, "data");
    const { url } = JSON.parse(String(first)) as { url: string };
    const said = run(drover, ["submit", "--command", `echo '{"a":1}'`, "--wait", "--url", url], project);
    assert.equal(said, '{\n  "a": 1\n}\n');
  } finally {
    server.kill("SIGTERM");
    const [code] = await once(server, "exit");
    assert.equal(code, 0);
  }
  assert.match(run(drover, ["verify", "--data", "served"], project), /is whole/);
});

const CONSUMER = `
import { DroverError, openDrover, type Drover, type TaskView } from "drover";
import { decide, emptyState, instant, type Config, type Why } from "drover/core";
import { createGate, type PermitGate } from "drover/gate";
import { type Handler, TaskRequeue } from "drover/engine";
import { createTestDrover, type TestDrover } from "drover/testing";

const handler: Handler = async (task, { signal, withPermit, usage }) => {
  signal.throwIfAborted();
  usage({ inputTokens: 1 });
  if (task.action === "later") throw new TaskRequeue("later", { retryAfterMs: 5 });
  return withPermit("llm", (permit) => permit.id);
};
export async function main(): Promise<string> {
  await using drover: Drover = await openDrover({ data: "x", config: { scheduler: { maxInFlight: 5 } } });
  await drover.worker({ slots: 2, capabilities: ["git"] }, handler);
  const { taskId, position } = await drover.submit({ agentId: "a", action: "b", priority: "high", needs: ["c"] });
  const view: TaskView = await drover.wait(taskId, { signal: AbortSignal.timeout(5) });
  const why: Why = await drover.why(taskId);
  for await (const { seq, payload } of drover.events()) if (payload.kind === "task-done") return String(seq);
  // @ts-expect-error: a task needs an action
  await drover.submit({ agentId: "a" });
  // @ts-expect-error: not a field
  await drover.submit({ agentId: "a", action: "b", prio: 1 });
  const test: TestDrover = await createTestDrover({ at: 0 });
  await test.clock.advance(1);
  const gate: PermitGate = createGate({ maxConcurrent: 1 });
  const decided = decide(emptyState(), { type: "pump" }, instant(0));
  const config: Config = emptyState().config;
  return [view.state, position, why, gate, decided.ok, config.budget.limit, new DroverError("closed", "x").code].join();
}
`;

/** What an editor completes and what it underlines: right uses, and wrong ones that must not compile. */
const STRICT = `
import { createClient, openDrover, type Client, type ConfigInput, type Drover, type SharedCalls } from "drover";
import {
  again,
  type CommitListener,
  type EventKind,
  type FeedOptions,
  type Handler as EngineHandler,
  type Input,
} from "drover/engine";
import { again as another, type Handler, startWorker } from "drover/worker";
import type { wire } from "drover/client";

type Build = { target: string; jobs?: number };
type Built = { files: string[] };

export const config: ConfigInput = {
  scheduler: { maxInFlight: 5, retry: { base: "1s" }, placement: { strategy: "best-fit" } },
  projects: { autoCreate: false, web: { weight: 2, maxPriority: "critical" } },
  gates: { "anthropic/default": { tokens: { perMinute: 40_000 } } },
};
// @ts-expect-error: a misspelt knob
export const misspelt: ConfigInput = { scheduler: { maxInflight: 5 } };
// @ts-expect-error: not a strategy
export const unknown: ConfigInput = { scheduler: { placement: { strategy: "fastest" } } };
// @ts-expect-error: a number is no project
export const project: ConfigInput = { projects: { web: 5 } };
// @ts-expect-error: a misspelt setting of a project
export const setting: ConfigInput = { projects: { web: { wieght: 1 } } };

export const handler: Handler<Build, Built> = (task) => ({ files: [task.params?.target ?? ""] });
export const inside: EngineHandler<Build, Built> = async ({ params }, { signal }) => {
  signal.throwIfAborted();
  return { files: [String(params?.jobs)] };
};
export const looping: Handler<Build, Built> = ({ round }) => (round === undefined ? { files: [] } : another("more"));
export const loopingInside: EngineHandler<Build, Built> = async ({ params }) =>
  params?.jobs === 1 ? { files: [] } : again("more");
export const needing: EngineHandler<Build, Built, { spec?: Input<{ path: string }> }> = ({ inputs }) => ({
  files: [inputs?.spec?.result?.path ?? ""],
});
// @ts-expect-error: what a need answers has no such field
export const wrongNeed: EngineHandler<Build, Built, { a?: Input<Built> }> = (task) => task.inputs?.a?.result?.path;
// @ts-expect-error: the result has other fields
export const wrongResult: Handler<Build, Built> = () => ({ file: "a" });
// @ts-expect-error: there is no such parameter
export const wrongParams: Handler<Build, Built> = (task) => ({ files: [task.params?.goal] });

/** Works with either. */
export async function build(drover: SharedCalls, target: string): Promise<string[]> {
  const { taskId } = await drover.submit<Build>({ agentId: "ann", action: "build", params: { target } });
  // @ts-expect-error: the parameters of a build have a target
  await drover.submit<Build>({ agentId: "ann", action: "build", params: { goal: target } });
  const { result, state } = await drover.wait<Built>(taskId);
  // @ts-expect-error: not a state
  if (state === "finished") return [];
  // @ts-expect-error: unknown, unless it is said
  (await drover.wait(taskId)).result.files;
  return result?.files ?? [];
}

export const ends: readonly EventKind[] = ["task-done", "task-failed"];
export const since: FeedOptions = { kind: ends, since: "2026-01-31T00:00:00Z", task: "t" };
// @ts-expect-error: not a kind
export const noKind: FeedOptions = { kind: "task-exploded" };
// @ts-expect-error: not a kind either
export const noQuery: wire.EventsQuery = { kind: ["task-exploded"] };
export const listener: CommitListener = (batch, { appendMs }) =>
  void batch.map(({ event, seq }) => [event.at, seq, appendMs]);

/** Works with either, too. */
export async function report(drover: SharedCalls): Promise<number> {
  const failed = await drover.tasks({ state: "failed" });
  const live = await drover.tasks({ state: ["queued", "running"], order: "newest" });
  // @ts-expect-error: not a state
  await drover.tasks({ state: "finished" });
  const { counts } = await drover.group("g");
  // @ts-expect-error: a group counts no such state
  counts.finished;
  const { total, rows } = await drover.usage({ by: "label:team" });
  return failed.count + live.count + counts.parked + total.usage.inputTokens + (rows[0]?.usage.cost ?? 0);
}

export async function both(): Promise<number> {
  const client: Client = createClient({ url: "http://127.0.0.1:4747" });
  // @ts-expect-error: not an option
  createClient({ adress: "x" });
  await using drover: Drover = await openDrover({ config: { ...config, log: { retain: 60_000 } } });
  // @ts-expect-error: what is no config
  await openDrover({ config: "drover.yml" });
  await openDrover({ config: drover.effectiveConfig() });
  await build(client, "a");
  await build(drover, "a");
  await drover.worker({ slots: 2 }, inside);
  await drover.worker<Build, Built>({}, ({ params }) => ({ files: [params?.target ?? ""] }));
  await drover.worker<Build, Built>({}, async ({ round }) => (round?.number === 2 ? { files: [] } : again()));
  await startWorker({ url: client.url, slots: 2 }, handler);
  await startWorker<Build, Built>({ url: client.url }, () => another());
  await drover.patchConfig({ maxInFlight: null, fairness: { halfLife: "5m" } });
  // @ts-expect-error: a misspelt knob in a patch
  await client.patchConfig({ fairness: { halflife: "5m" } });
  await drover.putProject("web", { weight: 2 });
  // @ts-expect-error: a misspelt setting
  await drover.putProject("web", { wieght: 2 });
  for await (const event of drover.events({ follow: true })) {
    if (event.kind === "task-failed") return event.payload.reason.length;
    if (event.kind === "task-assigned") return event.payload.rank.score + event.at;
    // @ts-expect-error: not a kind
    if (event.kind === "task-exploded") return 0;
    // @ts-expect-error: not every event has a reason
    event.payload.reason;
  }
  for await (const event of client.events()) {
    if (event.kind === "permit-granted") return event.payload.gate.length + event.at.length;
  }
  const body: wire.TaskBody<Build> = { agentId: "a", action: "b", params: { target: "c" } };
  const view: wire.TaskView<Build, Built> = { taskId: "t", state: "done", attempt: 1, result: { files: [] } };
  return body.action.length + (view.result?.files.length ?? 0);
}
`;

test("a stranger's TypeScript is checked against the shipped types, without skipping any", () => {
  writeFileSync(join(project, "consumer.ts"), CONSUMER);
  writeFileSync(join(project, "strict.ts"), STRICT);
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: false,
    types: ["node"],
    typeRoots: [join(ROOT, "node_modules/@types")],
  };
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["consumer.ts", "strict.ts"] }),
  );
  run(join(ROOT, "node_modules/.bin/tsc"), ["-p", "tsconfig.json"], project);
});
