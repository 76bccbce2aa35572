import assert from "node:assert/strict";
import { test } from "node:test";
import { createListener, type Listener } from "../exec/listener.ts";
import { createEventReader, saysRateLimited } from "./events.ts";
import { createRedactor } from "./redact.ts";

type Told = { progress: unknown[]; usage: unknown[]; sessions: string[]; problems: string[]; listener: Listener };

function listen(...lines: (string | object)[]): Told {
  const told: Omit<Told, "listener"> = { progress: [], usage: [], sessions: [], problems: [] };
  const listener = createListener({
    read: createEventReader(),
    context: { progress: (value) => told.progress.push(value), usage: (value) => told.usage.push(value) },
    redact: createRedactor([{ A_TOKEN: "secret-token" }]),
    onSession: (id) => told.sessions.push(id),
    onProblem: (problem) => told.problems.push(problem),
  });
  for (const line of lines) listener.line("out", typeof line === "string" ? line : JSON.stringify(line), 0);
  return { ...told, listener };
}

test("events are told as they come, and anything else is log", () => {
  const { progress, usage, listener } = listen(
    "plain text",
    '{"broken":',
    { type: "progress", value: { percent: 10 } },
    { type: "progress", step: 2, of: 3 },
    { type: "usage", inputTokens: 10, outputTokens: 2 },
    { type: "usage", usage: { input_tokens: 30, output_tokens: 1, cache_creation_input_tokens: 5 } },
    { type: "heartbeat" },
    { type: "something-else", value: 1 },
  );
  assert.deepEqual(progress, [{ percent: 10 }, { step: 2, of: 3 }]);
  assert.deepEqual(usage, [
    { inputTokens: 10, outputTokens: 2 },
    { inputTokens: 30, outputTokens: 2, cacheCreationTokens: 5 },
  ]);
  assert.deepEqual(listener.heard.result, null);
  assert.deepEqual(listener.heard.lastJson, { value: { type: "something-else", value: 1 } });
});

const results: [string, object, unknown][] = [
  ["its result", { type: "result", result: { a: 1 } }, { a: 1 }],
  ["a null one too", { type: "result", result: null }, null],
  ["what else stands there", { type: "result", answer: 42, usage: { inputTokens: 1 } }, { answer: 42 }],
];
for (const [name, line, expected] of results)
  test(`the result of a line is ${name}`, () => {
    assert.deepEqual(listen({ type: "result", result: "older" }, line).listener.heard.result, { value: expected });
  });

test("the last line of a coding agent is understood: session, cost, usage", () => {
  const { listener, sessions, usage } = listen(
    { type: "system", subtype: "init", session_id: "s-1" },
    {
      ...{ type: "result", subtype: "success", is_error: false, result: "Done.", session_id: "s-1" },
      ...{ total_cost_usd: 0.25, num_turns: 3, duration_ms: 1200 },
      usage: { input_tokens: 100, cache_creation_input_tokens: 20, cache_read_input_tokens: 900, output_tokens: 50 },
    },
  );
  assert.deepEqual(sessions, ["s-1", "s-1"]);
  const value = { result: "Done.", sessionId: "s-1", costUsd: 0.25, turns: 3, durationMs: 1200 };
  assert.deepEqual(listener.heard.result, { value });
  assert.deepEqual(usage, [
    { inputTokens: 100, outputTokens: 50, cacheCreationTokens: 20, cachedTokens: 900, cost: 0.25 },
  ]);
  assert.equal(listener.heard.failure, null);
});

const failures: [object, string][] = [
  [{ type: "result", is_error: true, result: "API Error: 500" }, "API Error: 500"],
  [
    { type: "result", is_error: true, errors: ["Reached maximum number of turns (1)"] },
    "Reached maximum number of turns (1)",
  ],
  [{ type: "result", is_error: true, subtype: "error_max_turns" }, "the agent says it failed: error_max_turns"],
];
for (const [line, error] of failures)
  test(`an agent that says it failed has failed: ${error}`, () => {
    assert.deepEqual(listen(line).listener.heard.failure, { error });
  });

test("a later line without an error takes the failure back", () => {
  const { listener } = listen({ type: "result", is_error: true }, { type: "result", result: 1 });
  assert.equal(listener.heard.failure, null);
});

test("usage that is none is left out", () => {
  const bad = [{ inputTokens: -1 }, { inputTokens: "5" }, { inputTokens: null }, {}, { outputTokens: "1e400" }];
  assert.deepEqual(listen(...bad.map((usage) => ({ type: "usage", usage }))).usage, []);
});

test("usage beyond any account is not charged, and that is said once", () => {
  const line = { type: "usage", inputTokens: 1e13, outputTokens: 7 };
  const { usage, problems } = listen(line, line, { type: "heartbeat", usage: { input_tokens: 5 } });
  assert.deepEqual(usage, [{ outputTokens: 7 }, { outputTokens: 7 }, { inputTokens: 5, outputTokens: 7 }]);
  assert.deepEqual(problems, ["inputTokens is not counted: it must be a number from 0 to 1000000000000"]);
});

test("progress is bounded, and holds no known secret", () => {
  const { progress } = listen(
    { type: "progress", value: "x".repeat(20_000) },
    { type: "progress", value: ["secret-token"] },
  );
  assert.ok(typeof progress[0] === "string" && progress[0].length < 9000);
  assert.deepEqual(progress[1], ["[redacted]"]);
});

test("numbers and words on a line of their own are no result, and stderr has none", () => {
  const { listener } = listen("42", "true", '"text"', "null");
  listener.line("err", '{"type":"result","result":1}', 0);
  listener.line("out", '{"a":"cut off', 5);
  assert.deepEqual([listener.heard.result, listener.heard.lastJson], [null, null]);
});

for (const said of [
  "HTTP 429",
  "HTTP/1.1 429 Too Many Requests",
  "status 429",
  "status: 529",
  '{"status":529}',
  '{"statusCode":429}',
  '{"http_status": "429"}',
  "error code: 429",
  "Error 529",
  "API Error: 429",
  "API error (429)",
  "Request failed with status code 429",
  "the provider answered 429",
  "429 Too Many Requests",
  '{"type":"error","error":{"type":"rate_limit_error"}}',
  "Rate limit reached",
  "rate-limited",
  '{"error":{"type":"overloaded_error"}}',
  "Claude AI usage limit reached|1700000000",
])
  test(`a provider says so: ${said}`, () => assert.equal(saysRateLimited(said), true));

for (const said of [
  '{"processed":429}',
  "line 429 of main.ts",
  "main.ts:429:12 error: no such name",
  "429 tests passed",
  "wrote 529 bytes",
  "exit code 1 after 429 ms",
  "error in line 429",
  "status 4290",
  "port 5290",
  "code 1429",
  "decode 429 frames",
])
  test(`no provider says so: ${said}`, () => assert.equal(saysRateLimited(said), false));
