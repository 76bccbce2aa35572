/**
 * The architecture, as a test: who may import whom, what the core may not touch, how large things may grow.
 *
 * Rules hold only where a machine checks them. Every rule is a function from text to complaints; the same
 * function is first tried on planted offences (a rule that catches nothing is worse than none), then run
 * over the whole tree. Sizes are a ratchet: an offender is listed below by name with its size, may not
 * grow, and must leave the list once it is fine, so the lists only ever get shorter.
 */

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join, posix } from "node:path";
import { test } from "node:test";

const LIMITS = { file: 600, function: 60, line: 120 };
const OVERSIZE: { files: Record<string, number>; functions: Record<string, number>; lines: Record<string, number> } = {
  files: {},
  functions: {},
  lines: {},
};
/** Tests that wait for real time, by name. None is the goal: time is an argument. */
const SLEEPERS: readonly string[] = [];

const MAY_IMPORT: Record<string, readonly string[]> = {
  core: [],
  std: ["core", "client"],
  log: ["core", "std"],
  gate: ["core"],
  engine: ["core", "std", "log", "gate"],
  protocol: ["core"],
  http: ["core", "std", "engine", "protocol", "server"],
  server: ["core", "std", "engine", "protocol", "http"],
  client: ["protocol"],
  worker: ["std", "client", "protocol"],
  cli: ["std", "client", "worker", "protocol"],
  sim: ["core", "log", "engine"],
  testing: ["core", "log", "engine"],
  gateway: ["engine", "protocol", "core"],
  web: ["protocol", "client"],
};
/** The few places where the halves meet, and the front door, which only hands on. */
const MAY_ALSO_IMPORT: Record<string, readonly string[]> = {
  "src/cli/serve/serve.ts": ["engine", "server"],
  "src/cli/demo.ts": ["engine", "server"],
  "src/cli/run/session.ts": ["engine"],
  "src/cli/verbs/verify.ts": ["engine"],
  "src/cli/run/log.ts": ["engine"],
  "src/index.ts": ["core", "gate", "engine", "client", "worker", "protocol"],
};
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

const isTest = (path: string): boolean => path.endsWith(".test.ts");
const layerOf = (path: string): string => (path.startsWith("src/") ? (path.split("/").at(1) ?? "") : "");

const rules = {
  "imports only what its layer may": (path, text) => {
    const layer = layerOf(path);
    if (layer === "" || isTest(path)) return [];
    const isInLayer = path.split("/").length > 2;
    if (isInLayer && MAY_IMPORT[layer] === undefined) return [`${layer}/ is not a layer: see MAY_IMPORT`];
    const allowed = [...(isInLayer ? [layer] : []), ...(MAY_IMPORT[layer] ?? []), ...(MAY_ALSO_IMPORT[path] ?? [])];
    return importsOf(text).flatMap((target) => {
      const isRelative = target.startsWith(".");
      if (!isRelative) return layer === "core" ? [`core/ imports ${target}: it may use no package at all`] : [];
      const imported = layerOf(posix.join(posix.dirname(path), target));
      return allowed.includes(imported) ? [] : [`${isInLayer ? `${layer}/` : path} may not import ${target}`];
    });
  },
  "names the file it imports, with its extension": (_path, text) =>
    importsOf(text)
      .filter((target) => target.startsWith(".") && !/\.(tsx?|css|json)$/.test(target))
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
const paths = globSync("{src,test,bench,examples}/**/*.{ts,tsx}", { cwd: root, exclude: ["**/node_modules/**"] })
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
  const listed = [OVERSIZE.files, OVERSIZE.functions, OVERSIZE.lines].flatMap((list) => Object.keys(list));
  const gone = [...listed.map((name) => name.split(":")[0] ?? ""), ...SLEEPERS].filter((path) => !paths.includes(path));
  assert.deepEqual(gone, []);
});

type Claim = keyof typeof rules;
const offence = (claim: Claim, path: string, text: string): [Claim, string, string] => [claim, path, text];
const long = (count: number, line = "  step();"): string => Array.from({ length: count }, () => line).join("\n");

