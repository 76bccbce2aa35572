/**
 * The one test command: types, lint and every test file.
 *
 *   npm test                 everything, with the full number of property cases
 *   npm run test:quick       without *.slow.test.ts, and with fewer cases (DROVER_QUICK=1 asks the tests for that)
 *   npm test -- gate window  only test files whose path contains one of the words (no types, no lint)
 *
 * Each test file is a process of its own, as many at a time as there are cores (in a quick run one more), the longest
 * first so that all cores are busy to the end; the types and the lint are two more of these jobs. Files that wait (for
 * a lease to end, for a process to start) leave the cores idle: while they are, others start beside them. `node --test`
 * bounds a test but not a file (one that spins in a loop would never end), so here every file gets its own run and its
 * own limit.
 *
 * Most of a short test is the start of its process. So Node keeps what it compiled (NODE_COMPILE_CACHE, for the tests
 * and for every process they start) and the compiler what it checked, both in node_modules/.cache. Both look at the
 * contents of a file before they trust what they kept of it, and can be deleted at any time.
 *
 * The last line printed is always the sum, `N passed, N failed` with `, N skipped` when there were any: leaf tests
 * only, since a suite that passes says nothing its tests did not say. A failed type check or lint counts as one
 * failure, so "0 failed" and the exit code never disagree. With CI=true a skipped test is a failure.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { dirname, relative, resolve } from "node:path";
import { run } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect, styleText } from "node:util";
import { isMissing } from "./kits/optional-tool.ts";

const NODE_MAJOR_MIN = 24;
const FILE_LIMIT_MS = { quick: 300_000, full: 1_200_000 };
const CHECK_LIMIT_MS = 300_000;
/** Left out of the quick run, by name alone: what starts much, or waits for the disk. */
const IS_SLOW = /\.slow\.test\.ts$/;
/** What takes longest, in the order it is started; everything else comes after, and fills the gaps at the end. */
const LONGEST_FIRST: readonly RegExp[] = [
  /^test\/faults\/(cluster-http|kill|worker-process)\.slow\.test\.ts$/,
  /^test\/laws\/laws-re|^src\/sim\/(simulate|auditor\.slow)\.test\.ts$|^test\/browser\//,
  /^test\/faults\/server-(kill|memory)\.slow\.test\.ts$|^test\/(docs|examples|readme|slow\/package)\.slow\.test\.ts$/,
  /^test\/(faults|laws)\/|^src\/log\/(etcd|postgres)\/|^src\/cli\/(worker|run|serve|top)\/.*\.slow\.test\.ts$/,
  IS_SLOW,
];
/** How often the cores are looked at, how idle they must have been for one more file, and the most files for a core. */
const LOOK_MS = 500;
const IDLE_SHARE = 0.35;
const PER_CORE_MAX = 3;
const CACHE = "node_modules/.cache/drover";
/** Programs in temporary directories leave something behind in the cache at every run: when it is this full it goes. */
const COMPILED_FILES_MAX = 10_000;
/** What the compiler checked stays for the next run, in the file that is named next. */
const KEPT = ["--singleThreaded", "--incremental", "--tsBuildInfoFile"];
const CHECKS: readonly Check[] = [
  {
    name: "types",
    commands: [
      ["tsc", "-p", "tsconfig.json", ...KEPT, `${CACHE}/types.json`],
      ["tsc", "-p", "tsconfig.core.json", ...KEPT, `${CACHE}/types-core.json`],
      ["tsc", "-p", "tsconfig.build.json", "--noEmit", ...KEPT, `${CACHE}/types-build.json`],
      ["tsc", "-p", "src/page/tsconfig.json", ...KEPT, `${CACHE}/types-page.json`],
    ],
  },
  { name: "lint", commands: [["biome", "check", "."]] },
];
/** What tests call as if every machine had it; where it is not, that is said once, and not by whatever fails of it. */
const PROGRAMS: readonly Parameters<typeof isMissing>[] = [
  ["git", "git"],
  ["bash", "bash"],
  ["curl", "curl"],
  ["python3", "python3"],
  ["pgrep", "procps"],
  ["openssl", "openssl", "version"],
];
const OUTPUT_LINES_REPEATED = 30;
const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

