/**
 * What a worker takes, by names and patterns.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { actionName, EXEC_COMMAND, EXEC_WORKTREE, matches, takesSuch } from "./worker-filter.ts";

test("a star stands for anything, also nothing, and everything else for itself", () => {
  const rows: [pattern: string, name: string, isMeant: boolean][] = [
    ["exec", "exec", true],
    ["exec", "exec2", false],
    ["*", "", true],
    ["*", "anything", true],
    ["ex*", "ex", true],
    ["*ec", "exec", true],
    ["a*a", "a", false],
    ["a*a", "aa", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["a*bc*c", "abc", false],
    ["**", "x", true],
    ["a.c", "abc", false],
    ["", "x", false],
  ];
  for (const [pattern, name, isMeant] of rows) assert.equal(matches(pattern, name), isMeant, `${pattern} of ${name}`);
});

test("a pattern means what a regular expression means", () => {
  const letters = (more: string): fc.Arbitrary<string> =>
    fc.string({ unit: fc.constantFrom("a", "b", ...more), maxLength: 7 });
  const holds = fc.property(letters("*"), letters(""), (pattern, name) =>
    assert.equal(matches(pattern, name), new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name)),
  );
  fc.assert(holds, { numRuns: 2000 });
});

test("an action is known by its name, and a sentence has none", () => {
  for (const name of ["exec", "click", "build:web/x", "ü".repeat(128)]) assert.equal(actionName(name, {}), name);
  for (const text of ["write the page", "a\tb", "a\nb", "x".repeat(129), "a\u0000"])
    assert.equal(actionName(text, {}), "");
});

test("an exec that brings what is to be run is an exec for all, and can be told from one that does not", () => {
  const isTaken = (pattern: string, action: string, params: Record<string, unknown>): boolean =>
    takesSuch(
      { actions: [pattern], types: null, projects: null },
      { action: actionName(action, params), type: "other" },
      "web",
    );
  const inPlace = { command: "true" };
  const inTree = { command: "true", worktree: true };
  const rows: [pattern: string, action: string, command: boolean, worktree: boolean, without: boolean][] = [
    ["exec", "exec", true, true, true],
    ["ex*c", "exec", true, true, true],
    ["*", "exec", true, true, true],
    ["exec(command)", "exec", true, false, false],
    ["exec(worktree)", "exec", false, true, false],
    ["exec(*", "exec", false, false, false],
    ["*)", "exec", false, false, false],
    ["build", "exec", false, false, false],
    ["exec(command)", "exec(command)", false, false, false],
    ["exec(worktree)", "exec(worktree)", false, false, false],
    ["exec", "exec(command)", false, false, false],
    ["exec(command)", "build", false, false, false],
    ["build(web)", "build(web)", true, true, true],
    ["build", "build(web)", false, false, false],
  ];
  for (const [pattern, action, ...taken] of rows)
    assert.deepEqual(
      [inPlace, inTree, {}].map((params) => isTaken(pattern, action, params)),
      taken,
      `${pattern} of ${action}`,
    );
});

test("a worker that names no actions takes all but what tasks bring", () => {
  const someTypes = { actions: null, types: ["*"], projects: null };
  for (const takes of [null, someTypes]) {
    const isTaken = (action: string): boolean => takesSuch(takes, { action, type: "other" }, "web");
    for (const action of ["exec", "build", ""]) assert.ok(isTaken(action), action);
    for (const action of [EXEC_COMMAND, EXEC_WORKTREE]) assert.ok(!isTaken(action), action);
  }
});

test("params bring a command, or the work of a plan's task, which may want a worktree", () => {
  const command = { kind: "line", line: "make" };
  const rows: [params: Record<string, unknown> | undefined, name: string][] = [
    [undefined, "exec"],
    [{}, "exec"],
    [{ worktree: true }, "exec"],
    [{ command: " " }, "exec"],
    [{ work: "make" }, "exec"],
    [{ work: { line: "make" } }, "exec"],
    [Object.create({ work: { command } }), "exec"],
    [{ command: "make", worktree: null }, "exec(command)"],
    [{ command: "make", worktree: false }, "exec(command)"],
    [{ command: ["make"], worktree: { from: "a" } }, "exec(worktree)"],
    [{ work: { command } }, "exec(command)"],
    [{ work: { command, worktree: null }, worktree: true }, "exec(command)"],
    [{ work: { command, worktree: { base: "HEAD" } } }, "exec(worktree)"],
  ];
  for (const [params, name] of rows) {
    assert.equal(actionName("exec", params), name, JSON.stringify(params));
    assert.equal(actionName("build", params), "build");
  }
});
