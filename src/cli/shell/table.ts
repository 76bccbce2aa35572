/**
 * Tables for people: aligned, as wide as the terminal at most, made of text that is safe to show.
 *
 * When a table is too wide only the columns that may shrink do, the widest first, so that ids stay whole and can be
 * copied. If that is not enough, columns are left out from the right except those that always stay, and these are cut
 * too, all but the first. In a file or a pipe nothing is cut. An empty column is left out: most tasks have no zone.
 */
import { clip, type Paint, padEnd, padStart, plain, type Tint, widthOf, wrapLine } from "./text.ts";

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
  const filled = withRoom(
    columns
      .map((column) => ({ column, cells: rows.map((row) => plain(column.of(row))) }))
      .filter(({ column, cells }) => column.stays === true || cells.some((cell) => cell !== ""))
      .map(({ column, cells }) => ({ column, cells, wish: wishOf(column, cells) })),
    width,
  );
  const widths = fit(
    filled.map(({ wish }) => wish),
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

function wishOf<Row>({ title, shrinks }: Column<Row>, cells: readonly string[]): Wish {
  // Not spread into Math.max: there may be a hundred thousand rows.
  const wanted = cells.reduce((widest, cell) => Math.max(widest, widthOf(cell)), widthOf(title));
  return { wanted, least: shrinks === true ? Math.max(widthOf(title), SHRUNK_MIN) : Number.POSITIVE_INFINITY };
}

/** The columns that have room at their narrowest; the first is never left out. */
function withRoom<Of extends { readonly column: Column<never>; readonly wish: Wish }>(
  columns: readonly Of[],
  width: number | null,
): Of[] {
  const kept = [...columns];
  const narrowest = (): number =>
    kept.reduce((sum, { wish }) => sum + Math.min(wish.wanted, wish.least) + GAP.length, -GAP.length);
  while (width !== null && narrowest() > width) {
    const at = kept.findLastIndex(({ column }, index) => index > 0 && column.stays !== true);
    if (at < 0) break;
    kept.splice(at, 1);
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
    const open = widths.map((size, at) => ({ size, at })).filter(({ size, at }) => size > (wishes[at]?.least ?? size));
    const widest = open.reduce<{ size: number; at: number } | null>(
      (best, one) => (best === null || one.size > best.size ? one : best),
      null,
    );
    if (widest === null) return cut(widths, width);
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
  entries: readonly (readonly [name: string, value: string | undefined, tint?: Tint | null])[],
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
