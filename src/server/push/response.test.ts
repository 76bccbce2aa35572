import assert from "node:assert/strict";
import { test } from "node:test";
import { ANSWER_BYTES_MAX, outcomeOf, type PushAnswer, type PushOutcome } from "./response.ts";

function answer(status: number, body: string | Uint8Array = "", more: Partial<PushAnswer> = {}): PushAnswer {
  return { status, contentType: "", retryAfterMs: null, bytes: Buffer.from(body), isWhole: true, ...more };
}
const typed = (contentType: string): Partial<PushAnswer> => ({ contentType });
const permanent = true as const;

const FILE = { path: "a/spec.md", hash: "ab".repeat(32), size: 3 };
const UNSAFE =
  'its files cannot be kept: [0].path is "../up", and must be a relative path of at most 1024 characters ' +
  "that stays in its directory, with slashes";
const rateLimited = true;
const rows: [claim: string, answer: PushAnswer, outcome: PushOutcome][] = [
  ["JSON is the result", answer(200, '{"a":[1]}', typed("application/json")), { outcome: "done", result: { a: [1] } }],
  ["null is a result", answer(200, "null", typed("application/json")), { outcome: "done", result: null }],
  ["JSON without a type is JSON", answer(201, "[1]"), { outcome: "done", result: [1] }],
  ["JSON that is none is text", answer(200, "{oops", typed("application/json")), { outcome: "done", result: "{oops" }],
  ["text is text", answer(200, "123", typed("text/plain; charset=utf-8")), { outcome: "done", result: "123" }],
  ["text/json is JSON", answer(200, "123", typed("text/json")), { outcome: "done", result: 123 }],
  ["an empty body is no result", answer(204), { outcome: "done" }],
  [
    "bytes that are no text are base64 with their type",
    answer(200, new Uint8Array([0x89, 0x50, 0xff]), typed("image/png")),
    { outcome: "done", result: { contentType: "image/png", base64: "iVD/" } },
  ],
  [
    "again asks for another round",
    answer(200, '{"again":true,"note":"2 red"}', typed("application/json")),
    { outcome: "again", note: "2 red" },
  ],
  [
    "ask parks it",
    answer(200, '{"ask":"ship it?","timeoutMs":5}'),
    { outcome: "ask", question: "ship it?", timeoutMs: 5 },
  ],
  ["ask with more is a result", answer(200, '{"ask":"a","b":1}'), { outcome: "done", result: { ask: "a", b: 1 } }],
  ["again without a note", answer(200, '{"again":true}'), { outcome: "again" }],
  [
    "a note that is no text is a result",
    answer(200, '{"again":true,"note":2}'),
    { outcome: "done", result: { again: true, note: 2 } },
  ],
  [
    "files that it has put are listed, beside its result",
    answer(200, JSON.stringify({ files: [FILE], result: 5 })),
    { outcome: "done", result: 5, files: [FILE] },
  ],
  ["files alone are no result", answer(200, JSON.stringify({ files: [FILE] })), { outcome: "done", files: [FILE] }],
  ["no files are a result", answer(200, '{"files":[]}'), { outcome: "done", result: { files: [] } }],
  [
    "files that are named otherwise are a result",
    answer(200, '{"files":[{"name":"a"}]}'),
    { outcome: "done", result: { files: [{ name: "a" }] } },
  ],
  [
    "files with more beside are a result",
    answer(200, JSON.stringify({ files: [FILE], more: 1 })),
    { outcome: "done", result: { files: [FILE], more: 1 } },
  ],
  [
    "a file that leads elsewhere fails for good",
    answer(200, JSON.stringify({ files: [{ ...FILE, path: "../up" }] })),
    { outcome: "failed", error: UNSAFE, permanent },
  ],
  ["299 is done", answer(299), { outcome: "done" }],
  ["a redirect is a failure", answer(302), { outcome: "failed", error: "HTTP 302" }],
  ["300 is a failure", answer(300), { outcome: "failed", error: "HTTP 300" }],
  ["400 is final", answer(400, " bad ref \n"), { outcome: "failed", error: "HTTP 400: bad ref", permanent }],
  ["404 is final", answer(404), { outcome: "failed", error: "HTTP 404", permanent }],
  ["422 is final", answer(422), { outcome: "failed", error: "HTTP 422", permanent }],
  ["408 is of a moment", answer(408), { outcome: "failed", error: "HTTP 408" }],
  ["409 is of a moment", answer(409), { outcome: "failed", error: "HTTP 409" }],
  [
    "429 without a hint goes back to the queue",
    answer(429),
    { outcome: "requeue", error: "HTTP 429", retryAfterMs: 0, rateLimited },
  ],
  [
    "529 is a provider's word too",
    answer(529, "", { retryAfterMs: 5 }),
    { outcome: "requeue", error: "HTTP 529", retryAfterMs: 5, rateLimited },
  ],
  [
    "429 with a hint goes back to the queue",
    answer(429, "busy", { retryAfterMs: 2000 }),
    { outcome: "requeue", error: "HTTP 429: busy", retryAfterMs: 2000, rateLimited },
  ],
  [
    "503 with a hint goes back to the queue, for an hour at most",
    answer(503, "", { retryAfterMs: 1e12 }),
    { outcome: "requeue", error: "HTTP 503", retryAfterMs: 3_600_000 },
  ],
  ["503 without a hint is tried again", answer(503), { outcome: "failed", error: "HTTP 503" }],
  ["500 with a hint is a failure", answer(500, "", { retryAfterMs: 1 }), { outcome: "failed", error: "HTTP 500" }],
  ["500 is tried again", answer(500, "boom"), { outcome: "failed", error: "HTTP 500: boom" }],
];

for (const [claim, given, outcome] of rows) test(claim, () => assert.deepEqual(outcomeOf(given), outcome));

test("the body of a failure is cut", () => {
  const { error } = outcomeOf(answer(500, "ü".repeat(5000))) as { error: string };
  assert.equal(error, `HTTP 500: ${"ü".repeat(1000)}…`);
  assert.ok((outcomeOf(answer(500, "🐑".repeat(5000))) as { error: string }).error.isWellFormed());
});

test("a result of 256 KiB is kept, and one byte more is refused for good", () => {
  const text = "x".repeat(ANSWER_BYTES_MAX - 2);
  assert.deepEqual(outcomeOf(answer(200, JSON.stringify(text))), { outcome: "done", result: text });
  const refused = { outcome: "failed", permanent: true } as const;
  assert.partialDeepStrictEqual(outcomeOf(answer(200, "", { isWhole: false })), refused);
  assert.partialDeepStrictEqual(outcomeOf(answer(200, `${text}yyy`, typed("text/plain"))), refused);
});

test("what the log cannot hold fails this task and no other", () => {
  for (const body of ['{"a":1e999}', '"\\ud800"', `${"[".repeat(100)}${"]".repeat(100)}`])
    assert.partialDeepStrictEqual(outcomeOf(answer(200, body)), { outcome: "failed", permanent: true });
});
