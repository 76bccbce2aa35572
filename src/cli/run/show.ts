/**
 * How a run is shown: a live picture on a terminal, lines in a file or a pipe, JSON for programs.
 *
 * The picture is a few lines at the bottom that are drawn again when something happened and twice a second: what runs
 * now, for how long, the last line each wrote, and the counts. Whatever else is printed goes above them and stays, so
 * scrolling back shows a plain history, and when the run ends only that is left. No line is longer than the terminal
 * is wide, since a wrapped line could not be drawn over, and there are few enough lines for any window.
 */

import { type Clock, ringEvery } from "../../std/index.ts";
import type { Output } from "../shell/output.ts";
import type { Terminal } from "../shell/terminal.ts";
import { clip, type Paint, padStart, plain, plainLines, shortPath } from "../shell/text.ts";
import { barOf, cell, fitted } from "../show/box.ts";
import { span } from "../show/time.ts";
import { countWords, indented, jsonOf, lineOf, nameWidth, roundText } from "./lines.ts";
import type { RunObserver } from "./session.ts";
import { type Counts, inTree, type Row, type RunState } from "./state.ts";

export type Show = RunObserver & {
  /** A line that a command wrote. */
  wrote(id: string, line: string): void;
  /** A question at the bottom; null: none any more. */
  ask(question: string | null): void;
  end(): void;
};
/** Where the plan runs: on this machine, or on a server. */
export type Where =
  | { readonly data: string; readonly slots: number }
  | { readonly server: string; readonly by: string };
type ShowParts = {
  readonly terminal: Terminal;
  readonly output: Output;
  readonly name: string;
  readonly where: Where;
  readonly lastLine: (id: string) => string;
  readonly clock: Pick<Clock, "elapsed" | "ringAt">;
};

const REDRAW_MS = 500;
const ROWS_MAX = 8;
const TIME_WIDTH = 6;
/** How far the plan is stands beside the counts where there is room for both. */
const BAR_FROM = 60;
const BAR_WIDTH = 16;

export function createShow(parts: ShowParts): Show {
  const { terminal, output, name, where } = parts;
  let runState: RunState | null = null;
  let width = 0;
  const canRedraw = terminal.width !== null && terminal.env.TERM !== "dumb";
  const live = canRedraw && !output.isJson ? createLive(parts, () => runState) : null;
  const print = (text: string): void => (live === null ? terminal.out(`${text}\n`) : live.print(text));

  return {
    begun(given) {
      runState = given;
      width = nameWidth(given.rows.map((row) => row.name));
      const { all: tasks, before } = given.counts();
      if (output.isJson) output.line({ event: "begun", plan: name, tasks, before, ...where }, () => "");
      else print(begunText(tasks, before, parts));
      live?.begin();
    },
    happened(fact, row) {
      if (output.isJson) output.line(jsonOf(fact, row), () => "");
      // On a terminal the picture shows what has started.
      else if (live !== null && fact.kind === "started") live.refresh();
      else print(lineOf(fact, row, { paint: output.paint, width, parent: runState?.row(row.parent ?? "")?.name }));
    },
    noted(text) {
      if (output.isJson) output.line({ event: "note", text }, () => "");
      else if (live === null) terminal.err(`note: ${plainLines(text)}\n`);
      else print(`${output.paint("yellow", "note:")} ${plainLines(text)}`);
    },
    wrote(id, line) {
      const row = runState?.row(id);
      if (row === undefined) return;
      if (output.isJson) output.line({ event: "output", task: row.name, line }, () => "");
      else print(`${output.paint("cyan", plain(row.name))} | ${plain(line.replaceAll("\t", "  "))}`);
    },
    ask: (question) => live?.ask(question),
    end: () => live?.end(),
  };
}

function begunText(all: number, before: number, { name, where, terminal }: ShowParts): string {
  const tasks = (count: number): string => (count === 1 ? "1 task" : `${count} tasks`);
  if (before === all) return `${name}: all of it (${tasks(all)}) was done before; --fresh runs it anew.`;
  const first = before === 0 ? tasks(all) : `${before} of ${tasks(all)} done before`;
  if ("server" in where) return `${name}: ${first}, on the server at ${where.server} (${where.by})`;
  return `${name}: ${first}, ${where.slots} at once; log in ${shortPath(where.data, terminal.cwd)}`;
}

// ------------------------------------------------------------ the live picture

type Live = {
  /** A line, or several, that stay. */
  print(text: string): void;
  refresh(): void;
  ask(question: string | null): void;
  begin(): void;
  /** Takes the picture away. */
  end(): void;
};

