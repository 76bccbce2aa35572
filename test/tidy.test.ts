/**
 * The style, as a test: what the core may not touch, how things are named, how large they may grow. Who may import
 * whom is in rooms.test.ts.
 *
 * Rules hold only where a machine checks them. Every rule is a function from text to complaints; the same
 * function is first tried on planted offences (a rule that catches nothing is worse than none), then run
 * over the whole tree. Sizes are a ratchet: an offender is listed below by name with its size, may not
 * grow, and must leave the list once it is fine, so the lists only ever get shorter.
 */

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { blank, functionSizes, importsOf, isTest, lineAt, type Sized, wholeSizes } from "./kits/source-text.ts";

const LIMITS = { file: 600, function: 60, closure: 150, line: 120 };
const OVERSIZE: Record<"files" | "functions" | "closures" | "lines", Record<string, number>> = {
  files: {},
  functions: {},
  closures: {},
  lines: {},
};
/** Tests that wait for real time, by name. None is the goal: time is an argument. */
const SLEEPERS: readonly string[] = [];

/** In the core these words may not even stand in a comment: prose about a clock is where a clock begins. */
const BANNED_IN_CORE = [
  /\b(Date|Intl|async|Promise|setTimeout)\b/,
  /\b(process|console)\.\w/,
  /Math\.(random|pow|exp|log)|localeCompare/,
  /"node:/,
];
const BANNED_NAMES = new Set("util utils helper helpers common types interfaces manager lib misc".split(" "));
const BANNED_ANYWHERE = [/\.(only|skip|todo)\(/, /\b(TODO|FIXME|XXX|HACK)\b/];
const ANY = /(?::|\bas|<|=|\||&|,)\s*any\b(?!\s*[:(=.])/;
const SLEEPING = [/\bsleep\(/, /new Promise[^;]*?\bsetTimeout\(/, /await\s+setTimeout\(/];

type Rule = (path: string, text: string) => string[];

const layerOf = (path: string): string => (path.startsWith("src/") ? (path.split("/").at(1) ?? "") : "");

const rules = {
  "imports no package in the core": (path, text) =>
    layerOf(path) !== "core" || isTest(path)
      ? []
      : importsOf(text)
          .filter((target) => !target.startsWith("."))
          .map((target) => `core/ imports ${target}: it may use no package at all`),
  "names the file it imports, with its extension": (_path, text) =>
    importsOf(text)
      .filter((target) => target.startsWith(".") && !/\.(tsx?|css|json)$|\/node_modules\//.test(target))
      .map((target) => `${target} needs its .ts`),
  "stays pure in the core": (path, text) => {
    if (layerOf(path) !== "core" || isTest(path)) return [];
    const power = blank(text).includes("**") ? ["the operator **: engines may round it differently"] : [];
    return [...matchesOf(text, BANNED_IN_CORE), ...power];
  },
  "opens by saying what it is for": (path, text) =>
    isTest(path) || /^(#!.*\n)?\/\*\*/.test(text) ? [] : ["it must open with a /** comment"],
  "is named after an idea": (path) => {
    const name = basename(path);
    const words = [...path.split("/").slice(0, -1), ...(name.split(".")[0] ?? "").split("-")];
    const bad = words.filter((word) => BANNED_NAMES.has(word)).map((word) => `"${word}" names a kind, not an idea`);
    return /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*\.tsx?$/.test(name) ? bad : [...bad, "file names are kebab-case"];
  },
  "says what it means to the compiler": (_path, text) => matchesOf(blank(text), [ANY]),
  "leaves nothing half done": (_path, text) => matchesOf(text, BANNED_ANYWHERE),
  "does not sleep in a test": (path, text) => {
    if (!isTest(path)) return [];
    const timers = importsOf(text).filter((target) => target === "node:timers/promises");
    const found = [...matchesOf(blank(text), SLEEPING), ...timers];
    if (!SLEEPERS.includes(path)) return found;
    return found.length > 0 ? [] : ["it sleeps no more: take it off SLEEPERS"];
  },
  "keeps to the size of a file": (path, text) =>
    ratchet(OVERSIZE.files, LIMITS.file, [{ name: path, size: linesOf(text).length }]),
  "keeps to the size of a function": (path, text) => {
    const sizes = functionSizes(text).map(({ name, size }) => ({ name: `${path}:${name}`, size }));
    return path.endsWith(".tsx") ? [] : ratchet(OVERSIZE.functions, LIMITS.function, sizes);
  },
  "keeps to the size of a closure, counted whole": (path, text) => {
    if (!path.startsWith("src/") || isTest(path)) return [];
    const sizes = wholeSizes(text).map(({ name, size }) => ({ name: `${path}:${name}`, size }));
    return ratchet(OVERSIZE.closures, LIMITS.closure, sizes);
  },
  "does not steer the formatter by a spread": (path, text) =>
    path.startsWith("src/") && !isTest(path) ? matchesOf(blank(text), [/\.\.\.\{/]) : [],
  "keeps to the width of a line": (path, text) => {
    const widths = linesOf(text).map((line) => [...line].length);
    const at = widths.findIndex((width) => width > LIMITS.line);
    const complaints = ratchet(OVERSIZE.lines, LIMITS.line, [{ name: path, size: Math.max(0, ...widths) }]);
    return complaints.map((complaint) => (at < 0 ? complaint : `line ${at + 1}: ${complaint}`));
  },
} satisfies Record<string, Rule>;

const root = join(import.meta.dirname, "..");
const SELF = "test/tidy.test.ts";
/** This file is full of planted offences, so the rules about words cannot hold for it. */
const NOT_FOR_SELF: readonly string[] = [
  "leaves nothing half done",
  "does not sleep in a test",
  "names the file it imports, with its extension",
];
const paths = globSync("{src,test,tools,bench,examples}/**/*.{ts,tsx}", { cwd: root, exclude: ["**/node_modules/**"] })
  .map((path) => path.replaceAll("\\", "/"))
  .sort();

for (const [claim, rule] of Object.entries(rules) as [string, Rule][])
  test(`every file ${claim}`, () => {
    const complaints = paths
      .filter((path) => path !== SELF || !NOT_FOR_SELF.includes(claim))
      .flatMap((path) =>
        rule(path, readFileSync(join(root, path), "utf8")).map((complaint) => locate(path, complaint)),
      );
    assert.ok(complaints.length === 0, `\n${complaints.join("\n")}\n`);
  });

function locate(path: string, complaint: string): string {
  return complaint.includes(path) ? complaint : `${path}: ${complaint}`;
}

test("the lists of offenders name only what exists", () => {
  const listed = Object.values(OVERSIZE).flatMap((list) => Object.keys(list));
  const gone = [...listed.map((name) => name.split(":")[0] ?? ""), ...SLEEPERS].filter((path) => !paths.includes(path));
  assert.deepEqual(gone, []);
});

type Claim = keyof typeof rules;
const offence = (claim: Claim, path: string, text: string): [Claim, string, string] => [claim, path, text];
const long = (count: number, line = "  step();"): string => Array.from({ length: count }, () => line).join("\n");

const closure = `function create() {\n${long(15, `  function a() {\n${long(8)}\n  }`)}\n}`;

const planted: [Claim, string, string][] = [
  offence("imports no package in the core", "src/core/a.ts", 'import fc from "fast-check";'),
  offence("names the file it imports, with its extension", "src/log/a.ts", 'import { x } from "./chain";'),
  offence("names the file it imports, with its extension", "src/log/a.ts", 'import { x } from "./chain.js";'),
  ...["Date.now()", "Math.random()", "Math.log(2)", "a.localeCompare(b)", "new Intl.Collator()", "async () => {}"].map(
    (text) => offence("stays pure in the core", "src/core/a.ts", text),
  ),
  ...["Promise.all([])", "setTimeout(f)", "process.exit()", "console.log()", 'import "node:fs"', "2 ** n"].map((text) =>
    offence("stays pure in the core", "src/core/a.ts", text),
  ),
  offence("stays pure in the core", "src/core/a.ts", "// the Date of the last start"),
  offence("opens by saying what it is for", "src/log/a.ts", "// not this kind\nexport {};"),
  ...[
    "src/core/utils.ts",
    "src/log/string-helpers.ts",
    "src/lib/a.ts",
    "src/core/types.ts",
    "src/core/taskQueue.ts",
  ].map((path) => offence("is named after an idea", path, "")),
  ...["let a: any;", "f(x as any)", "new Map<any>()", "Map<string, any>", "type A = any", "a: any[]"].map((text) =>
    offence("says what it means to the compiler", "src/log/a.ts", text),
  ),
  ...["test.only(", "it.skip(", "test.todo(", "// TODO later", "/* FIXME */"].map((text) =>
    offence("leaves nothing half done", "src/log/a.test.ts", text),
  ),
  offence("does not sleep in a test", "src/a.test.ts", "await sleep(50);"),
  offence("does not sleep in a test", "src/a.test.ts", "await new Promise((done) => setTimeout(done, 50));"),
  offence("does not sleep in a test", "src/a.test.ts", 'import { setTimeout } from "node:timers/promises";'),
  offence("keeps to the size of a file", "src/log/a.ts", long(LIMITS.file + 1)),
  offence("keeps to the size of a function", "src/log/a.ts", `function f() {\n${long(59)}\n}`),
  offence(
    "keeps to the size of a function",
    "src/log/a.ts",
    `const f = async (a: number): Promise<X> => {\n${long(59)}\n};`,
  ),
  offence("keeps to the size of a function", "src/log/a.ts", `test("x", () => {\n${long(59)}\n});`),
  offence(
    "keeps to the size of a function",
    "src/log/a.ts",
    `class A {\n  run(a: { b: 1 }): { c: 1 } {\n${long(59)}\n  }\n}`,
  ),
  offence("keeps to the size of a closure, counted whole", "src/log/a.ts", closure),
  offence("does not steer the formatter by a spread", "src/log/a.ts", "return { ...{ a, b }, c };"),
  offence("keeps to the width of a line", "src/log/a.ts", "x".repeat(LIMITS.line + 1)),
];

for (const [claim, path, text] of planted)
  test(`a planted offence is caught: ${claim}: ${path} ${text.split("\n")[0]?.slice(0, 60)}`, () => {
    assert.notDeepEqual(rules[claim](path, text), []);
  });

const innocent: [Claim, string, string][] = [
  offence("stays pure in the core", "src/core/a.ts", "/** a ** b */ const s = `**`; // updates, the process. Done"),
  offence("opens by saying what it is for", "src/cli/main.ts", "#!/usr/bin/env node\n/** The CLI. */"),
  offence(
    "says what it means to the compiler",
    "src/log/a.ts",
    'AbortSignal.any([a]); f({ any: 1 }); "x: any"; // : any',
  ),
  offence("does not sleep in a test", "src/a.test.ts", "const timer = setTimeout(stop, 5);"),
  offence("keeps to the size of a function", "src/log/a.ts", `function f() {\n${long(58)}\n}`),
  offence(
    "keeps to the size of a function",
    "src/log/a.ts",
    `function create() {\n  function a() {\n${long(40)}\n  }\n  const b = () => {\n${long(40)}\n  };\n}`,
  ),
  offence("keeps to the size of a function", "src/log/a.ts", `const table = {\n${long(90, "  a: f(),")}\n};`),
];

for (const [claim, path, text] of innocent)
  test(`an innocent line is left alone: ${claim}: ${path} ${text.split("\n")[0]?.slice(0, 60)}`, () => {
    assert.deepEqual(rules[claim](path, text), []);
  });

test("an offender on the list may not grow, and leaves the list when it is fine", () => {
  const verdict = (size: number): number => ratchet({ a: 70 }, 60, [{ name: "a", size }]).length;
  assert.deepEqual([60, 61, 70, 71].map(verdict), [1, 0, 0, 1]);
  assert.equal(ratchet({}, 60, [{ name: "a", size: 60 }]).length, 0);
});

test("blanking keeps the code and its lines, and drops what is only text", () => {
  const [source, expected] = [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: code inside a template is still code
    'a("{"); // {\n/* {\n */ b(`{${c({ d: `}` })}{`); e = f / g; h = /[/{]"/g; i = "it\'s";',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: see above
    'a("");b(`${c({d:``})}`);e=f/g;h=//;i="";',
  ];
  const code = blank(source);
  assert.equal(code.length, source.length);
  assert.equal(code.replaceAll(/\s+/g, ""), expected);
});

function matchesOf(text: string, patterns: readonly RegExp[]): string[] {
  return patterns.flatMap((pattern) => {
    const found = pattern.exec(text);
    return found === null ? [] : [`line ${lineAt(text, found.index)}: ${found[0].trim()}`];
  });
}

function ratchet(listed: Readonly<Record<string, number>>, limit: number, found: readonly Sized[]): string[] {
  return found.flatMap(({ name, size }) => {
    const known = listed[name];
    if (known === undefined) return size > limit ? [`${name} is ${size}; the limit is ${limit}`] : [];
    if (size <= limit) return [`${name} is ${size} now, which is fine: take it off OVERSIZE`];
    return size > known ? [`${name} grew from ${known} to ${size}`] : [];
  });
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}
