/**
 * Text that is safe to show and fits where it is shown.
 *
 * Ids, errors and logs come from strangers. An escape sequence in a task's error must not move the cursor, retitle
 * the window or hide a line, so control characters are shown as pictures and never sent. Widths are counted in
 * columns, since a Chinese character takes two and a combining accent none; a table that counts code units would
 * not line up.
 */
import { relative } from "node:path";

const ELLIPSIS = "…";
/** Characters that stand alone in one column: ASCII, the further letters of Europe, dashes, quotes, ellipsis, minus. */
const ONE_COLUMN_EACH = /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2212]*$/;
let measure: typeof import("string-width").default | undefined;
let segmenter: Intl.Segmenter | undefined;

/** Loaded at the first text that needs it: what is known of all scripts takes as long to load as a verb. */
function columnsOf(text: string): number {
  measure ??= process.getBuiltinModule("node:module").createRequire(import.meta.url)("string-width").default;
  return measure?.(text) ?? 0;
}

function segmentsOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** One line, without anything a terminal would obey. */
export function plain(text: string): string {
  return text.replaceAll(CONTROL, pictureOf);
}

/** Several lines, each made plain; line ends and tabs stay what they are. */
export function plainLines(text: string): string {
  return text
    .replaceAll(/\r\n/g, "\n")
    .replaceAll(CONTROL, (char) => (char === "\n" || char === "\t" ? char : pictureOf(char)));
}

/** ␊ for a line feed and so on: what was there can still be read. */
function pictureOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "␡" : "�";
}

/** How many columns a text takes. */
export const widthOf = (text: string): number => (ONE_COLUMN_EACH.test(text) ? text.length : columnsOf(text));

/** The text in at most so many columns; what is cut off is marked. */
export function clip(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  if (columns <= 0) return "";
  if (ONE_COLUMN_EACH.test(text)) return text.slice(0, columns - 1) + ELLIPSIS;
  let width = 0;
  let kept = "";
  for (const { segment } of segmentsOf(text)) {
    width += columnsOf(segment);
    if (width > columns - 1) break;
    kept += segment;
  }
  return kept + ELLIPSIS;
}

/** The same, with what is cut off in the middle: names that differ at their ends stay different. */
export function clipMiddle(text: string, columns: number): string {
  if (widthOf(text) <= columns || columns < 3 || !ONE_COLUMN_EACH.test(text)) return clip(text, columns);
  const before = Math.ceil((columns - 1) / 2);
  return text.slice(0, before) + ELLIPSIS + text.slice(text.length - (columns - 1 - before));
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

export function padStart(text: string, columns: number): string {
  return " ".repeat(Math.max(0, columns - widthOf(text))) + text;
}

/**
 * One line in lines of at most so many columns, the later ones below its text and so much further in. What stands
 * between two words stays as it is, except where the line is broken. A word that is too long stays whole: an id or an
 * address that is broken cannot be copied.
 */
export function wrapLine(line: string, columns: number, further = ""): string[] {
  if (widthOf(line) <= columns) return [line];
  const lead = /^ */.exec(line)?.[0] ?? "";
  // Deep in a structure there would be no room left beside the indent.
  const below = `${lead}${further}`.slice(0, Math.floor(columns / 2));
  const lines: string[] = [];
  let shown = "";
  for (const piece of line.match(/ *[^ ]+/g) ?? [])
    if (shown !== "" && widthOf(shown + piece) > columns) {
      lines.push(shown);
      shown = below + piece.trimStart();
    } else shown += piece;
  return [...lines, shown];
}

/** As a shell takes it for one word. */
export const asWord = (word: string): string =>
  /^[\w.,:/@%+-]+$/.test(word) ? word : `'${plain(word).replaceAll("'", `'\\''`)}'`;

/** A path below where we are, as a person would write it. */
export function shortPath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short === "" ? "." : short.startsWith("..") ? path : short;
}

export type Tint = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "cyan";
export type Paint = (tint: Tint, text: string) => string;

/** Whether there are colours is decided by the terminal of the call, not by this process. */
export function painter(hasColours: boolean): Paint {
  if (!hasColours) return (_, text) => text;
  const { styleText } = process.getBuiltinModule("node:util");
  return (tint, text) => (text === "" ? "" : styleText(tint, text, { validateStream: false }));
}
