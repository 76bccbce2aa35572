/**
 * What a parser of YAML complains of, as far as a person can do something about it.
 *
 * One slip, such as a bracket in a text without quotes, leaves the parser at the wrong position, and it then complains
 * of everything that follows. Only the first such complaint is true, so it is the only one that is passed on; where the
 * slip is one of the usual ones it also says how to mend it. Complaints that YAML can go on after, such as a name that
 * stands twice, are all passed on as far as they come before it.
 */
import type { YAMLError } from "yaml";
import type { ConfigProblem } from "./problem.ts";

export type YamlComplaint = { readonly message: string; readonly offset: number };
/** What is said instead of the parser's own words, for complaints it can go on after. */
type YamlWords = Partial<Record<YAMLError["code"], string>>;

export function yamlComplaints(text: string, errors: readonly YAMLError[], words: YamlWords): YamlComplaint[] {
  const complaints: YamlComplaint[] = [];
  for (const { code, message, pos } of errors.toSorted((left, right) => left.pos[0] - right.pos[0])) {
    const [offset] = pos;
    const indented = code === "BLOCK_AS_IMPLICIT_KEY" ? overIndented(text, offset, errors) : null;
    if (indented !== null) {
      complaints.push({ message: OVER_INDENTED, offset: indented });
      break;
    }
    if (code === "BAD_INDENT" && message.startsWith("All mapping items")) {
      complaints.push(unevenly(text, offset));
      break;
    }
    const own = words[code];
    if (own !== undefined) {
      complaints.push({ message: own, offset });
      continue;
    }
    const last = complaints.at(-1);
    const isNew = last === undefined || /[\r\n]/.test(text.slice(last.offset, offset));
    if (isNew) complaints.push({ message: `this is not YAML: ${advised(text, offset, code, message)}`, offset });
    break;
  }
  return complaints;
}

const OVER_INDENTED =
  "this line is indented further than the one above, which has a value already; begin it in the same column";

/** A line that YAML takes for more of the value above it: where it begins; null if that is not what happened. */
function overIndented(text: string, offset: number, errors: readonly YAMLError[]): number | null {
  const longer = errors.find(({ code, pos }) => code === "MULTILINE_IMPLICIT_KEY" && pos[0] === offset);
  if (longer === undefined) return null;
  const from = text.lastIndexOf("\n", longer.pos[1] - 1) + 1;
  const [blank = ""] = /^\s*/.exec(text.slice(from)) ?? [];
  return from + blank.length;
}

/** Names of one map that do not begin in one column: which of them it is that stands apart. */
function unevenly(text: string, offset: number): YamlComplaint {
  const here = offset + (/^\s*/.exec(text.slice(offset))?.[0].length ?? 0);
  const from = text.lastIndexOf("\n", here - 1) + 1;
  let above: { indent: number; offsets: number[] } | null = null;
  for (let at = from; at > 0; ) {
    at = text.lastIndexOf("\n", at - 2) + 1;
    const indent = indentAt(text, at);
    if (/^[\r\n#]?$/.test(text[at + indent] ?? "")) continue;
    if (indent <= here - from) break;
    // What lies below another name is indented further still.
    if (above === null || indent < above.indent) above = { indent, offsets: [] };
    if (indent === above.indent) above.offsets.push(at + indent);
  }
  if (above === null) return { message: OVER_INDENTED, offset: here };
  const [only = here, ...more] = above.offsets;
  return more.length > 0
    ? { message: "this line begins further left than those above it; begin it in the same column", offset: here }
    : { message: "this line is indented further than the one below; begin both in the same column", offset: only };
}

const indentAt = (text: string, from: number): number => /^ */.exec(text.slice(from))?.[0].length ?? 0;

const COMMA = "inside { } a comma ends a value: put a text that holds one into quotes";

/** Inside { } a comma ends a value, and the rest of a text becomes a name without a value. Said instead of that. */
export function commaAdvice(line: string, column: number): string | null {
  const isAlone = /,\s*$/.test(line.slice(0, column - 1)) && /^[^:,{}]*[,}]/.test(line.slice(column - 1));
  return isAlone ? COMMA : null;
}

/** A text with two commas leaves two such names: one word about the line is enough. */
export function oncePerLine(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const seen = new Set<string>();
  return problems.filter(({ message, origin }) => {
    if (message !== COMMA || origin?.kind !== "file") return true;
    const line = `${origin.line} ${origin.file}`;
    return seen.has(line) ? false : seen.add(line);
  });
}

const WORD_SHOWN_MAX = 60;

function advised(text: string, offset: number, code: YAMLError["code"], message: string): string {
  const bracket = text[offset];
  if (bracket === "[" || bracket === "{") {
    const from = text.slice(Math.max(0, offset - WORD_SHOWN_MAX), offset);
    const [before = ""] = /[^\s,:[\]{}"']*$/.exec(from) ?? [];
    const [after = bracket] =
      /^\[[^\s,[\]"']*\]|^\{[^\s,{}"']*\}/.exec(text.slice(offset, offset + WORD_SHOWN_MAX)) ?? [];
    if (before !== "") return `inside { } or [ ] a text with a bracket needs quotes: "${before}${after}"`;
  }
  if (isInText(bracket, text.slice(0, offset)))
    return "inside { } or [ ] a text with a bracket in it needs quotes: put it into quotes";
  if (code === "BLOCK_IN_FLOW" || code === "MULTILINE_IMPLICIT_KEY")
    return "inside { } a comma goes between two values: one is missing behind this one";
  if (code === "BLOCK_AS_IMPLICIT_KEY") return `${message}; a text with a colon and a space in it needs quotes`;
  return message;
}

/** Whether a bracket follows a word, where one that begins a value follows a colon, a comma or another bracket. */
const isInText = (bracket: string | undefined, before: string): boolean =>
  (bracket === "[" || bracket === "{") && /[^\s,:[{]\s+$/.test(before.slice(before.lastIndexOf("\n") + 1));
