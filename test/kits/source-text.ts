/** The text of source files, read without a parser: what is code, what is imported, how long functions are. */

export const isTest = (path: string): boolean => path.endsWith(".test.ts");

export function importsOf(text: string): string[] {
  const pattern = /\b(?:from|import|import\s*\(|new URL\()\s*"([^"\n]+)"/g;
  return [...blank(text, { keepStrings: true }).matchAll(pattern)].map(([, target = ""]) => target);
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

const COMMENT = /\/\/.*|\/\*[\s\S]*?\*\//y;
const STRING = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y;
const TEMPLATE_PART = /[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[dgimsuvy]*/y;
const BEFORE_REGEX = /(?:[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|case|typeof|of|in)|^)\s*$/;

/** The text with comments, strings and patterns turned into spaces, every line and column kept. */
export function blank(text: string, { keepStrings = false } = {}): string {
  let code = "";
  /** One entry per open `${`: how many braces are open inside it. */
  const open: number[] = [];
  const matchAt = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = code.length;
    return pattern.exec(text)?.[0];
  };
  const spaces = (part: string): string => part.replaceAll(/[^\n]/g, " ");
  const blanked = (part: string, tail: number): string =>
    keepStrings ? part : `${part[0]}${spaces(part.slice(1, -tail))}${part.slice(-tail)}`;

  while (code.length < text.length) {
    const char = text[code.length] ?? "";
    const depth = open.at(-1);
    const comment = char === "/" ? matchAt(COMMENT) : undefined;
    const string = char === '"' || char === "'" ? matchAt(STRING) : undefined;
    const part = char === "`" || (char === "}" && depth === 0) ? matchAt(TEMPLATE_PART) : undefined;
    const regex = char === "/" && BEFORE_REGEX.test(code.slice(-40)) ? matchAt(REGEX) : undefined;
    if (comment !== undefined) code += spaces(comment);
    else if (string !== undefined) code += blanked(string, 1);
    else if (part !== undefined) {
      if (char === "}") open.pop();
      if (part.endsWith("${")) open.push(0);
      code += blanked(part, part.endsWith("${") ? 2 : 1);
    } else if (regex !== undefined) code += `/${spaces(regex.slice(1, regex.lastIndexOf("/")))}/`.padEnd(regex.length);
    else {
      if (depth !== undefined && char === "{") open.push((open.pop() ?? 0) + 1);
      if (depth !== undefined && char === "}") open.push((open.pop() ?? 0) - 1);
      code += char;
    }
  }
  return code;
}

export type Sized = { readonly name: string; readonly size: number };

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
export function functionSizes(text: string): Sized[] {
  const spans = spansOf(text);
  return spans.map((span) => ({ name: span.name, size: ownLines(span, spans) }));
}

/** The whole size of each named function in lines, with everything inside it. */
export function wholeSizes(text: string): Sized[] {
  return spansOf(text)
    .filter(({ isNamed }) => isNamed)
    .map(({ name, from, to }) => ({ name, size: to - from + 1 }));
}

function spansOf(text: string): Span[] {
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
  return [...spans.values()];
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
