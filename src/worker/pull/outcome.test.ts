import assert from "node:assert/strict";
import { test } from "node:test";
import { TaskRequeue } from "../../std/retry-after.ts";
import { reportOfError, reportOfOutcome, reportOfValue } from "./outcome.ts";

const NOW = Date.parse("2026-01-31T12:00:00Z");

test("errors become reports", () => {
  const used = { inputTokens: 1 };
  const rows: [unknown, object][] = [
    [new Error("no"), { outcome: "failed", error: "no", usage: used }],
    [new RangeError(""), { outcome: "failed", error: "RangeError", usage: used }],
    ["text", { outcome: "failed", error: "text", usage: used }],
    [undefined, { outcome: "failed", error: "nothing", usage: used }],
    [{ a: 1 }, { outcome: "failed", error: '{"a":1}', usage: used }],
    [
      Object.assign(new Error("x"), { permanent: true }),
      { outcome: "failed", error: "x", permanent: true, usage: used },
    ],
    [
      new TaskRequeue("later", { retryAfterMs: 4.2 }),
      { outcome: "requeue", error: "later", retryAfterMs: 5, usage: used },
    ],
    [
      { status: 429, retryAfterMs: 9 },
      { outcome: "requeue", retryAfterMs: 9, rateLimited: true, usage: used },
    ],
  ];
  for (const [error, expected] of rows) assert.partialDeepStrictEqual(reportOfError(error, used, NOW), expected);
  assert.ok(reportOfError("\ud800", null, NOW).error?.isWellFormed());
  assert.throws(() => new TaskRequeue("x", { retryAfterMs: -1 }), /retryAfterMs is -1/);
});

test("a value is a result as JSON; nothing is none", () => {
  assert.deepEqual(reportOfValue(undefined, null), { outcome: "done" });
  assert.deepEqual(reportOfValue({ a: undefined, b: [null] }, { inputTokens: 2 }), {
    ...{ outcome: "done", result: '{"b":[null]}', usage: { inputTokens: 2 } },
  });
});

test("of what was reported and what the outcome says the larger usage counts", () => {
  const usageOf = (said: object, used: object | null) => reportOfOutcome({ outcome: "failed", ...said }, used).usage;
  assert.deepEqual(usageOf({ usage: { inputTokens: 5 } }, { inputTokens: 3 }), { inputTokens: 5 });
  assert.deepEqual(usageOf({ usage: { inputTokens: 5 } }, { inputTokens: 7 }), { inputTokens: 7 });
  assert.deepEqual(usageOf({ usage: { nonsense: 5 } }, { inputTokens: 7 }), { inputTokens: 7 });
  assert.equal(usageOf({}, null), undefined);
});
