import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExecOutcome } from "./contract.ts";
import { type Ending, outcomeOf, outcomeOfSpawnError } from "./outcome.ts";

const value = (result: unknown): Ending["answer"] => ({ kind: "value", value: result });
const plain: Ending = {
  ...{
    code: 0,
    signal: null,
    stop: null,
    answer: { kind: "none" },
    failure: null,
    isRateLimited: false,
    lastWords: "",
    output: "",
  },
};
const idle = { kind: "idle", spanMs: 5000 } as const;
const cancelled = { kind: "cancelled", reason: "deadline exceeded" } as const;
const closing = { kind: "closing" } as const;
const failed = (error: string, more: object = {}): ExecOutcome => ({ outcome: "failed", error, ...more });
const requeue = (error: string, more: object = {}): ExecOutcome => ({ outcome: "requeue", error, ...more });
const PERMANENT = { permanent: true };
const PATH_ADVICE = "install it, or add its directory to the PATH of the worker";
const OOM = "which this worker did not send: likely out of memory";

const rows: [string, Partial<Ending>, ExecOutcome][] = [
  ["0 is done", {}, { outcome: "done", result: { exitCode: 0 } }],
  ["0 with output", { output: "hi" }, { outcome: "done", result: { exitCode: 0, output: "hi" } }],
  ["0 with a result", { answer: value([1]), output: "hi" }, { outcome: "done", result: [1] }],
  ["0 with a null result", { answer: value(null) }, { outcome: "done", result: null }],
  ["0 with a bad result file", { answer: { kind: "bad", error: "no JSON", permanent: false } }, failed("no JSON")],
  ["0 with too large a result", { answer: { kind: "bad", error: "big", permanent: true } }, failed("big", PERMANENT)],
  ["0, but it says it failed", { failure: { error: "broken" } }, failed("broken")],
  [
    "0, but its provider is overloaded",
    { failure: { error: "429", later: { isRateLimited: true, retryAfterMs: 7 } } },
    requeue("429", { retryAfterMs: 7, rateLimited: true }),
  ],
  [
    "0, but its provider is away for a moment",
    { failure: { error: "503", later: { isRateLimited: false } } },
    requeue("503"),
  ],
  ["1", { code: 1, lastWords: "boom" }, failed("exit code 1: boom")],
  ["1 without words", { code: 1 }, failed("exit code 1")],
  [
    "1 in its own words",
    { code: 1, answer: value({ error: "why" }) },
    failed("exit code 1: why", { result: { error: "why" } }),
  ],
  ["1, and it says why", { code: 1, failure: { error: "max turns" } }, failed("max turns")],
  ["75", { code: 75, lastWords: "busy" }, requeue("it asks to come back later (exit code 75): busy")],
  [
    "75 with an instant in ms",
    { code: 75, answer: value({ retryAfterMs: 1500 }) },
    requeue("it asks to come back later (exit code 75)", { retryAfterMs: 1500 }),
  ],
  [
    "75 with an instant in seconds",
    { code: 75, answer: value({ retry_after: 2.5, reason: "quota" }) },
    requeue("it asks to come back later (exit code 75): quota", { retryAfterMs: 2500 }),
  ],
  [
    "75 with nonsense",
    { code: 75, answer: value({ retry_after: -1 }) },
    requeue("it asks to come back later (exit code 75)"),
  ],
  [
    "75 with a provider's message on stderr",
    { code: 75, isRateLimited: true, lastWords: "HTTP 429" },
    requeue("it asks to come back later (exit code 75): HTTP 429", { rateLimited: true }),
  ],
  [
    "75 with a provider's message in its result",
    { code: 75, answer: value({ error: { type: "rate_limit_error" }, retry_after: 3 }) },
    requeue("it asks to come back later (exit code 75)", { retryAfterMs: 3000, rateLimited: true }),
  ],
  [
    "75 with a provider's message and an hour: a program's word shuts a gate for ten minutes at most",
    { code: 75, answer: value({ error: { type: "rate_limit_error" }, retry_after: 3600 }) },
    requeue("it asks to come back later (exit code 75)", { retryAfterMs: 600_000, rateLimited: true }),
  ],
  [
    "75 and an hour, without a provider: it rests as it asks",
    { code: 75, answer: value({ retry_after: 3600 }) },
    requeue("it asks to come back later (exit code 75)", { retryAfterMs: 3_600_000 }),
  ],
  [
    "75 with a status in its result",
    { code: 75, answer: value({ status: 529 }) },
    requeue("it asks to come back later (exit code 75)", { rateLimited: true }),
  ],
  [
    "75 with a preset that heard its provider",
    { code: 75, failure: { error: "overloaded", later: { isRateLimited: true } } },
    requeue("it asks to come back later (exit code 75)", { rateLimited: true }),
  ],
  ["76", { code: 76, lastWords: "which one?" }, { outcome: "ask", question: "which one?" }],
  ["76 without a word", { code: 76 }, { outcome: "ask", question: "it needs a human (exit code 76)" }],
  [
    "76 with a question in its result",
    { code: 76, lastWords: "hm", answer: { kind: "value", value: { question: "red or blue?", timeoutMs: 5 } } },
    { outcome: "ask", question: "red or blue?", timeoutMs: 5 },
  ],
  ["77", { code: 77 }, requeue("its budget is exhausted (exit code 77)")],
  ["78", { code: 78, lastWords: "no key" }, failed("its configuration is wrong (exit code 78): no key", PERMANENT)],
  ["124", { code: 124 }, failed("it timed out (exit code 124)")],
  ["126", { code: 126 }, failed("a program is not executable (exit code 126); make it so with chmod +x", PERMANENT)],
  [
    "127",
    { code: 127, lastWords: "sh: 1: x: not found" },
    failed(`a program was not found (exit code 127): sh: 1: x: not found; ${PATH_ADVICE}`, PERMANENT),
  ],
  ["137, likely memory", { code: 137 }, failed(`exit code 137, died by SIGKILL, ${OOM}`)],
  ["143", { code: 143 }, failed("exit code 143, died by SIGTERM")],
  ["255", { code: 255 }, failed("exit code 255")],
  ["a signal", { code: null, signal: "SIGSEGV" }, failed("it died by SIGSEGV")],
  ["SIGKILL, likely memory", { code: null, signal: "SIGKILL" }, failed(`it died by SIGKILL, ${OOM}`)],
  [
    "stopped by the server",
    { code: null, signal: "SIGKILL", stop: cancelled },
    { outcome: "cancelled", error: "deadline exceeded" },
  ],
  [
    "stopped, and it ended well",
    { stop: cancelled, answer: value(1) },
    { outcome: "cancelled", error: "deadline exceeded" },
  ],
  ["closing", { code: 130, stop: closing }, requeue("its worker is closing")],
  ["closing, and nothing said", { stop: closing, output: "hm" }, requeue("its worker is closing")],
  ["closing, and it finished", { stop: closing, answer: value(1) }, { outcome: "done", result: 1 }],
  [
    "closing, and it failed",
    { stop: closing, answer: value(1), failure: { error: "x" } },
    requeue("its worker is closing"),
  ],
  [
    "idle",
    { signal: "SIGINT", stop: idle, lastWords: "hm" },
    failed("it wrote nothing for 5000 ms and was stopped (idle timeout): hm"),
  ],
  [
    "never began",
    { code: 0, stop: { kind: "start", spanMs: 100 } },
    failed("it wrote nothing in its first 100 ms and was stopped (start timeout)"),
  ],
];
for (const [name, ending, expected] of rows)
  test(`an end and what it means: ${name}`, () => assert.deepEqual(outcomeOf({ ...plain, ...ending }), expected));

const spawnErrors: [string, Partial<ExecOutcome>, RegExp][] = [
  ["ENOENT", { outcome: "failed", permanent: true }, /the program agent was not found; install it, or add .* PATH/],
  ["EACCES", { outcome: "failed", permanent: true }, /chmod \+x/],
  ["E2BIG", { outcome: "failed", permanent: true }, /too long/],
  ["ENOEXEC", { outcome: "failed", permanent: true }, /first line/],
  ["EAGAIN", { outcome: "requeue", retryAfterMs: 5000 }, /no room for another process/],
  ["EMFILE", { outcome: "requeue", retryAfterMs: 5000 }, /EMFILE/],
  ["EWHATEVER", { outcome: "failed" }, /could not be started: EWHATEVER/],
];
for (const [code, expected, message] of spawnErrors)
  test(`a child that cannot be started: ${code}`, () => {
    const { error = "", ...rest } = outcomeOfSpawnError(Object.assign(new Error(code), { code }), ["agent"], "/w");
    assert.deepEqual(rest, expected);
    assert.match(error, message);
  });
