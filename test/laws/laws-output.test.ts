/**
 * Whatever a child prints or leaves as its result, its worker goes on and has something valid to report.
 *
 * What a child printed goes the way it goes in a worker: lines, a listener with each tool's reader, an outcome, a
 * report on the wire. The far end is strict, as in real life: it throws at what makes no sense. So nothing may reach it
 * that does.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { tokensOf as tokensInEngine } from "../../src/engine/base/charged-tokens.ts";
import { TaskRequeue } from "../../src/engine/index.ts";
import { readSync } from "../../src/engine/workers/sync.ts";
import { readShape, syncBody, type Usage } from "../../src/protocol/index.ts";
import type { ExecOutcome } from "../../src/worker/exec/contract.ts";
import { createListener } from "../../src/worker/exec/listener.ts";
import { type Ending, finishedOutcome, outcomeOf } from "../../src/worker/exec/outcome.ts";
import { PRESETS } from "../../src/worker/exec/presets.ts";
import { type Answer, isShallow, readAnswer } from "../../src/worker/exec/result.ts";
import { createEventReader, type LineReader } from "../../src/worker/output/events.ts";
import { createLineSplitter } from "../../src/worker/output/lines.ts";
import { createRedactor } from "../../src/worker/output/redact.ts";
import type { Report } from "../../src/worker/pull/messages.ts";
import { reportOfError, reportOfOutcome, tokensOf } from "../../src/worker/pull/outcome.ts";
import { holdsInTime } from "../kits/laws/cases.ts";

const NEWLINE = Buffer.from("\n");
/** As much of its output as stands in for a result. */
const RECENT_MAX = 16 * 1024;
const facts = { args: [], promptFile: "prompt" };
const task = { taskId: "t", attempt: 1, action: "do" };
const READERS: Readonly<Record<string, () => LineReader>> = {
  "any command": createEventReader,
  claude: () => PRESETS.claude(task, facts).createReader(),
  codex: () => PRESETS.codex(task, facts).createReader(),
  aider: () => PRESETS.aider(task, facts).createReader(),
};

const number = fc.oneof(
  fc.constantFrom(1e13, 1e300, -1, -0, 0.5, 2 ** 53, Number.MAX_VALUE, 1e12, 12345678),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
/** JSON text: `JSON.stringify` alone would write neither a number without an end nor the name of a prototype. */
const leaf: fc.Arbitrary<string> = fc.oneof(
  number.map((value) => JSON.stringify(value)),
  fc.constantFrom("1e400", "-1e999", "null", "true", '"\\ud800"', '"12345678"', '"rate limit; try again in 9e99 s"'),
  fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
  fc.constantFrom(1, 63, 64, 65, 66, 9000).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
  fc.constantFrom(63, 64, 65, 3000).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
);
const NAMES = [
  ...["type", "usage", "inputTokens", "input_tokens", "outputTokens", "cache_creation_input_tokens", "value", "result"],
  ...["is_error", "error", "errors", "subtype", "session_id", "thread_id", "message", "content", "id", "item", "text"],
  ...["__proto__", "constructor", "toString", "workspace", "12345678", "retryAfterMs", "retry_after", "reason"],
];
const TYPES = [
  ...["progress", "usage", "heartbeat", "result", "assistant", "system", "thread.started", "item.completed"],
  ...["turn.completed", "turn.failed", "error", "agent_message", "text", "tool_use"],
];
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("json"), { maxLength: 3 }).map((items) => `[${items.join()}]`),
    fc
      .tuple(fc.constantFrom(...TYPES), fc.array(fc.tuple(fc.constantFrom(...NAMES), tie("json")), { maxLength: 5 }))
      .map(([type, fields]) => {
        const all = [["type", JSON.stringify(type)] as const, ...fields];
        return `{${all.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join()}}`;
      }),
  ),
}));
const count = fc.constantFrom("12", "1.2k", "...", "9".repeat(400), "1.1.1M", "0");
/** Where each tool puts its tokens. */
const ACCOUNTS: readonly ((usage: string) => string)[] = [
  (usage) => `{"type":"usage",${usage.slice(1)}`,
  ...["usage", "heartbeat", "result", "turn.completed"].map(
    (type) => (usage: string) => `{"type":"${type}","usage":${usage}}`,
  ),
  (usage) => `{"type":"assistant","message":{"id":"m","usage":${usage}}}`,
];
const KINDS = ["inputTokens", "input_tokens", "output_tokens", "cache_creation_input_tokens"];
const account = fc
  .tuple(fc.constantFrom(...ACCOUNTS), fc.constantFrom(...KINDS), number)
  .map(([place, name, value]) => place(`{"${name}":${JSON.stringify(value)}}`));
const line: fc.Arbitrary<Buffer> = fc.oneof(
  account.map((text) => Buffer.from(text)),
  json.map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  fc.tuple(count, count).map(([sent, got]) => Buffer.from(`Tokens: ${sent} sent, ${got} cache write, ${got} received`)),
  fc.constantFrom("No conversation found with session ID: x", "429", "\r", "").map((text) => Buffer.from(text)),
);
const output = fc.array(fc.tuple(fc.constantFrom("out" as const, "err" as const), line), { maxLength: 8 });
const exit = fc.record({
  code: fc.constantFrom(0, 1, 75, 76, 77, 78, 124, 126, 127, 137, 255, null),
  signal: fc.constantFrom(null, null, "SIGKILL" as const),
});
const redact = createRedactor([{ PIN_TOKEN: "12345678", TRUE_TOKEN: "true" }]);

