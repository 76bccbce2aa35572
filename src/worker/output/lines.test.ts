import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createLineSplitter, shorten } from "./lines.ts";

function split(chunks: readonly Buffer[], bytesMax: number = 1000): [string, number][] {
  const lines: [string, number][] = [];
  const splitter = createLineSplitter(bytesMax, (text, lost) => lines.push([text, lost]));
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return lines;
}
const texts = (...chunks: string[]): string[] => split(chunks.map((chunk) => Buffer.from(chunk))).map(([text]) => text);

test("lines come whole, however they arrive, and the last needs no newline", () => {
  assert.deepEqual(texts("a\nb", "c\n", "\n", "d"), ["a", "bc", "", "d"]);
  assert.deepEqual(texts("a\r\nb\r", "\nc\r\r\n"), ["a", "b", "c\r"]);
  assert.deepEqual(texts(), []);
  assert.deepEqual(texts("\n"), [""]);
});

test("how bytes are cut into chunks changes nothing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.array(fc.nat(60), { maxLength: 5 }), (bytes, cuts) => {
      const all = Buffer.from(bytes);
      const edges = [0, ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b), all.length];
      const chunks = edges.slice(1).map((edge, index) => all.subarray(edges[index], edge));
      assert.deepEqual(split(chunks, 10), split([all], 10));
    }),
  );
});

test("bytes that are not UTF-8 become replacement characters, and a character in two pieces stays whole", () => {
  assert.deepEqual(split([Buffer.from([0x61, 0xff, 0xfe, 0x0a, 0xc3, 0x28, 0x0a])]), [
    ["a\ufffd\ufffd", 0],
    ["\ufffd(", 0],
  ]);
  const horse = Buffer.from("\u{1F40E}\n");
  assert.deepEqual(split([horse.subarray(0, 1), horse.subarray(1, 3), horse.subarray(3)]), [["\u{1F40E}", 0]]);
});

test("a line that is too long keeps its beginning and tells what is lost", () => {
  assert.deepEqual(split([Buffer.from("12345678"), Buffer.from("90ab\ncd\n")], 5), [
    ["12345", 7],
    ["cd", 0],
  ]);
  assert.deepEqual(split([Buffer.from("12345\n123456\n")], 5), [
    ["12345", 0],
    ["12345", 1],
  ]);
});

test("a line that never ends costs no more than the limit", () => {
  const chunk = Buffer.alloc(64 * 1024, "x");
  const found = split(
    Array.from({ length: 400 }, () => chunk),
    1000,
  );
  assert.deepEqual(found, [["x".repeat(1000), 400 * chunk.length - 1000]]);
});

test("a text is shortened between characters, never inside one", () => {
  assert.equal(shorten("abc", 3), "abc");
  assert.equal(shorten("abcd", 3), "abc… [1 more]");
  assert.equal(shorten("abc", 3, 5), "abc… [5 more]");
  assert.ok(shorten("ab\u{1F40E}", 3).isWellFormed());
});
