/**
 * What a real shell makes of expressions: one word each, whatever the value holds.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { holds } from "../../../test/kits/laws/cases.ts";
import { fillShell, misplacedIn, parseTemplate } from "./template.ts";

const PIECES = [
  "$(echo hit)",
  "`echo hit`",
  `\${HOME}`,
  "$HOME",
  "'",
  '"',
  "\\",
  "\n",
  " ",
  "\t",
  "*",
  "?",
  "~",
  ";",
  "&",
  "|",
];
const nasty = fc
  .array(fc.oneof(fc.constantFrom(...PIECES, `\${{ x }}`, "-n", "#", "!", "é", "\r", "\x07"), fc.string()))
  .map((parts) => parts.join("").replaceAll("\0", "").toWellFormed());
const at = (index: number): string => `\${{ needs.n.result[${index}] }}`;

function shell(line: string, env: Readonly<Record<string, string>>): string {
  const { stdout, stderr, status } = spawnSync("/bin/sh", ["-e", "-c", line], { env: { ...env, HOME: "hit" } });
  assert.deepEqual([stderr.toString(), status], ["", 0], line);
  return stdout.toString();
}

test("an expression is exactly one word, or a part of the quoted word it stands in", () => {
  holds(300, fc.tuple(nasty, nasty, nasty, nasty), (values) => {
    const nested = `"$(printf %s ${at(3)}x)" "$(printf %s "${at(0)}x")"`;
    const line = `printf '%s\\0' ${at(0)} "in quotes ${at(1)}." glued${at(2)}to ${nested}`;
    const filled = fillShell(parseTemplate(line), { n: { result: values } });
    const [a, b, c, d] = values;
    const words = [a, `in quotes ${b}.`, `glued${c}to`, `${d}x`, `${a}x`];
    assert.equal(shell(filled.line, filled.env), `${words.join("\0")}\0`);
  });
});

test("no value is ever run, wherever in a line its expression stands: it is refused there, or it is data", () => {
  const around = fc.array(
    fc.constantFrom("'", '"', "`", "$(", ")", "${X:-", "}", "\\", " ", "\n", "echo ", "<<E\n", "#", "((", "))"),
  );
  holds(600, fc.tuple(around, around), ([before, after]) => {
    const template = parseTemplate(`echo ${before.join("")}\${{ needs.n.result }}${after.join("")}`);
    if (misplacedIn(template) !== null) return;
    const value = "$(echo h''it)`echo h''it`; echo h''it\n echo h''it";
    const { line, env } = fillShell(template, { n: { result: value } });
    const { stdout, signal } = spawnSync("/bin/sh", ["-c", line], { env, timeout: 60_000 });
    assert.ok(signal === null && !stdout.toString().includes("hit"), line);
  });
});
