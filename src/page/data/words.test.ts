import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ago,
  brief,
  bytes,
  clock,
  cores,
  count,
  money,
  outOf,
  percent,
  plural,
  span,
  wideJson,
  withTimes,
} from "./words.ts";

type Row = readonly [told: string, expected: string];
const rows: readonly Row[] = [
  [count(1_234_567), "1\u202f234\u202f567"],
  [count(999), "999"],
  [wideJson({ a: [1, 2], b: "x" }), '{"a": [1, 2], "b": "x"}'],
  [wideJson(["https://a:80", 'b,"c:d\\']), '["https://a:80", "b,\\"c:d\\\\"]'],
  [brief(950), "950"],
  [brief(1500), "1.5k"],
  [brief(34_000_000), "34M"],
  [brief(0.25), "0.25"],
  [brief(0.04), "0.04"],
  [percent(0), "0 %"],
  [percent(0.034), "3.4 %"],
  [percent(0.5), "50 %"],
  [span(-5), "0 ms"],
  [span(999), "999 ms"],
  [span(4200), "4.2 s"],
  [span(59_999), "59 s"],
  [span(200_000), "3 m 20 s"],
  [span(7_200_000), "2 h"],
  [span(90_000_000), "1 d 1 h"],
  [clock(65_000), "1:05"],
  [clock(200), "0:01"],
  [clock(-1), "0:00"],
  [clock(3_725_000), "1:02:05"],
  [ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:00.400Z")), "just now"],
  [ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:05.900Z")), "5 s ago"],
  [bytes(512), "512 B"],
  [bytes(1536), "1.5 KiB"],
  [bytes(64 * 1024 ** 3), "64 GiB"],
  [cores(1000), "1 core"],
  [cores(1500), "1.5 cores"],
  [money(0.0012), "0.0012"],
  [money(12.345), "12.35"],
  [outOf(4, 4), "4 of 4"],
  [outOf(9, 1), "9, limit 1"],
  [outOf(1_200_000, 1_000_000, brief), "1.2M, limit 1.0M"],
  [withTimes("task \u202et waits"), "task t waits"],
  [plural(1, "task"), "1 task"],
  [plural(2000, "task"), "2\u202f000 tasks"],
];

test("numbers, spans and instants read as people read them", () => {
  for (const [told, expected] of rows) assert.equal(told, expected);
});
