/**
 * The live picture of a run on a terminal: what runs now, for how long, the last line each wrote, and the counts.
 *
 * It is a few lines at the bottom that are drawn over and over; whatever else is printed goes above them and stays. So
 * scrolling back shows a plain history, and when the run ends only that is left. No line is longer than the terminal
 * is wide, since a wrapped line could not be drawn over, and there are few enough lines for any window.
 */
import { clip, type Paint, padEnd, padStart, plain } from "../shell/text.ts";
import { span } from "../show/time.ts";
import type { Counts, Row, RunState } from "./state.ts";

export type Screen = {
  /** A line, or several, that stay. */
  print(text: string): void;
  /** Draws the picture again. */
  refresh(): void;
  /** Takes the picture away. */
  end(): void;
};
export type Picture = () => readonly string[];

const ROWS_MAX = 8;
const TIME_WIDTH = 6;

export function createScreen(out: (text: string) => void, picture: Picture): Screen {
  let drawn = 0;
  const erase = (): string => (drawn === 0 ? "" : `\u001b[${drawn}A\u001b[0J`);
  function draw(above: string): void {
    const lines = picture();
    const text = `${erase()}${above}${lines.map((line) => `${line}\n`).join("")}`;
    drawn = lines.length;
    if (text !== "") out(text);
  }
  return {
    print: (text) => draw(`${text}\n`),
    refresh: () => draw(""),
    end() {
      if (drawn > 0) out(erase());
      drawn = 0;
    },
  };
}

export type PictureParts = {
  readonly runState: RunState;
  readonly now: number;
  readonly width: number;
  readonly nameWidth: number;
  readonly paint: Paint;
  readonly lastLine: (id: string) => string;
};

/** What runs, longest first, and one line of counts. */
export function pictureOf(parts: PictureParts): string[] {
  const { runState, paint, width } = parts;
  const running = runState.rows.filter(({ state }) => state === "running");
  const shown = running.toSorted((left, right) => (left.startedAt ?? 0) - (right.startedAt ?? 0)).slice(0, ROWS_MAX);
  const more = running.length - shown.length;
  const counts = `${countsText(runState.counts())}${more > 0 ? ` (${more} of the running not shown)` : ""}`;
  return [...shown.map((row) => runningLine(row, parts)), paint("dim", clip(`  ${counts}`, width - 1))];
}

function runningLine(row: Row, { now, width, nameWidth, paint, lastLine }: PictureParts): string {
  const name = padEnd(clip(plain(row.task.name), nameWidth), nameWidth);
  const seconds = Math.max(0, Math.floor((now - (row.startedAt ?? now)) / 1000));
  const time = padStart(seconds === 0 ? "0s" : span(seconds * 1000), TIME_WIDTH);
  const room = width - 1 - nameWidth - TIME_WIDTH - 6;
  const line = room > 0 ? clip(plain(lastLine(row.id)), room) : "";
  return `${paint("cyan", ">")} ${name}  ${time}  ${paint("dim", line)}`.trimEnd();
}

/** `2 running, 3 done, 1 failed, 4 waiting`. */
export function countsText({ running, done, failed, skipped, cancelled, waiting, resting }: Counts): string {
  const parts: [number, string][] = [
    [running, "running"],
    [done, "done"],
    [failed, "failed"],
    [skipped, "skipped"],
    [cancelled, "cancelled"],
    [waiting + resting, "waiting"],
  ];
  return parts
    .filter(([count, word]) => count > 0 || word === "running")
    .map(([count, word]) => `${count} ${word}`)
    .join(", ");
}
