/**
 * Text with expressions in it: `git merge ${{ needs.impl.branch }}`.
 *
 * In plain text (a variable, a prompt, a word of a list) an expression is replaced by the text of its value: as it is,
 * or as JSON if it is no text. In a line for a shell no value is ever part of the line: it is put into a variable of
 * the environment, and the line reads that, in quotes. A shell does not look into what a variable holds, so a value is
 * one word, or a part of the quoted word it stands in, whatever is in it: blanks, quotes, newlines, `$(…)`. Where a
 * shell would not read the variable, or not as one word, the expression is refused when the plan is read.
 *
 * `$${{` stands for `${{` itself.
 */
import {
  type Expression,
  ExpressionError,
  evaluate,
  MissingValue,
  needsIn,
  parseExpression,
  pathText,
  type Values,
} from "./expression.ts";

type Part = string | { readonly source: string; readonly expression: Expression };
export type Template = readonly Part[];

const OPEN = `\${{`;
const CLOSE = "}}";
/** The kernel takes no longer word or variable: 128 KiB with its name and a zero byte. */
const WORD_BYTES_MAX = 130_000;

/** Whether a text has anything to be read as a template. */
export const mayHaveExpressions = (text: string): boolean => text.includes(OPEN);

/** Throws an `ExpressionError`. */
export function parseTemplate(text: string): Template {
  const parts: Part[] = [];
  let literal = "";
  let at = 0;
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, at)) {
    if (text[open - 1] === "$" && open > at) {
      literal += text.slice(at, open - 1) + OPEN;
      at = open + OPEN.length;
      continue;
    }
    const close = endOf(text, open + OPEN.length);
    if (close < 0) throw new ExpressionError(`${JSON.stringify(text.slice(open, open + 40))} has no }} that closes it`);
    parts.push(literal + text.slice(at, open));
    const source = text.slice(open + OPEN.length, close).trim();
    parts.push({ source, expression: parseExpression(source) });
    literal = "";
    at = close + CLOSE.length;
  }
  parts.push(literal + text.slice(at));
  return parts.filter((part) => part !== "");
}

