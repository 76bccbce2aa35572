/**
 * Tables for people: aligned, as wide as the terminal at most, made of text that is safe to show.
 *
 * When a table is too wide only the columns that may shrink do, the widest first, so that ids stay whole and can be
 * copied. In a file or a pipe nothing is cut. An empty column is left out: most tasks have no zone.
 */
import { clip, type Paint, padEnd, padStart, plain, type Tint, widthOf } from "./output-text.ts";

export type Column<Row> = {
  readonly title: string;
  readonly of: (row: Row) => string;
  readonly align?: "left" | "right";
  /** May be cut off when there is no room; the narrowest it may get is its title or 8 columns. */
  readonly shrinks?: boolean;
  readonly tint?: (row: Row) => Tint | null;
  /** Stands even when every cell of it is empty. */
  readonly stays?: boolean;
};

const GAP = "  ";
const SHRUNK_MIN = 8;

export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { width, paint }: { readonly width: number | null; readonly paint: Paint },
): string {
  const filled = columns
    .map((column) => ({ column, cells: rows.map((row) => plain(column.of(row))) }))
    .filter(({ column, cells }) => column.stays === true || cells.some((cell) => cell !== ""));
  const widths = fit(
    filled.map(({ column, cells }) => ({
      wanted: Math.max(widthOf(column.title), ...cells.map(widthOf)),
      least: column.shrinks === true ? Math.max(widthOf(column.title), SHRUNK_MIN) : Number.POSITIVE_INFINITY,
    })),
    width,
  );
  const line = (texts: readonly string[], tints: readonly (Tint | null)[]): string =>
    texts
      .map((text, at) => {
        const { align } = filled[at]?.column ?? {};
        const size = widths[at] ?? 0;
        const shown = clip(text, size);
        const isLast = at === texts.length - 1;
        const padded = align === "right" ? padStart(shown, size) : isLast ? shown : padEnd(shown, size);
        const tint = tints[at] ?? null;
        return tint === null ? padded : paint(tint, padded);
      })
      .join(GAP)
      .trimEnd();
  const head = line(
    filled.map(({ column }) => column.title),
    filled.map(() => "bold"),
  );
  const body = rows.map((row, index) =>
    line(
      filled.map(({ cells }) => cells[index] ?? ""),
      filled.map(({ column }) => column.tint?.(row) ?? null),
    ),
  );
  return `${[head, ...body].join("\n")}\n`;
}

type Wish = { readonly wanted: number; readonly least: number };

/** The width of each column: what it wants, less what the widest of those that shrink must give up. */
function fit(wishes: readonly Wish[], width: number | null): number[] {
  if (width === null) return wishes.map(({ wanted }) => wanted);
  const widths = wishes.map(({ wanted, least }) =>
    wanted > least ? Math.max(least, Math.min(wanted, width)) : wanted,
  );
  let over = widths.reduce((sum, one) => sum + one, 0) + GAP.length * Math.max(0, widths.length - 1) - width;
  while (over > 0) {
    const open = widths.map((size, at) => ({ size, at })).filter(({ size, at }) => size > (wishes[at]?.least ?? size));
    const widest = open.reduce<{ size: number; at: number } | null>(
      (best, one) => (best === null || one.size > best.size ? one : best),
      null,
    );
    if (widest === null) break;
    widths[widest.at] = widest.size - 1;
    over -= 1;
  }
  return widths;
}

/** Names and values, one a line, the values aligned; those without a value are left out. */
export function list(
  entries: readonly (readonly [name: string, value: string | undefined, tint?: Tint | null])[],
  { paint, indent = "" }: { readonly paint: Paint; readonly indent?: string },
): string {
  const shown = entries.filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(0, ...shown.map(([name]) => widthOf(name)));
  return shown
    .map(([name, value = "", tint = null]) => {
      const text = plain(value);
      return `${indent}${paint("dim", padEnd(name, width))}  ${tint === null ? text : paint(tint, text)}\n`;
    })
    .join("");
}
