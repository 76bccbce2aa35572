import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { argvOf, splitCommand } from "./command-words.ts";

const lines = [
  "echo hello",
  "  echo   a\tb  ",
  `echo 'one word' "two words" th'is is o'ne`,
  String.raw`echo a\ b "a\"b" "a\\b" "a\nb" '\n' ""`,
  "echo '$HOME' '|' '#' a#b ~ x*y {a,b} [z] !",
  'echo "it\'s" \'say "hi"\'',
  "echo a\\\nb \\\n c 'd\ne'",
  "echo --a=b 'ü' \u{1F40E}",
];

for (const line of lines)
  test(`a line is split as a shell would: ${JSON.stringify(line)}`, () => {
    // The glob has nothing to match there, and the tilde is kept from its meaning.
    const script = `set -f; HOME='~'; set -- ${line.replace(/^\s*echo/, "")}; for w; do printf '%s\\0' "$w"; done`;
    const words = execFileSync("/bin/sh", ["-c", script], { cwd: "/", encoding: "utf8" }).split("\0").slice(0, -1);
    assert.deepEqual(splitCommand(line), ["echo", ...words]);
  });

const refusals: [string, RegExp][] = [
  ["", /empty/],
  ["   ", /empty/],
  ["''", /empty/],
  ["a | b", /holds \|, which needs a shell.*--shell/],
  ["a && b", /holds &/],
  ["a > file", /holds >/],
  ["a; b", /holds ;/],
  ["a $HOME", /holds \$/],
  ['a "$HOME"', /holds \$/],
  ['a "`b`"', /holds `/],
  ["a $(b)", /holds \$/],
  ["a # b", /comment/],
  ["a 'b", /' that is never closed/],
  ['a "b', /" that is never closed/],
  ["a \\", /ends in a backslash/],
];
for (const [line, expected] of refusals)
  test(`what only a shell could do is refused: ${JSON.stringify(line)}`, () => {
    assert.throws(() => splitCommand(line), expected);
  });

test("a list of words is taken as it is, and a shell only where it is asked for", () => {
  assert.deepEqual(argvOf(["a", "b c", "$d", ""]), ["a", "b c", "$d", ""]);
  assert.deepEqual(argvOf("a | b", true), ["/bin/sh", "-c", "a | b"]);
  assert.throws(() => argvOf([]), /empty/);
  assert.throws(() => argvOf([""]), /empty/);
  assert.throws(() => argvOf(["a"], true), /takes a command line/);
  // Blanks that do not split words are no program either.
  for (const blank of [" ", "\u00a0", "\t\v", "\ufeff"])
    for (const shell of [true, false]) assert.throws(() => argvOf(blank, shell), /empty/);
});
