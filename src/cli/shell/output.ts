/**
 * What a verb prints: tables and sentences for people, or with --json the answer of the API as it came.
 *
 * A verb says what it has to show once, for both kinds of reader; whether there are colours and how wide the screen is
 * are settled here. The JSON is exactly what the server sent, so its shape is the API's and as stable.
 */

import { type Column, list, table } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { type Paint, painter, type Tint } from "./text.ts";

export type Output = {
  readonly isJson: boolean;
  readonly paint: Paint;
  readonly width: number | null;
  readonly now: () => number;
  /** One line for people; nothing with --json. */
  readonly say: (line: string) => void;
  /** The whole answer: the value with --json, else what `shown` makes of it. */
  readonly answer: (value: unknown, shown: () => string) => void;
  /** One of many answers: a line of JSON with --json, else a line for people. */
  readonly line: (value: unknown, shown: () => string) => void;
  readonly table: <Row>(rows: readonly Row[], columns: readonly Column<Row>[]) => string;
  readonly list: (
    entries: readonly (readonly [name: string, value: string | undefined, tint?: Tint | null])[],
    indent?: string,
  ) => string;
};

export function createOutput(
  terminal: Terminal,
  { json = false, color = true }: { readonly json?: boolean; readonly color?: boolean },
): Output {
  const paint = painter(terminal.hasColours && color && !json);
  const { width } = terminal;
  return {
    isJson: json,
    paint,
    width,
    now: terminal.now,
    say: (line) => (json ? undefined : terminal.out(`${line}\n`)),
    answer: (value, shown) => terminal.out(json ? `${JSON.stringify(value, null, 2)}\n` : shown()),
    line: (value, shown) => terminal.out(`${json ? JSON.stringify(value) : shown()}\n`),
    table: (rows, columns) => table(rows, columns, { width, paint }),
    list: (entries, indent = "") => list(entries, { paint, width, indent }),
  };
}
