import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holds } from "../../test/kits/laws/cases.ts";
import { readJsonBody } from "./json-body.ts";
import { placeOfFault } from "./json-fault.ts";
import { ServerRefusal } from "./problem.ts";

const rows: { text: string; line: number; column: number; expected: RegExp }[] = [
  { text: "", line: 1, column: 1, expected: /^a value$/ },
  { text: "{", line: 1, column: 2, expected: /a key in double quotes or \}/ },
  { text: '{"a":1,}', line: 1, column: 8, expected: /a key in double quotes$/ },
  { text: "{a:1}", line: 1, column: 2, expected: /a key in double quotes or \}/ },
  { text: '{"a" 1}', line: 1, column: 6, expected: /a colon/ },
  { text: '{"a":}', line: 1, column: 6, expected: /a value$/ },
  { text: "[1,\n 2\n 3]", line: 3, column: 2, expected: /a comma or the end/ },
  { text: "[1,]", line: 1, column: 4, expected: /a value$/ },
  { text: "[}", line: 1, column: 2, expected: /a value or \]/ },
  { text: "[1}", line: 1, column: 3, expected: /a comma or the end/ },
  { text: "{} {}", line: 1, column: 4, expected: /nothing more/ },
  { text: "nul", line: 1, column: 1, expected: /^a value$/ },
  { text: "01", line: 1, column: 1, expected: /^a value$/ },
  { text: '["a\tb"]', line: 1, column: 2, expected: /a value or \]/ },
  { text: '["\\x"]', line: 1, column: 2, expected: /a value or \]/ },
  { text: "\ufeff{}", line: 1, column: 1, expected: /^a value$/ },
];
for (const { text, line, column, expected } of rows)
  test(`the fault in ${JSON.stringify(text)} is at ${line}:${column}`, () => {
    const fault = placeOfFault(text);
    assert.deepEqual([fault.line, fault.column], [line, column]);
    assert.match(fault.expected, expected);
  });

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const token = fc.constantFrom(
  ..."{}[],:".split(""),
  '"a"',
  '"\\n"',
  '"',
  "1",
  "-0.5e+3",
  "01",
  "true",
  "nul",
  " ",
  "\n",
);
const almostJson = fc.oneof(
  fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join("")),
  fc.tuple(fc.json(), fc.nat(), token).map(([text, at, planted]) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + planted + text.slice(place);
  }),
  fc.json(),
);

test("a text is JSON if and only if nothing is wrong with it up to its end", () =>
  holds(20_000, almostJson, (text) => {
    const { line, column, expected } = placeOfFault(text);
    const lines = text.split("\n");
    const isAtEnd = line === lines.length && column === (lines.at(-1) ?? "").length + 1;
    assert.equal(isAtEnd && expected === "nothing more", isJson(text));
  }));

test("a long text that never ends is read in one go", () => {
  const { column } = placeOfFault(`["${"a".repeat(1_000_000)}`);
  assert.equal(column, 2);
});

test("bytes that are not UTF-8 are refused and not replaced", () => {
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0xaf, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xe2, 0x82],
  ])
    assert.throws(() => readJsonBody(Buffer.from(bytes)), /not UTF-8/);
});

test("a key that is named twice counts as its last, and __proto__ is a key like any other", () => {
  const read = readJsonBody(Buffer.from('{"a":1,"a":2,"__proto__":{"isAdmin":true}}')) as Record<string, unknown>;
  assert.equal(read.a, 2);
  assert.deepEqual(Object.keys(read), ["a", "__proto__"]);
  assert.equal(read.isAdmin, undefined);
  assert.equal(({} as Record<string, unknown>).isAdmin, undefined);
});

test("what is wrong is said by its place and without what stands there", () => {
  assert.throws(
    () => readJsonBody(Buffer.from('{"token": sk-secret}')),
    (error) => error instanceof ServerRefusal && /line 1, column 11/.test(error.message) && !/sk-/.test(error.message),
  );
});

test("nothing sent is nothing, not an error", () => assert.equal(readJsonBody(Buffer.alloc(0)), undefined));