type Check = { readonly name: string; readonly commands: readonly (readonly [tool: string, ...args: string[]])[] };
type Job = () => Promise<Report>;
type Options = { readonly quick: boolean; readonly words: readonly string[] };
type Failure = { readonly title: string; readonly text: string };
type Report = {
  readonly file: string;
  readonly output: string[];
  readonly failures: Failure[];
  readonly skipped: string[];
  passed: number;
};
type TestEvent = { readonly type: string; readonly data: TestEventData };
type TestEventData = {
  readonly name?: string;
  readonly nesting?: number;
  readonly message?: string;
  readonly line?: number;
  readonly column?: number;
  readonly file?: string;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details?: {
    readonly type?: string;
    readonly error?: Error & { readonly failureType?: string; readonly cause?: unknown };
  };
};

await main();

async function main(): Promise<void> {
  const major = Number(process.versions.node.split(".")[0]);
  if (!(major >= NODE_MAJOR_MIN)) {
    console.error(`Drover needs Node ${NODE_MAJOR_MIN} or newer; this is ${process.version}. Use \`npm test\`.`);
    return finish({ passed: 0, failures: [{ title: "node", text: `found ${process.version}` }], skipped: [] });
  }
  process.chdir(ROOT);
  const options = parseArguments(process.argv.slice(2));
  if (options.quick) process.env.DROVER_QUICK = "1";
  else delete process.env.DROVER_QUICK;
  const isCold = keepWhatIsCompiled();

  const files = filesFor(options);
  const limitMs = options.quick ? FILE_LIMIT_MS.quick : FILE_LIMIT_MS.full;
  const isWhole = options.words.length === 0;
  const checks = isWhole ? CHECKS : [];
  const without = isWhole ? PROGRAMS.flatMap((program) => isMissing(...program) || []) : [];
  // A short test waits about as long for its process to start as it works: one more keeps all cores busy.
  const atOnce = availableParallelism() + (options.quick ? 1 : 0);
  heading(`tests: ${files.length} ${files.length === 1 ? "file" : "files"}, ${atOnce} or more at a time`);
  const jobs = [
    ...(isCold && isWhole ? [() => compileAll(files)] : []),
    ...checks.map((check) => () => runCheck(check)),
    ...files.map((file) => () => runFile(file, limitMs)),
  ];
  const reports = await runJobs(jobs, atOnce);
  const failures = reports.flatMap((report) => report.failures);
  failures.push(...without.map((text) => ({ title: "programs", text })));
  for (const word of options.words)
    if (!files.some((file) => file.includes(word)))
      failures.push({ title: word, text: "no test file has it in its path" });
  const skipped = reports.flatMap((report) => report.skipped);
  finish({ passed: reports.reduce((sum, report) => sum + report.passed, 0), failures, skipped });
}

function parseArguments(args: readonly string[]): Options {
  if (args.includes("--help") || args.includes("-h")) {
    console.log("npm test -- [--quick] [WORD…]\n");
    console.log(
      "  --quick  fewer cases, and without *.slow.test.ts\n  WORD     only test files whose path contains it",
    );
    process.exit(0);
  }
  const unknown = args.find((arg) => arg.startsWith("-") && arg !== "--quick");
  if (unknown !== undefined) {
    console.error(`unknown option ${unknown}; known: --quick, and words that file paths must contain`);
    process.exit(2);
  }
  return { quick: args.includes("--quick"), words: args.filter((arg) => !arg.startsWith("-")) };
}

function filesFor({ quick, words }: Options): string[] {
  return globSync(["src/**/*.test.ts", "test/**/*.test.ts"])
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !(quick && IS_SLOW.test(path)))
    .filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
    .sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
}

function rankOf(file: string): number {
  const rank = LONGEST_FIRST.findIndex((pattern) => pattern.test(file));
  return rank === -1 ? LONGEST_FIRST.length : rank;
}

/** For the tests and every process they start. Says whether there is nothing yet. */
function keepWhatIsCompiled(): boolean {
  if (process.env.NODE_COMPILE_CACHE !== undefined) return false;
  const directory = resolve(CACHE, "compiled");
  process.env.NODE_COMPILE_CACHE = directory;
  if (existsSync(directory) && readdirSync(directory, { recursive: true }).length > COMPILED_FILES_MAX)
    rmSync(directory, { recursive: true, force: true });
  return !existsSync(directory);
}

/**
 * Compiles every test file and all it imports, once, or each process would begin by compiling for itself.
 *
 * Node loads and compiles what a module imports before it finds that a name is missing, and then runs none of it.
 */
