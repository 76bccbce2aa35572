/**
 * What a worker takes, by names and patterns.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { actionName, matches, takesSuch } from "./worker-filter.ts";

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
  for (const name of ["exec", "click", "build:web/x", "ü".repeat(128)]) assert.equal(actionName(name, false), name);
  for (const text of ["write the page", "a\tb", "a\nb", "x".repeat(129), "a\u0000"])
    assert.equal(actionName(text, false), "");
});

test("an exec that brings its command is an exec for all, and can be told from one without", () => {
  const isTaken = (pattern: string, action: string, hasCommand: boolean): boolean =>
    takesSuch(
      { actions: [pattern], types: null, projects: null },
      { action: actionName(action, hasCommand), type: "other" },
      "web",
    );
  const rows: [pattern: string, action: string, withCommand: boolean, without: boolean][] = [
    ["exec", "exec", true, true],
    ["ex*c", "exec", true, true],
    ["*", "exec", true, true],
    ["exec(command)", "exec", true, false],
    ["exec(*", "exec", false, false],
    ["*)", "exec", false, false],
    ["build", "exec", false, false],
    ["exec(command)", "exec(command)", false, false],
    ["exec", "exec(command)", false, false],
    ["exec(command)", "build", false, false],
    ["build(web)", "build(web)", true, true],
    ["build", "build(web)", false, false],
  ];
  for (const [pattern, action, ...taken] of rows)
    assert.deepEqual(
      [true, false].map((hasCommand) => isTaken(pattern, action, hasCommand)),
      taken,
      `${pattern} of ${action}`,
    );
});
