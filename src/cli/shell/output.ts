/**
 * What a verb prints: tables and sentences for people, or with --json the answer of the API as it came.
 *
 * A verb says what it has to show once, for both kinds of reader; whether there are colours and how wide the screen is
 * are settled here. The JSON is exactly what the server sent, so its shape is the API's and as stable.
 */

import { asTyped, type Problem } from "./problem.ts";
import type { Terminal } from "./terminal.ts";
import type { Paint, Tint } from "./text.ts";
import { clip, clipMiddle, padEnd, padStart, painter, plain, plainLines, widthOf, wrapLine } from "./text.ts";

export type Output = {
  readonly isJson: boolean;
  readonly paint: Paint;
  readonly width: number | null;
  readonly height: number | null;
  readonly now: () => number;
  /** One line for people; nothing with --json. */
  readonly say: (line: string) => void;
  /** The whole answer: the value with --json, else what `shown` makes of it. */
  readonly answer: (value: unknown, shown: () => string) => void;
  /** One of many answers: a line of JSON with --json, else a line for people. */
  readonly line: (value: unknown, shown: () => string) => void;
  readonly table: <Row>(rows: readonly Row[], columns: readonly Column<Row>[]) => string;
  readonly list: (entries: readonly Entry[], indent?: string) => string;
};
type Entry = readonly [name: string, value: string | undefined, tint?: Tint | null];

export function createOutput(
  terminal: Terminal,
  { json = false, color = true }: { readonly json?: boolean; readonly color?: boolean },
): Output {
  const paint = painter(terminal.hasColours && color && !json);
  const { width, height } = terminal;
  return {
    isJson: json,
    paint,
    width,
    height,
    now: terminal.now,
    say: (line) => (json ? undefined : terminal.out(`${line}\n`)),
    answer: (value, shown) => terminal.out(json ? `${JSON.stringify(value, null, 2)}\n` : shown()),
    line: (value, shown) => terminal.out(`${json ? JSON.stringify(value) : shown()}\n`),
    table: (rows, columns) => table(rows, columns, { width, paint }),
    list: (entries, indent = "") => list(entries, { paint, width, indent }),
  };
}

/** What went wrong, on standard error: with --json one object of the shape the API uses. */
export function reportProblem(given: Problem, terminal: Terminal, isJson: boolean): void {
  const problem = { ...given, hint: given.hint === undefined ? undefined : asTyped(given.hint) };
  if (isJson) {
    const { message, code, retryable, details, hint } = problem;
    terminal.err(`${JSON.stringify({ error: message, code, retryable, details, hint })}\n`);
    return;
  }
  const paint = painter(terminal.errorsHaveColours);
  const [first = "", ...rest] = plainLines(problem.message).split("\n");
  terminal.err(`${paint("red", "error:")} ${first}\n`);
  for (const line of rest) terminal.err(`${line}\n`);
  if (problem.hint !== undefined) terminal.err(`${paint("dim", "hint:")}  ${plainLines(problem.hint)}\n`);
}

// ------------------------------------------------------------- tables and lists

export type Column<Row> = {
  readonly title: string;
  readonly of: (row: Row) => string;
  readonly align?: "left" | "right";
  /**
   * May be cut off when there is no room: to the width of its title, 8 columns or `least`. One that shrinks `last` does
   * so when no other can any more, and keeps its beginning and its end.
   */
  readonly shrinks?: boolean | "last";
  readonly least?: number;
  /** When to leave it out for want of room: the highest goes first; without, after all others. */
  readonly leaves?: number;
  readonly tint?: (row: Row) => Tint | null;
  /** Stands even when every cell of it is empty. */
  readonly stays?: boolean;
};

type TableSize = {
  readonly width: number | null;
  readonly paint: Paint;
  /** Which columns there are depends on the width alone: a table that is drawn again and again keeps them. */
  readonly isSteady?: boolean;
};

const GAP = "  ";
const SHRUNK_MIN = 8;

/**
 * Rows and columns, aligned, as wide as the terminal at most, made of text that is safe to show.
 *
 * When a table is too wide only the columns that may shrink do, the widest first, so that ids stay whole and can be
 * copied. If that is not enough, columns are left out, in the order they say or from the right, except those that
 * always stay, and these are cut too, all but the first. In a file or a pipe nothing is cut. An empty column is left
 * out: most tasks have no zone.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { width, paint, isSteady = false }: TableSize,
): string {
  const filled = withRoom(
    columns
      .map((column) => ({ column, cells: rows.map((row) => plain(column.of(row))) }))
      .filter(({ column, cells }) => isSteady || column.stays === true || cells.some((cell) => cell !== ""))
      .map(({ column, cells }) => ({ column, cells, wish: wishOf(column, cells, isSteady) })),
    width,
    isSteady,
  );
  const wishes = filled.map(({ wish }) => wish);
  const widths = fit(wishes, width);
  /** The row at an index; without, the head. */
  const line = (index?: number): string =>
    filled
      .map(({ column, cells }, at) => {
        const size = widths[at] ?? 0;
        const clipped = column.shrinks === "last" && index !== undefined ? clipMiddle : clip;
        const shown = clipped(index === undefined ? column.title : (cells[index] ?? ""), size);
        const isLast = at === filled.length - 1;
        const padded = column.align === "right" ? padStart(shown, size) : isLast ? shown : padEnd(shown, size);
        const tint = index === undefined ? "bold" : column.tint?.(rows[index] as Row);
        return tint ? paint(tint, padded) : padded;
      })
      .join(GAP)
      .trimEnd();
  return `${[line(), ...rows.map((_, index) => line(index))].join("\n")}\n`;
}

