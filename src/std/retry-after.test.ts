import assert from "node:assert/strict";
import { test } from "node:test";
import { rateLimitOf, readRetryAfter, TaskRequeue } from "./retry-after.ts";

const NOW = Date.parse("2026-01-31T12:00:00Z");
const rows: [header: string | undefined, expected: number | null][] = [
  [undefined, null],
  ["", null],
  ["0", 0],
  ["7", 7000],
  [" 120 ", 120_000],
  ["1.5", 1500],
  ["999999999", 999_999_999_000],
  ["9999999999999", 31_556_952_000_000],
  ["9".repeat(400), 31_556_952_000_000],
  ["-5", null],
  ["+5", null],
  ["1e9", null],
  ["0x10", null],
  ["soon", null],
  ["NaN", null],
  ["Infinity", null],
  ["Sat, 31 Jan 2026 12:00:30 GMT", 30_000],
  ["Sat, 31 Jan 2026 11:59:00 GMT", 0],
  ["Sat, 99 Foo 2026 12:00:30 GMT", null],
  ["2026-01-31T12:00:30Z", null],
];

for (const [header, expected] of rows)
  test(`Retry-After: ${header ?? "(absent)"} means ${expected ?? "nothing"}`, () =>
    assert.equal(readRetryAfter(header, NOW), expected));

const headers = new Headers({ "Retry-After": "2" });
const errors: [error: unknown, expected: number | null][] = [
  [undefined, null],
  [null, null],
  ["429", null],
  [new Error("429"), null],
  [{ status: 500, retryAfterMs: 5 }, null],
  [{ status: "429" }, null],
  [{ status: 429 }, 0],
  [{ status: 529, retryAfterMs: 12.5 }, 13],
  [{ status: 429, retryAfterMs: 1e300 }, 31_556_952_000_000],
  [{ status: 429, retryAfterMs: Number.NaN, headers: null }, 0],
  [{ status: 429, retryAfterMs: -5, headers: { "retry-after": "2" } }, 2000],
  [{ statusCode: 429, headers: { "Retry-After-Ms": "40", "retry-after": "9" } }, 40],
  [{ status: 429, headers: new Headers({ "retry-after-ms": "1500", "retry-after": "2" }) }, 1500],
  [{ status: 429, headers }, 2000],
  [{ response: { status: 429, headers } }, 2000],
  [{ status: 429, headers: { "retry-after": 3 } }, 3000],
  [{ status: 429, headers: { "retry-after": "0.5" } }, 500],
  [{ status: 429, headers: { "retry-after": "Sat, 31 Jan 2026 12:00:07 GMT" } }, 7000],
  [{ status: 429, headers: { "retry-after": "soon" } }, 0],
  [new Proxy({}, { get: () => assert.fail() }), null],
  [Object.defineProperty({ status: 429 }, "headers", { get: () => assert.fail() }), 0],
];

test("a provider's 429 or 529 is known, and how long it asked to wait, however it says so", () => {
  for (const [index, [error, expected]] of errors.entries())
    assert.equal(rateLimitOf(error, NOW), expected, `row ${index}`);
});

test("a TaskRequeue holds whole milliseconds, and says what is wrong with others", () => {
  assert.equal(new TaskRequeue("later").retryAfterMs, 0);
  assert.equal(new TaskRequeue("later", { retryAfterMs: 4.2 }).retryAfterMs, 5);
  for (const retryAfterMs of [Number.NaN, -1, Number.POSITIVE_INFINITY, 1e300, "5" as never])
    assert.throws(() => new TaskRequeue("x", { retryAfterMs }), { code: "bad_request", message: /^retryAfterMs is / });
});