function listenWith(read: LineReader): ReturnType<typeof createListener> {
  return createListener({
    ...{ read, redact, onSession: () => {}, onProblem: () => {} },
    context: {
      usage: (usage) => assert.equal(tokensOf(usage), tokensInEngine(usage)),
      progress: (value) => {
        const text = JSON.stringify(value);
        assert.ok(text.length <= 16 * 1024 && !text.includes('"12345678"') && isShallow(value));
      },
    },
  });
}

type Spoken = Omit<Ending, "stop" | "answer"> & { readonly usage: Usage | null };

/** What is reported of it must be taken by whoever hears it: by the wire, and by the engine behind it. */
function assertReportable(answer: Answer, { usage, ...ending }: Spoken): void {
  const outcome = outcomeOf({ ...ending, stop: null, answer });
  const finished = finishedOutcome(outcome, { workspace: null, usage, redact });
  assert.doesNotThrow(() => new TaskRequeue("later", { retryAfterMs: finished.retryAfterMs ?? 0 }));
  const { result, ...report } = reported(finished);
  const told = { taskId: "t", attempt: 1, ...report, ...(result === undefined ? {} : { result: JSON.parse(result) }) };
  const body = JSON.parse(JSON.stringify({ results: [told] }));
  const read = readShape(syncBody, body);
  assert.ok(read.ok, JSON.stringify(read));
  assert.doesNotThrow(() => readSync(body));
}

/** A number without an end is nobody's result: such a task fails, by name. */
function reported(finished: ExecOutcome): Report {
  try {
    return reportOfOutcome(finished, null);
  } catch (error) {
    assert.match((error as Error).message, /^result.* must be a finite number, not -?Infinity$/);
    return reportOfError(error, null, 0);
  }
}

for (const [name, createReader] of Object.entries(READERS))
  test(`no output of ${name} ends its worker, and what is reported of it is valid`, async () => {
    await holdsInTime(2000, fc.tuple(output, exit), async ([lines, end]) => {
      const listener = listenWith(createReader());
      for (const stream of ["out", "err"] as const) {
        const splitter = createLineSplitter(64 * 1024, (text, lost) => listener.line(stream, text, lost));
        for (const [where, bytes] of lines) if (where === stream) splitter.push(Buffer.concat([bytes, NEWLINE]));
        splitter.end();
      }
      const { heard } = listener;
      const { failure, isRateLimited, usage } = heard;
      const spoken = lines.map(([, bytes]) => redact.line(bytes.toString("utf8"))).join("\n");
      const answer = await readAnswer({ file: "/nowhere/at/all", ...heard });
      const words = { lastWords: spoken.slice(-100), output: spoken.slice(-RECENT_MAX) };
      assertReportable(answer, { ...end, failure, isRateLimited, usage, ...words });
    });
  });

const room = mkdtempSync(join(tmpdir(), "drover-results-"));
after(() => rmSync(room, { recursive: true }));

test("no result file ends its worker, and what is reported of it is valid", async () => {
  const file = join(room, "result");
  const contents = fc.oneof(
    json,
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom("", " ", "x".repeat(300_000), `"${"x".repeat(262_142)}"`, "[".repeat(262_144)),
  );
  const rest = { failure: null, isRateLimited: false, usage: null, lastWords: "", output: "" };
  await holdsInTime(2000, fc.tuple(contents, exit), async ([content, end]) => {
    writeFileSync(file, content);
    assertReportable(await readAnswer({ file, result: null, lastJson: null }), { ...end, ...rest });
  });
});

const NOT_A_FILE: readonly (readonly [name: string, make: (path: string) => void])[] = [
  ["a directory", (path) => mkdirSync(path)],
  ["a pipe nobody writes to", (path) => execFileSync("mkfifo", [path])],
  ["a link to a directory", (path) => symlinkSync("/", path)],
  ["a link to a device without an end", (path) => symlinkSync("/dev/zero", path)],
  ["a link to itself", (path) => symlinkSync(path, path)],
  ["a file nobody may read", (path) => writeFileSync(path, "{}", { mode: 0 })],
  ["a file of a terabyte with nothing in it", (path) => execFileSync("truncate", ["--size=1T", path])],
];
for (const [index, [name, make]] of NOT_A_FILE.entries())
  test(`${name} in the place of the result file is named, and holds up nobody`, async () => {
    const file = join(room, `odd-${index}`);
    make(file);
    const answer = await readAnswer({ file, result: null, lastJson: null });
    assertReportable(answer, {
      ...{ code: 0, signal: null, failure: null, isRateLimited: false, usage: null, lastWords: "", output: "" },
    });
    // Root may read what nobody may.
    if (name !== "a file nobody may read") assert.equal(answer.kind, "bad");
  });