async function compileAll(files: readonly string[]): Promise<Report> {
  const imports = files.map((file) => `import ${JSON.stringify(pathToFileURL(file))};`);
  const code = [...imports, 'import { nothingOfThisName } from "node:fs";'].join("\n");
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", code];
  await once(spawn(process.execPath, args, { stdio: "ignore", timeout: CHECK_LIMIT_MS }), "close");
  return { file: "compiled", output: [], failures: [], skipped: [], passed: 0 };
}

/** Runs tools one after the other; what failed comes back as failures. */
async function runCheck({ name, commands }: Check): Promise<Report> {
  const report: Report = { file: name, output: [], failures: [], skipped: [], passed: 0 };
  for (const [tool, ...args] of commands) {
    const child = spawn(resolve("node_modules/.bin", tool), args, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: CHECK_LIMIT_MS,
    });
    const printed: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes: Buffer) => void printed.push(bytes));
    const ended = await once(child, "close").then(
      ([code, signal]) => (code === 0 ? null : `it ended with ${signal ?? `exit code ${code}`}`),
      (error: Error) => error.message,
    );
    const text = Buffer.concat(printed).toString().trimEnd();
    if (ended !== null) report.failures.push({ title: [tool, ...args].join(" "), text: `${ended}\n${text}`.trimEnd() });
    else if (text !== "") report.output.push(...text.split("\n"));
  }
  return report;
}

/** So many at once, and more while the cores are idle. */
async function runJobs(jobs: readonly Job[], atOnce: number): Promise<Report[]> {
  const startedAt = performance.now();
  const reports: Report[] = [];
  const waiting = [...jobs];
  const most = availableParallelism() * PER_CORE_MAX;
  let underWay = 0;
  async function drain(): Promise<void> {
    underWay += 1;
    // Whoever came beside the others while the cores were idle goes again.
    for (let job = waiting.shift(); job !== undefined; job = underWay > atOnce ? undefined : waiting.shift()) {
      const jobStartedAt = performance.now();
      const report = await job();
      reports.push(report);
      console.log(`  ${summary(report)}  ${secondsSince(jobStartedAt)}`);
      for (const line of report.output) console.log(`      ${line}`);
    }
    underWay -= 1;
  }
  const drains = Array.from({ length: atOnce }, drain);
  const idleShare = idleShareOfCores();
  const look = setInterval(() => {
    const isRoom = idleShare() > IDLE_SHARE && underWay >= atOnce && underWay < most;
    if (isRoom && waiting.length > 0) drains.push(drain());
  }, LOOK_MS);
  // More may come while these are waited for; once nothing waits, none does.
  for (let at = 0; at < drains.length; at++) await drains[at];
  clearInterval(look);
  console.log(`  ${mark(reports.every(({ failures }) => failures.length === 0))} all  ${secondsSince(startedAt)}`);
  return reports;
}

/** Of the time since the last look, the part in which the cores had nothing to do. */
function idleShareOfCores(): () => number {
  const read = (): { readonly idle: number; readonly all: number } => {
    const times = cpus().map((core) => core.times);
    const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
    return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all };
  };
  let before = read();
  return () => {
    const now = read();
    const share = now.all === before.all ? 0 : (now.idle - before.idle) / (now.all - before.all);
    before = now;
    return share;
  };
}

async function runFile(file: string, limitMs: number): Promise<Report> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`the file took over ${limitMs / 1000} s`)), limitMs);
  const report: Report = { file, output: [], failures: [], skipped: [], passed: 0 };
  const note = noteInto(report);
  try {
    const execArgv = ["--disable-warning=ExperimentalWarning"];
    const events = run({ files: [resolve(file)], concurrency: 1, signal: limit.signal, execArgv });
    for await (const event of events) note(event as TestEvent);
  } finally {
    clearTimeout(timer);
  }
  return report;
}

/**
 * Turns the events of one file into its report.
 *
 * Results arrive in the order of the source, children before their parent, so "has children" is known by the
 * time a parent's own result comes. A parent that failed only because a child did is not counted again.
 */
