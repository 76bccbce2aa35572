import { strict as assert } from "node:assert";
import { test } from "node:test";
import { patternTest } from "./safe-path.ts";

const rows: readonly (readonly [pattern: string, yes: readonly string[], no: readonly string[]])[] = [
  ["spec.md", ["spec.md"], ["spec_md", "a/spec.md", "spec.md/a"]],
  ["*.md", ["a.md", "a.b.md"], [".md", ".a.md", "d/a.md", "a.mdx"]],
  [".*", [".a"], ["a", "d/.a"]],
  ["?.txt", ["a.txt", "é.txt", "😀.txt"], [".txt", "ab.txt", "..txt"]],
  ["*a*b*", ["ab", "xaxbx", "aab"], ["ba", "b", "a/b"]],
  ["**", ["a", "a/b", ".a/.b"], []],
  ["d/**", ["d/a", "d/a/b", "d/.a"], ["d", "e/a"]],
  ["**/b", ["b", "a/b", ".a/c/b"], ["a", "b/a"]],
  ["a/**/b/*", ["a/b/c", "a/x/y/b/c", "a/b/b/c"], ["a/b", "a/b/.c", "a/b/c/d"]],
  ["**/**", ["a", "a/b"], []],
  ["a**b", ["ab", "axb"], ["a/b", "a"]],
  ["a[b]+(c)", ["a[b]+(c)"], ["ab", "abc"]],
];
for (const [pattern, yes, no] of rows)
  test(`the pattern ${pattern}`, () => {
    const isMeant = patternTest(pattern);
    for (const path of yes) assert.equal(isMeant(path), true, path);
    for (const path of no) assert.equal(isMeant(path), false, path);
  });

test("no pattern takes for ever, however many stars it has", () => {
  // As regular expressions each of these takes longer than anybody lives.
  assert.equal(patternTest(`${"**/".repeat(300)}x`)(`${"a/".repeat(500)}b`), false);
  assert.equal(patternTest(`${"*a".repeat(120)}x`)("a".repeat(255)), false);
  assert.equal(patternTest(`${"**/*a*a*a*a/".repeat(40)}x`)(`${"aaaaaaaaaa/".repeat(90)}b`), false);
});
