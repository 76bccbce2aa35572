/**
 * The work that came over the wire: what is absent, and what makes no sense.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sentence } from "../../core/base/index.ts";
import { readWork } from "./read-work.ts";

const line = { kind: "line", line: "make" };

test("what is absent has its default", () => {
  const rest = { cwd: ".", env: {}, passEnv: [], input: "", worktree: null };
  assert.deepEqual(readWork({ command: line }, "work"), { ok: true, value: { ...rest, command: line } });
  const given = { command: { kind: "nothing" }, cwd: "a", env: { A: "" }, passEnv: ["B"], input: "x", if: "true" };
  const whole = { ...given, until: "make test", outputs: ["*"], worktree: { base: "main", merge: ["a"] } };
  assert.deepEqual(readWork(whole, "work"), { ok: true, value: whole });
  const read = readWork({ command: line, worktree: { from: "impl" } }, "work");
  assert.deepEqual(read.ok && read.value.worktree, { base: "HEAD", from: "impl" });
});

test("what makes no sense is refused, by its path", () => {
  const rows: [work: unknown, words: RegExp][] = [
    [null, /^work is null, and must be an object/],
    [{}, /^work\.command is nothing, and must be an object/],
    [{ command: "make" }, /^work\.command is "make", and must be an object/],
    [
      { command: { kind: "magic" } },
      /^work\.command\.kind is "magic", and must be one of line, words, agent, call, nothing/,
    ],
    [{ command: { kind: "line" } }, /^work\.command\.line is nothing/],
    [{ command: { kind: "line", line: "" } }, /^work\.command\.line is ""/],
    [{ command: { ...line, words: ["a"] } }, /^work\.command\.words is not a known field/],
    [{ command: { kind: "words", words: [] } }, /^work\.command\.words is/],
    [{ command: { kind: "words", words: [1] } }, /^work\.command\.words\[0\] is 1/],
    [{ command: { kind: "agent", preset: "x", prompt: "p", model: null, args: [] } }, /^work\.command\.preset is "x"/],
    [{ command: line, env: { A: 1 } }, /^work\.env\.A is 1/],
    [{ command: line, worktree: true }, /^work\.worktree is true/],
    [{ command: line, worktree: { form: "a" } }, /^work\.worktree\.form is not a known field/],
    [{ command: line, passenv: [] }, /^work\.passenv is not a known field/],
  ];
  for (const [work, words] of rows) {
    const read = readWork(work, "work");
    assert.match(read.ok ? "taken" : sentence(read.failure), words, JSON.stringify(work));
  }
});
