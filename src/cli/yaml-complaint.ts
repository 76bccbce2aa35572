/**
 * What a parser of YAML complains of, as far as a person can do something about it.
 *
 * One slip, such as a bracket in a text without quotes, leaves the parser in the wrong place, and it then complains of
 * everything that follows. Only the first such complaint is true, so it is the only one that is passed on; where the
 * slip is one of the usual ones it also says how to mend it. Complaints that YAML can go on after, such as a name that
 * stands twice, are all passed on as far as they come before it.
 */
import type { YAMLError } from "yaml";

export type YamlComplaint = { readonly message: string; readonly offset: number };
/** What is said instead of the parser's own words, for complaints it can go on after. */
export type YamlWords = Partial<Record<YAMLError["code"], string>>;

export function yamlComplaints(text: string, errors: readonly YAMLError[], words: YamlWords): YamlComplaint[] {
  const complaints: YamlComplaint[] = [];
  for (const { code, message, pos } of errors.toSorted((left, right) => left.pos[0] - right.pos[0])) {
    const [offset] = pos;
    const indented = code === "BLOCK_AS_IMPLICIT_KEY" ? overIndented(text, offset, errors) : null;
    if (indented !== null) {
      complaints.push({ message: OVER_INDENTED, offset: indented });
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

/** Inside { } a comma ends a value, and the rest of a text becomes a name without a value. Said where it stands. */
export function commaAdvice(line: string, column: number): string {
  const isAlone = /,\s*$/.test(line.slice(0, column - 1)) && /^[^:,{}]*[,}]/.test(line.slice(column - 1));
  return isAlone ? "; inside { } a comma ends a value: put a text that holds one into quotes" : "";
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
  if (code === "BLOCK_AS_IMPLICIT_KEY") return `${message}; a text with a colon and a space in it needs quotes`;
  return message;
}