type Wish = { readonly wanted: number; readonly least: number; readonly isLast: boolean };

/** Where the table is steady, a column is never narrower than its least: shorter numbers do not move the others. */
function wishOf<Row>(
  { title, shrinks = false, least }: Column<Row>,
  cells: readonly string[],
  isSteady: boolean,
): Wish {
  const narrow = Math.max(widthOf(title), isSteady ? (least ?? 0) : 0);
  // Not spread into Math.max: there may be a hundred thousand rows.
  const wanted = cells.reduce((widest, cell) => Math.max(widest, widthOf(cell)), narrow);
  const narrowest = shrinks === false ? Number.POSITIVE_INFINITY : Math.max(widthOf(title), least ?? SHRUNK_MIN);
  return { wanted, least: narrowest, isLast: shrinks === "last" };
}

/** The columns that have room at their narrowest; the first is never left out. */
function withRoom<Of extends { readonly column: Column<never>; readonly wish: Wish }>(
  columns: readonly Of[],
  width: number | null,
  isSteady: boolean,
): Of[] {
  const kept = [...columns];
  const least = ({ column, wish }: Of): number =>
    isSteady ? Math.max(widthOf(column.title), column.least ?? 0) : Math.min(wish.wanted, wish.least);
  const narrowest = (): number => kept.reduce((sum, each) => sum + least(each) + GAP.length, -GAP.length);
  while (width !== null && narrowest() > width) {
    const free = kept.filter(({ column }, index) => index > 0 && column.stays !== true);
    const first = free.toReversed().sort((left, right) => (right.column.leaves ?? 0) - (left.column.leaves ?? 0))[0];
    if (first === undefined) break;
    kept.splice(kept.indexOf(first), 1);
  }
  return kept;
}

/** The width of each column: what it wants, less what the widest of those that shrink must give up. */
function fit(wishes: readonly Wish[], width: number | null): number[] {
  if (width === null) return wishes.map(({ wanted }) => wanted);
  const widths = wishes.map(({ wanted, least }) =>
    wanted > least ? Math.max(least, Math.min(wanted, width)) : wanted,
  );
  let over = widths.reduce((sum, one) => sum + one, 0) + GAP.length * Math.max(0, widths.length - 1) - width;
  while (over > 0) {
    const open = widths
      .map((size, at) => ({ size, at, isLast: wishes[at]?.isLast === true }))
      .filter(({ size, at }) => size > (wishes[at]?.least ?? size));
    const [widest] = open.sort((left, right) => Number(left.isLast) - Number(right.isLast) || right.size - left.size);
    if (widest === undefined) return cut(widths, width);
    widths[widest.at] = widest.size - 1;
    over -= 1;
  }
  return widths;
}

/** What is left of each column where nothing shrinks any more: the first is whole, the others have the rest. */
function cut(widths: readonly number[], width: number): number[] {
  let room = width;
  return widths.map((size, at) => {
    const kept = at === 0 ? size : Math.max(0, Math.min(size, room));
    room -= kept + GAP.length;
    return kept;
  });
}

const BESIDE_MIN = 20;

/**
 * Names and values, the values aligned; those without a value are left out. A value that is too long for its line goes
 * on below itself, or, where not even its longest word has room beside the names, below its name.
 */
export function list(
  entries: readonly Entry[],
  { paint, width, indent = "" }: { readonly paint: Paint; readonly width: number | null; readonly indent?: string },
): string {
  const shown = entries.filter(([, value]) => value !== undefined && value !== "");
  const names = Math.max(0, ...shown.map(([name]) => widthOf(name)));
  const room = (width ?? Number.POSITIVE_INFINITY) - indent.length;
  return shown
    .map(([name, value = "", tint = null]) => {
      const painted = (line: string): string => (tint === null ? line : paint(tint, line));
      const beside = room - names - GAP.length;
      const [first = "", ...rest] = wrapLine(plain(value), beside);
      const isBeside = [first, ...rest].every((line) => widthOf(line) <= beside);
      const isBelow = !isBeside || (rest.length > 0 && beside < BESIDE_MIN);
      const lines = isBelow
        ? [paint("dim", name), ...wrapLine(plain(value), room - GAP.length).map((line) => GAP + painted(line))]
        : [
            `${paint("dim", padEnd(name, names))}${GAP}${painted(first)}`,
            ...rest.map((line) => `${" ".repeat(names)}${GAP}${painted(line)}`),
          ];
      return lines.map((line) => `${indent}${line}\n`).join("");
    })
    .join("");
}