function noteInto(report: Report): (event: TestEvent) => void {
  const path: string[] = [];
  const hasChildren: boolean[] = [];
  const underWay = new Set<string>();

  function noteResult(passed: boolean, data: TestEventData): void {
    const { name = "", nesting = 0, details } = data;
    const isLeaf = details?.type !== "suite" && hasChildren[nesting + 1] !== true;
    hasChildren[nesting] = true;
    hasChildren[nesting + 1] = false;
    const isFile = nesting === 0 && name === resolve(report.file);
    const title = isFile ? report.file : [report.file, ...path.slice(0, nesting), name].join(" › ");
    if (data.skip !== undefined || data.todo !== undefined) report.skipped.push(title);
    else if (!passed && details?.error?.failureType !== "subtestsFailed")
      report.failures.push({ title, text: [...describe(data), ...(isFile ? aftermath() : [])].join("\n") });
    else if (passed && isFile) report.failures.push({ title, text: "the file holds no test" });
    else if (passed && isLeaf) report.passed += 1;
  }

  /** What is known when a whole file fails: a crash or a hang says little by itself. */
  function aftermath(): string[] {
    const hung = underWay.size === 0 ? [] : [`under way at the end: ${[...underWay].join(", ")}`];
    return [...hung, ...report.output.slice(-OUTPUT_LINES_REPEATED)];
  }

  return ({ type, data }) => {
    const { name = "", nesting = 0 } = data;
    if (type === "test:stdout" || type === "test:stderr")
      report.output.push(...(data.message ?? "").trimEnd().split("\n"));
    if (type === "test:diagnostic" && /^(Error|Warning):/.test(data.message ?? ""))
      report.output.push(data.message ?? "");
    if (type === "test:dequeue" && name !== resolve(report.file)) underWay.add(name);
    if (type === "test:complete") underWay.delete(name);
    if (type === "test:start") path[nesting] = name;
    if (type === "test:pass" || type === "test:fail") noteResult(type === "test:pass", data);
  };
}

function describe({ details, file, line }: TestEventData): string[] {
  const error = details?.error;
  const thrown = error?.cause instanceof Error || error?.failureType === "testCodeFailure" ? error?.cause : error;
  const where = file === undefined || line === undefined ? [] : [`at ${relative(ROOT, file)}:${line}`];
  return [...where, ...describeThrown(thrown ?? error)];
}

/** The stack without Node's own frames, then the cause of the cause: fast-check keeps the real error there. */
function describeThrown(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return (typeof thrown === "string" ? thrown : inspect(thrown)).split("\n");
  const stack = (thrown.stack ?? String(thrown)).split("\n").filter((row) => !/^\s+at .*\bnode:/.test(row));
  return thrown.cause === undefined ? stack : [...stack, "caused by:", ...describeThrown(thrown.cause)];
}

type Sum = { readonly passed: number; readonly failures: readonly Failure[]; readonly skipped: readonly string[] };

/** Prints what went wrong and then, as the very last line, the sum. */
function finish({ passed, failures, skipped }: Sum): void {
  const isCi = process.env.CI === "true";
  const skips = isCi ? skipped.map((title) => ({ title, text: "skipped, and CI skips nothing" })) : [];
  const all = [...failures, ...skips];
  if (all.length > 0) heading("failed");
  for (const [index, { title, text }] of all.entries()) {
    console.log(`\n${styleText("red", `${index + 1}. ${title}`)}`);
    for (const line of text.split("\n")) console.log(`     ${line}`);
  }
  if (!isCi && skipped.length > 0) {
    heading("skipped");
    for (const title of skipped) console.log(`  ${title}`);
  }
  const nothingRan = passed + all.length === 0;
  if (nothingRan) console.log("\nnothing ran");
  process.exitCode = all.length > 0 || nothingRan ? 1 : 0;
  const skippedPart = !isCi && skipped.length > 0 ? `, ${skipped.length} skipped` : "";
  console.log(`\n${passed} passed, ${all.length} failed${skippedPart}`);
}

function summary({ file, passed, failures, skipped }: Report): string {
  const parts = passed > 0 ? [`${passed} passed`] : [];
  if (failures.length > 0) parts.push(`${failures.length} failed`);
  if (skipped.length > 0) parts.push(`${skipped.length} skipped`);
  return [`${mark(failures.length === 0)} ${file}`, ...(parts.length > 0 ? [parts.join(", ")] : [])].join("  ");
}

function heading(text: string): void {
  console.log(`\n${styleText("bold", text)}`);
}

function mark(isGood: boolean): string {
  return isGood ? styleText("green", "✔") : styleText("red", "✖");
}

function secondsSince(startedAt: number): string {
  return styleText("dim", `${((performance.now() - startedAt) / 1000).toFixed(2)} s`);
}
