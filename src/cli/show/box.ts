/**
 * Boxes: lines in a frame with a title, every line exactly as wide as the box.
 *
 * What stands in them comes from strangers: it is made plain, measured in columns, cut and padded before it is painted,
 * so that no name moves the right edge, however wide its letters are.
 */
import { clip, type Paint, padEnd, plain, type Tint, widthOf } from "../shell/text.ts";

/** A piece of a line, and its colour. */
export type Piece = string | readonly [text: string, tint: Tint | null];
export type BoxLine = readonly Piece[] | "rule";

/** Pieces one after the other in exactly so many columns. */
export function fitted(pieces: readonly Piece[], columns: number, paint: Paint): string {
  let room = Math.max(0, columns);
  let line = "";
  for (const piece of pieces) {
    const [text, tint] = typeof piece === "string" ? [piece, null] : piece;
    const shown = clip(plain(text), room);
    room -= widthOf(shown);
    line += tint === null ? shown : paint(tint, shown);
    if (room <= 0) break;
  }
  return line + " ".repeat(Math.max(0, room));
}

/** The text in exactly so many columns. */
export const cell = (text: string, columns: number): string => padEnd(clip(plain(text), columns), columns);

/** A title, then sections with a line across between them. */
export function boxOf(
  title: string,
  sections: readonly (readonly BoxLine[])[],
  { width, paint, titleTint = "bold" }: { readonly width: number; readonly paint: Paint; readonly titleTint?: Tint },
): string[] {
  const dim = (text: string): string => paint("dim", text);
  const inner = Math.max(0, width - 4);
  const name = clip(plain(title), inner - 1);
  const top = `${dim("┌─")} ${paint(titleTint, name)} ${dim(`${"─".repeat(Math.max(0, inner - 1 - widthOf(name)))}┐`)}`;
  const across = dim(`├${"─".repeat(inner + 2)}┤`);
  const lines = sections.map((section) =>
    section.map((line) =>
      line === "rule"
        ? `${dim("│")} ${dim("─".repeat(inner + 1))}${dim("│")}`
        : `${dim("│")} ${fitted(line, inner, paint)} ${dim("│")}`,
    ),
  );
  const body = lines.flatMap((section, at) => (at === 0 ? section : [across, ...section]));
  return [top, ...body, dim(`└${"─".repeat(inner + 2)}┘`)];
}

const FULL = "█";
const PARTS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A bar in exactly so many columns, an eighth of one at a time. */
export function barOf(share: number, columns: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * columns * 8);
  const bar = FULL.repeat(Math.floor(eighths / 8)) + (PARTS[eighths % 8] ?? "");
  return padEnd(bar, columns);
}