const planted: [Claim, string, string][] = [
  offence("imports only what its layer may", "src/core/a.ts", 'import { x } from "../log/log.ts";'),
  offence("imports only what its layer may", "src/core/a.ts", 'import fc from "fast-check";'),
  offence("imports only what its layer may", "src/core/a.ts", 'export * from "../engine/index.ts";'),
  offence("imports only what its layer may", "src/client/a.ts", 'const x = await import("../engine/a.ts");'),
  offence("imports only what its layer may", "src/worker/a.ts", 'import type { T } from "../engine/a.ts";'),
  offence("imports only what its layer may", "src/cli/submit.ts", 'import "../server/a.ts";'),
  offence("imports only what its layer may", "src/log/a.ts", 'new URL("../engine/thread.ts", import.meta.url);'),
  offence("imports only what its layer may", "src/core/a.ts", 'import "../../test/run.ts";'),
  offence("imports only what its layer may", "src/shared/a.ts", ""),
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
  offence("keeps to the width of a line", "src/log/a.ts", "x".repeat(LIMITS.line + 1)),
];

for (const [claim, path, text] of planted)
  test(`a planted offence is caught: ${claim}: ${path} ${text.split("\n")[0]?.slice(0, 60)}`, () => {
    assert.notDeepEqual(rules[claim](path, text), []);
  });

