import assert from "node:assert/strict";
import { test } from "node:test";
import { readRetryAfter } from "./retry-after.ts";

const NOW = Date.parse("2026-01-31T12:00:00Z");
const rows: [header: string | undefined, expected: number | null][] = [
  [undefined, null],
  ["", null],
  ["0", 0],
  ["7", 7000],
  [" 120 ", 120_000],
  ["1.5", 1500],
  ["999999999999", 999_999_999_999_000],
  ["9999999999999", null],
  ["-5", null],
  ["+5", null],
  ["1e9", null],
  ["0x10", null],
  ["soon", null],
  ["NaN", null],
  ["Sat, 31 Jan 2026 12:00:30 GMT", 30_000],
  ["Sat, 31 Jan 2026 11:59:00 GMT", 0],
  ["Sat, 99 Foo 2026 12:00:30 GMT", null],
  ["2026-01-31T12:00:30Z", null],
];

for (const [header, expected] of rows)
  test(`Retry-After: ${header ?? "(absent)"} means ${expected ?? "nothing"}`, () =>
    assert.equal(readRetryAfter(header, NOW), expected));