function createLive({ terminal, output, lastLine, clock }: ShowParts, runState: () => RunState | null): Live {
  let cancel = (): void => {};
  let isOn = false;
  let drawn = 0;
  let asked: string | null = null;
  // From the first column: a terminal may have printed ^C below the picture.
  const erase = (): string => (drawn === 0 ? "" : `\r\u001b[${drawn}A\u001b[0J`);
  function picture(): readonly string[] {
    const shown = runState();
    if (!isOn || shown === null || shown.isAllOver()) return [];
    const width = terminal.width ?? 80;
    const lines = pictureOf({ runState: shown, now: terminal.now(), paint: output.paint, lastLine, width });
    return asked === null ? lines : [...lines, output.paint("bold", clip(asked, width - 1))];
  }
  function draw(above: string): void {
    const lines = picture();
    const text = `${erase()}${above}${lines.map((line) => `${line}\n`).join("")}`;
    drawn = lines.length;
    if (text !== "") terminal.out(text);
  }
  const refresh = (): void => draw("");
  return {
    print: (text) => draw(`${text}\n`),
    refresh,
    ask(question) {
      asked = question;
      refresh();
    },
    begin() {
      isOn = true;
      refresh();
      cancel = ringEvery(clock, REDRAW_MS, refresh);
    },
    end() {
      cancel();
      isOn = false;
      if (drawn > 0) terminal.out(erase());
      drawn = 0;
    },
  };
}

type PictureParts = {
  readonly runState: RunState;
  readonly now: number;
  readonly width: number;
  readonly paint: Paint;
  readonly lastLine: (id: string) => string;
};

/** What runs, longest first, with children below their parents, and one line of counts. */
export function pictureOf(parts: PictureParts): string[] {
  const { runState, paint, width } = parts;
  const counts = runState.counts();
  const busy = runState.rows.filter(({ state }) => state === "running" || state === "awaiting");
  const sorted = busy.toSorted((left, right) => (left.startedAt ?? 0) - (right.startedAt ?? 0));
  const all = inTree(sorted).map(({ row, depth }) => ({ row, name: indented(row.name, depth) }));
  const shown = all.slice(0, ROWS_MAX);
  const column = nameWidth([...runState.rows.slice(0, counts.all).map(({ name }) => name), ...shown.map(nameOf)]);
  const more = all.slice(ROWS_MAX).filter(({ row }) => row.state === "running").length;
  const text = `${countsText(counts)}${more > 0 ? ` (${more} of the running not shown)` : ""}`;
  const lines = shown.map(({ row, name }) => runningLine(row, name, column, parts));
  if (width < BAR_FROM) return [...lines, paint("dim", clip(`  ${text}`, width - 1))];
  const bar = barOf(endedOf(counts) / Math.max(1, counts.all), BAR_WIDTH);
  return [...lines, fitted(["  ", [bar, "green"], ["  ", null], [text, "dim"]], width - 1, paint).trimEnd()];
}
const endedOf = ({ done, failed, skipped, cancelled }: Counts): number => done + failed + skipped + cancelled;
const nameOf = ({ name }: { readonly name: string }): string => name;

function runningLine(
  row: Row,
  shown: string,
  nameWidth: number,
  { now, width, paint, lastLine }: PictureParts,
): string {
  const name = cell(shown, nameWidth);
  const seconds = Math.max(0, Math.floor((now - (row.startedAt ?? now)) / 1000));
  const isAwaiting = row.state === "awaiting";
  const time = padStart(isAwaiting ? "" : seconds === 0 ? "0s" : span(seconds * 1000), TIME_WIDTH);
  const room = width - 1 - nameWidth - TIME_WIDTH - 6;
  const words = isAwaiting ? [row.why] : [row.round > 1 ? roundText(row) : "", lastLine(row.id)];
  const line = room > 0 ? clip(plain(words.filter((text) => text !== "").join("  ")), room) : "";
  return `${paint("cyan", ">")} ${name}  ${time}  ${paint("dim", line)}`.trimEnd();
}

/** `2 running, 3 done, 1 failed, 4 waiting; children: 1 running, 2 done`. */
function countsText(counts: Counts): string {
  const { children, running } = counts;
  const own = [`${running} running`, ...endedWords(counts)].join(", ");
  if (children.all === 0) return own;
  return `${own}; children: ${[...countWords({ running: children.running }), ...endedWords(children)].join(", ")}`;
}

function endedWords(counts: Counts["children"]): string[] {
  const { done, failed, skipped, cancelled, parked, awaiting, waiting, resting } = counts;
  return countWords({ done, failed, skipped, cancelled, parked, waiting: waiting + resting + awaiting });
}