const innocent: [Claim, string, string][] = [
  offence(
    "imports only what its layer may",
    "src/cli/serve/serve.ts",
    'import "../../server/a.ts";\nimport "./top.ts";',
  ),
  offence("imports only what its layer may", "src/engine/a.ts", 'import "../gate/index.ts";\nimport "node:fs";'),
  offence("imports only what its layer may", "src/core/a.test.ts", 'import "../testing/a.ts";\nimport "node:test";'),
  offence("imports only what its layer may", "src/core/a.ts", '// from "../log/log.ts"'),
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

function importsOf(text: string): string[] {
  const pattern = /\b(?:from|import|import\s*\(|new URL\()\s*"([^"\n]+)"/g;
  return [...blank(text, { keepStrings: true }).matchAll(pattern)].map(([, target = ""]) => target);
}

function matchesOf(text: string, patterns: readonly RegExp[]): string[] {
  return patterns.flatMap((pattern) => {
    const found = pattern.exec(text);
    return found === null ? [] : [`line ${lineAt(text, found.index)}: ${found[0].trim()}`];
  });
}

type Sized = { readonly name: string; readonly size: number };

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

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

const COMMENT = /\/\/.*|\/\*[\s\S]*?\*\//y;
const STRING = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y;
const TEMPLATE_PART = /[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[dgimsuvy]*/y;
const BEFORE_REGEX = /(?:[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|case|typeof|of|in)|^)\s*$/;

/** The text with comments, strings and patterns turned into spaces, every line and column kept. */
function blank(text: string, { keepStrings = false } = {}): string {
  let code = "";
  /** One entry per open `${`: how many braces are open inside it. */
  const open: number[] = [];
  const matchAt = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = code.length;
    return pattern.exec(text)?.[0];
  };
  const spaces = (part: string): string => part.replaceAll(/[^\n]/g, " ");
  const hollow = (part: string, tail: number): string =>
    keepStrings ? part : `${part[0]}${spaces(part.slice(1, -tail))}${part.slice(-tail)}`;

  while (code.length < text.length) {
    const char = text[code.length] ?? "";
    const depth = open.at(-1);
    const comment = char === "/" ? matchAt(COMMENT) : undefined;
    const string = char === '"' || char === "'" ? matchAt(STRING) : undefined;
    const part = char === "`" || (char === "}" && depth === 0) ? matchAt(TEMPLATE_PART) : undefined;
    const regex = char === "/" && BEFORE_REGEX.test(code.slice(-40)) ? matchAt(REGEX) : undefined;
    if (comment !== undefined) code += spaces(comment);
    else if (string !== undefined) code += hollow(string, 1);
    else if (part !== undefined) {
      if (char === "}") open.pop();
      if (part.endsWith("${")) open.push(0);
      code += hollow(part, part.endsWith("${") ? 2 : 1);
    } else if (regex !== undefined) code += `/${spaces(regex.slice(1, regex.lastIndexOf("/")))}/`.padEnd(regex.length);
    else {
      if (depth !== undefined && char === "{") open.push((open.pop() ?? 0) + 1);
      if (depth !== undefined && char === "}") open.push((open.pop() ?? 0) - 1);
      code += char;
    }
  }
  return code;
}

type Span = { readonly name: string; readonly isNamed: boolean; readonly from: number; readonly to: number };

const HEADS: readonly { readonly pattern: RegExp; readonly isArrow: boolean }[] = [
  { pattern: /\bfunction\b\s*\*?\s*([\w$]*)\s*(?:<[^()]*>)?\(/g, isArrow: false },
  { pattern: /^[ \t]*(?:(?:async|static|get|set|override)\s+|\*\s*)*(#?[\w$]+)\s*(?:<[^()]*>)?\(/gm, isArrow: false },
  { pattern: /\b(?:const|let)\s+([\w$]+)[^=;()]*=\s*(?:async\s*)?(?:<[^()]*>)?\(/g, isArrow: true },
  { pattern: /^[ \t]*([\w$]+):\s*(?:async\s*)?\(/gm, isArrow: true },
];
const NOT_A_METHOD = new Set(["if", "for", "while", "switch", "catch", "function", "return", "await"]);
const TEST_CALL = /\b(?:test|it|describe|suite|before|after|beforeEach|afterEach)\(/g;

/**
 * The own size of each function in lines: from its head to its closing brace, without the named functions
 * and test bodies inside it, which are measured by themselves. So a closure that only holds small
 * functions is small, and a function of one hundred lines of callbacks is not.
 */
function functionSizes(text: string): Sized[] {
  const code = blank(text);
  const spans = new Map<number, Span>();
  const add = (head: number, body: number, name: string, isNamed: boolean): void => {
    if (body < 0 || spans.has(body)) return;
    const from = lineAt(code, head + (/^\s*/.exec(code.slice(head))?.[0].length ?? 0));
    spans.set(body, { name: name || `line ${from}`, isNamed, from, to: lineAt(code, closeOf(code, body)) });
  };
  for (const { pattern, isArrow } of HEADS)
    for (const match of code.matchAll(pattern)) {
      const [head, name = ""] = match;
      const afterArguments = closeOf(code, match.index + head.length - 1) + 1;
      if (!NOT_A_METHOD.has(name)) add(match.index, bodyAfter(code, afterArguments, isArrow), name, true);
    }
  for (const match of code.matchAll(TEST_CALL)) {
    const arrow = /=>\s*\{/.exec(code.slice(match.index, closeOf(code, match.index + match[0].length - 1)));
    if (arrow !== null) add(match.index, match.index + arrow.index + arrow[0].length - 1, "", true);
  }
  for (const match of code.matchAll(/=>\s*\{/g)) add(match.index, match.index + match[0].length - 1, "", false);
  return [...spans.values()].map((span) => ({ name: span.name, size: ownLines(span, [...spans.values()]) }));
}

function ownLines(outer: Span, all: readonly Span[]): number {
  const inner = all.filter((span) => span.isNamed && span !== outer && span.from > outer.from && span.to < outer.to);
  const lines = Array.from({ length: outer.to - outer.from + 1 }, (_, index) => outer.from + index);
  return lines.filter((line) => !inner.some(({ from, to }) => from <= line && line <= to)).length;
}

/** Where the bracket that opens here closes. */
function closeOf(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at += 1) {
    if ("([{".includes(code[at] ?? "")) depth += 1;
    if (")]}".includes(code[at] ?? "")) depth -= 1;
    if (depth === 0) return at;
  }
  return code.length - 1;
}

/** The opening brace of the body that follows an argument list, past a return type; -1 if there is none. */
function bodyAfter(code: string, start: number, isArrow: boolean): number {
  let before = "";
  for (let at = start; at < code.length; at += 1) {
    const char = code[at] ?? "";
    if (/\s/.test(char)) continue;
    if (before === "" && !":{=".includes(char)) return -1;
    if (isArrow && before === "=>") return char === "{" ? at : -1;
    if (char === "{" && !isArrow && !/^([:|&<,(]|=>)$/.test(before)) return at;
    if (";)}]".includes(char) || (char === "=" && code[at + 1] !== ">")) return -1;
    before = char === ">" && before === "=" ? "=>" : char;
    if ("([{".includes(char)) at = closeOf(code, at);
  }
  return -1;
}
