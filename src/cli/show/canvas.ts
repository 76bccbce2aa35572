/**
 * A picture at the bottom of a terminal, drawn over itself; what is printed goes above it and stays.
 *
 * However much happens, it is drawn at most ten times a second, and where nothing was printed only the lines that
 * have changed are written: a plan of many short tasks must not keep a terminal, or the line to it, busy. A terminal
 * that is made narrower breaks the lines that are too wide for it, so the picture is higher than it was drawn.
 */
import { type Clock, ringAfter } from "../../std/index.ts";
import type { Terminal } from "../shell/terminal.ts";
import { widthOf } from "../shell/text.ts";

export type Canvas = {
  /** A line, or several, that stay. */
  print(text: string): void;
  /** The picture may be another now. */
  refresh(): void;
  /** All that is to be seen is drawn at once. */
  flush(): void;
};
type CanvasParts = {
  readonly terminal: Pick<Terminal, "out" | "width">;
  readonly clock: Pick<Clock, "elapsed" | "ringAt">;
  /** None of its lines is wider than the terminal. */
  readonly picture: () => readonly string[];
};

const DRAW_MS = 100;
/** So much of what is printed waits for the next draw. */
const PRINTED_MAX = 64 * 1024;
const ERASE_BELOW = "\u001b[0J";
const ERASE_REST_OF_LINE = "\u001b[K";

export function createCanvas({ terminal, clock, picture }: CanvasParts): Canvas {
  let drawn = { lines: [] as readonly string[], width: terminal.width, at: Number.NEGATIVE_INFINITY };
  let printed = "";
  let cancel: (() => void) | null = null;

  function flush(): void {
    cancel?.();
    cancel = null;
    const next = { lines: picture(), width: terminal.width, at: clock.elapsed() };
    const isSameShape = next.width === drawn.width && next.lines.length === drawn.lines.length;
    const text = printed === "" && isSameShape ? changes(drawn.lines, next.lines) : anew(next.lines, next.width);
    [drawn, printed] = [next, ""];
    if (text !== "") terminal.out(text);
  }
  function anew(lines: readonly string[], width: number | null): string {
    const erased = drawn.lines.length === 0 ? "" : `${toTop(heightOf(drawn.lines, width))}${ERASE_BELOW}`;
    return `${erased}${printed}${asText(lines)}`;
  }

  function refresh(): void {
    if (cancel !== null) return;
    const waitMs = drawn.at + DRAW_MS - clock.elapsed();
    if (waitMs <= 0) flush();
    else cancel = ringAfter(clock, waitMs, flush);
  }
  return {
    print(text) {
      printed += `${text}\n`;
      if (printed.length > PRINTED_MAX) flush();
      else refresh();
    },
    refresh,
    flush,
  };
}

const asText = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");
// From the first column: a terminal may have printed ^C below the picture.
const toTop = (height: number): string => `\r\u001b[${height}A`;

/** How many rows these lines take in a terminal that is so wide by now. */
const heightOf = (lines: readonly string[], width: number | null): number =>
  lines.reduce((sum, line) => sum + rowsOf(widthOf(line), width ?? Number.POSITIVE_INFINITY), 0);
const rowsOf = (columns: number, width: number): number => Math.max(1, Math.ceil(columns / Math.max(1, width)));

/** Of pictures of one height: over the lines that are the same the cursor goes down. */
function changes(before: readonly string[], after: readonly string[]): string {
  if (after.every((line, at) => line === before[at])) return "";
  const lines = after.map((line, at) => (line === before[at] ? "" : `${line}${ERASE_REST_OF_LINE}`));
  return `${toTop(before.length)}${asText(lines)}${ERASE_BELOW}`;
}