/** Where the expression ends that begins here: a `}}` in a text of it does not count. */
function endOf(text: string, from: number): number {
  let quote = "";
  for (let at = from; at < text.length; at++) {
    const char = text[at] as string;
    if (quote !== "") {
      if (char === "\\" && quote === '"') at++;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (text.startsWith(CLOSE, at)) return at;
  }
  return -1;
}

export const expressionsIn = (template: Template): Expression[] =>
  template.flatMap((part) => (typeof part === "string" ? [] : [part.expression]));

/** How many bytes of values may still be filled in: a short text can name a large result a thousand times. */
export type Room = { readonly most: number; left: number };
const FILLED_BYTES_MAX = 4 * 1024 * 1024;
export const roomForValues = (bytes: number = FILLED_BYTES_MAX): Room => ({ most: bytes, left: bytes });

/** The value of an expression, and its text: as it is, or as JSON. Throws a `MissingValue`. */
export function taken(expression: Expression, inputs: Values, room: Room): { value: unknown; text: string } {
  const value = evaluate(expression, inputs);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  room.left -= Buffer.byteLength(text);
  if (room.left >= 0) return { value, text };
  throw new MissingValue(`its expressions stand for more than ${room.most} bytes, the most of one task`);
}

/** Throws a `MissingValue`. */
export const fillText = (template: Template, inputs: Values, room: Room = roomForValues()): string =>
  template.map((part) => (typeof part === "string" ? part : taken(part.expression, inputs, room).text)).join("");

/** A word of a command line or of its environment: it holds no zero byte, and is not too long for the kernel. */
export function fillWord(template: Template, inputs: Values, room: Room = roomForValues()): string {
  const text = fillText(template, inputs, room);
  const [first] = expressionsIn(template);
  if (first === undefined) return text;
  const [named] = needsIn(first);
  const name = named === undefined ? "an expression" : pathText(named.need, named.steps);
  if (text.includes("\0")) throw new MissingValue(`${name} holds a zero byte, which no word of a command can`);
  const size = Buffer.byteLength(text);
  if (size <= WORD_BYTES_MAX) return text;
  const advice = "the file DROVER_INPUTS_FILE has all of it";
  throw new MissingValue(`${name} makes a word of ${size} bytes; at most ${WORD_BYTES_MAX} are taken, and ${advice}`);
}

// ------------------------------------------------------------------- for a shell

const VARIABLE = "DROVER_VALUE_";

export type ShellLine = { readonly line: string; readonly env: Readonly<Record<string, string>> };

/** The line for a shell, and the variables it reads, numbered behind those before. Throws a `MissingValue`. */
export function fillShell(template: Template, inputs: Values, before = 0, room: Room = roomForValues()): ShellLine {
  const contexts = contextsOf(template);
  const env: Record<string, string> = {};
  let count = 0;
  const words = template.map((part) => {
    if (typeof part === "string") return part;
    const name = `${VARIABLE}${before + ++count}`;
    env[name] = fillWord([part], inputs, room);
    return contexts[count - 1] === "bare" ? `"\${${name}}"` : `\${${name}}`;
  });
  return { line: words.join(""), env };
}

/** Why an expression stands where a shell would not read it as one word; null if none does. */
export function misplacedIn(template: Template): string | null {
  const bad = contextsOf(template).find((context) => context !== "bare" && context !== "double");
  return bad === undefined ? null : ADVICE[bad];
}

/** How a shell reads what stands in the place of an expression. */
type Context = "bare" | "double" | keyof typeof ADVICE;
const ADVICE = {
  single: "it stands in single quotes, in which a shell reads no values; use double quotes, or none",
  backtick: "it stands in backticks; use $( ) instead",
  braces: "it stands inside braces; put it into a variable of its own first",
  document: "it stands behind <<, as in a here-document; use printf or input: instead",
  arithmetic:
    "it stands in arithmetic, as in $(( )), where some shells run what a value holds; " +
    "put it into a variable, make sure that it is a number, and calculate with that",
  branches: "it stands behind a case in parentheses; put it into a variable before them",
  escaped: "a backslash stands before it; take that out",
} as const;

type Frame =
  | "bare"
  | "double"
  | "single"
  | "backtick"
  | "braces"
  | "paren"
  | "arithmetic"
  | "group"
  | "index"
  | "comment"
  | "escaped";

const ARITHMETIC: ReadonlySet<Frame> = new Set<Frame>(["arithmetic", "group", "index"]);

/** The contexts of the expressions of a line, in their order. */
function contextsOf(template: Template): Context[] {
  const frames: Frame[] = [];
  /** From where on a line cannot be followed. */
  let lost: "document" | "branches" | null = null;
  let before = "\n";
  const top = (): Frame => frames.at(-1) ?? "bare";
  const isBare = (): boolean => top() === "bare" || top() === "paren" || top() === "backtick";

  /** How many characters of the text were read. */
  function step(text: string, at: number): number {
    const char = text[at] as string;
    const two = text.slice(at, at + 2);
    if (top() === "single" || top() === "comment") {
      if (char === (top() === "single" ? "'" : "\n")) frames.pop();
      return 1;
    }
    if (char === "\\") return at + 1 < text.length ? 2 : opened("escaped", 1);
    if (text.startsWith("$((", at)) return opened("arithmetic", 3);
    if (two === "$[") return opened("index", 2);
    if (two === "$(") return opened("paren", 2);
    if (two === `\${`) return opened("braces", 2);
    if (char === "`") return top() === "backtick" ? closed(1) : opened("backtick", 1);
    if (char === '"') return top() === "double" ? closed(1) : opened("double", 1);
    if (top() === "double") return 1;
    if (top() === "braces") return char === "}" ? closed(1) : 1;
    // Parentheses and brackets inside of it close nothing but themselves.
    if (top() === "arithmetic") return char === "(" ? opened("group", 1) : two === "))" ? closed(2) : 1;
    if (top() === "group") return char === "(" ? opened("group", 1) : char === ")" ? closed(1) : 1;
    if (top() === "index") return char === "[" ? opened("index", 1) : char === "]" ? closed(1) : 1;
    if (char === "'") return opened("single", 1);
    if (char === "#" && /[\s;&|(]/.test(before)) return opened("comment", 1);
    if (two === "((") return opened("arithmetic", 2);
    if (char === "(") return opened("paren", 1);
    // What stands in the brackets of `name[…]=1` is calculated.
    if (char === "[" && /\w/.test(before)) return opened("index", 1);
    if (char === ")" && top() === "paren") return closed(1);
    if (two === "<<" && isBare()) lost ??= "document";
    // Its patterns end with parentheses that nothing has opened.
    if (top() === "paren" && /[\s;&|(]/.test(before) && /^case\s/.test(text.slice(at, at + 5))) lost ??= "branches";
    return 1;
  }
  function opened(frame: Frame, length: number): number {
    frames.push(frame);
    return length;
  }
  function closed(length: number): number {
    frames.pop();
    return length;
  }

  return template.flatMap((part) => {
    if (typeof part !== "string") {
      before = "x";
      const context = contextOf(frames, lost);
      if (top() === "escaped") frames.pop();
      return [context];
    }
    for (let at = 0; at < part.length; ) {
      const isEscape = part[at] === "\\" && top() !== "single" && top() !== "comment";
      at += step(part, at);
      const last = part[Math.min(at, part.length) - 1] as string;
      // What a backslash stands before is a part of a word, whatever it is; a line end goes with it.
      if (!isEscape) before = last;
      else if (last !== "\n") before = "x";
    }
    return [];
  });
}

function contextOf(frames: readonly Frame[], lost: "document" | "branches" | null): Context {
  const top = frames.at(-1) ?? "bare";
  if (top === "comment") return "bare";
  if (lost !== null) return lost;
  // A shell reads what is in backticks twice, so nothing inside them is safe from its quotes.
  if (frames.includes("backtick")) return "backtick";
  // In quotes, or printed by a command, a value is calculated all the same.
  if (frames.some((frame) => ARITHMETIC.has(frame))) return "arithmetic";
  return top === "paren" ? "bare" : (top as Context);
}
