/**
 * How a run is shown: a live picture on a terminal, lines in a file or a pipe, JSON for programs.
 *
 * The picture is a box at the bottom, drawn as those of `drover top` are, again when something happened, up to ten
 * times a second, and twice a second in any case: how far the plan is, and its tree, each task with where it stands,
 * for how long, and the last line it wrote. Whatever else is printed goes above it and stays, so scrolling back shows
 * a plain history, and when the run ends only that is left. No line is longer than the terminal is wide, since a
 * wrapped line could not be drawn over, and the box is lower than any window: where the tree is larger, what runs is
 * shown before what waits, and that before what ended.
 */

import { type Clock, ringEvery } from "../../std/index.ts";
import type { Output } from "../shell/output.ts";
import type { Terminal } from "../shell/terminal.ts";
import { clip, type Paint, padStart, plain, plainLines, shortPath, type Tint } from "../shell/text.ts";
import { type BoxLine, barOf, boxOf, cell } from "../show/box.ts";
import { createCanvas } from "../show/canvas.ts";
import { span } from "../show/time.ts";
import { countWords, indented, jsonOf, lineOf, nameWidth, roundText } from "./lines.ts";
import type { RunObserver } from "./session.ts";
import { type Counts, inTree, type Row, type RowState, type RunState } from "./state.ts";

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
/** Rows of the tree at most, and what stands around them: the edges, the counts, a rule, a question, a line above. */
const ROWS_MAX = 24;
const AROUND = 7;
const HEIGHT_DEFAULT = 24;
const TIME_WIDTH = 6;
const STATE_WIDTH = 9;
const BAR_WIDTH = 16;

type ShownState = RowState | "queued";
const STATES: Readonly<Record<ShownState, readonly [word: string, tint: Tint | null, rank: number]>> = {
  running: ["Running", "cyan", 0],
  awaiting: ["Awaits", "cyan", 0],
  parked: ["Asks", "yellow", 1],
  failed: ["Failed", "red", 2],
  resting: ["Rests", "yellow", 3],
  queued: ["Queued", null, 4],
  waiting: ["Waits", null, 5],
  cancelled: ["Cancelled", "yellow", 6],
  skipped: ["Skipped", "yellow", 6],
  done: ["Done", "green", 7],
};

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

function createLive(parts: ShowParts, runState: () => RunState | null): Live {
  const { terminal, output, name, lastLine, clock } = parts;
  let cancel = (): void => {};
  let isOn = false;
  let asked: string | null = null;
  const canvas = createCanvas({ terminal, clock, picture });
  function picture(): readonly string[] {
    const shown = runState();
    if (!isOn || shown === null || shown.isAllOver()) return [];
    const width = terminal.width ?? 80;
    const rows = Math.max(1, Math.min(ROWS_MAX, (terminal.height ?? HEIGHT_DEFAULT) - AROUND));
    const given = { name, runState: shown, now: terminal.now(), paint: output.paint, lastLine, width, rows };
    const lines = pictureOf(given);
    return asked === null ? lines : [...lines, output.paint("bold", clip(asked, width - 1))];
  }
  return {
    print: canvas.print,
    refresh: canvas.refresh,
    ask(question) {
      asked = question;
      canvas.refresh();
    },
    begin() {
      isOn = true;
      canvas.refresh();
      cancel = ringEvery(clock, REDRAW_MS, canvas.refresh);
    },
    end() {
      cancel();
      isOn = false;
      canvas.flush();
    },
  };
}

type PictureParts = {
  readonly name: string;
  readonly runState: RunState;
  readonly now: number;
  readonly width: number;
  /** How many rows of the tree there is room for. */
  readonly rows: number;
  readonly paint: Paint;
  readonly lastLine: (id: string) => string;
};

/** How far the plan is, and its tree in its own order, children below their parents. */
function pictureOf(parts: PictureParts): string[] {
  const { name, runState, paint, width, rows } = parts;
  const counts = runState.counts();
  const shown = mostTelling(runState, rows);
  const tree = inTree(shown).map(({ row, depth }) => ({ row, shown: indented(row.name, depth) }));
  const column = nameWidth([...runState.rows.slice(0, counts.all).map((row) => row.name), ...tree.map(shownOf)]);
  const more = runState.rows.length - shown.length;
  const bar = barOf(endedOf(counts) / Math.max(1, counts.all), BAR_WIDTH).trimEnd();
  const head: BoxLine = [[bar, "green"], ["░".repeat(BAR_WIDTH - bar.length), "dim"], "  ", countsText(runState)];
  const lines = tree.map((one) => treeLine(one.row, one.shown, column, parts));
  const left: BoxLine[] = more === 0 ? [] : [[[`… ${more} more`, "dim"]]];
  return boxOf(name, [[head], [...lines, ...left]], { width: width - 1, paint });
}
const endedOf = ({ done, failed, skipped, cancelled }: Counts): number => done + failed + skipped + cancelled;
const shownOf = ({ shown }: { readonly shown: string }): string => shown;

/** As many as there is room for, in the order they have. */
function mostTelling(runState: RunState, room: number): readonly Row[] {
  const { rows } = runState;
  if (rows.length <= room) return rows;
  const ranked = rows.map((row) => ({ row, rank: STATES[shownState(row, runState)][2] }));
  ranked.sort((left, right) => left.rank - right.rank);
  const kept = new Set(ranked.slice(0, room - 1).map(({ row }) => row));
  return rows.filter((row) => kept.has(row));
}

const shownState = (row: Row, runState: RunState): ShownState => (runState.isQueued(row) ? "queued" : row.state);

function treeLine(row: Row, shown: string, column: number, { now, lastLine, runState }: PictureParts): BoxLine {
  const { state, startedAt, tookMs, why } = row;
  const [word, tint] = STATES[shownState(row, runState)];
  const whole = (ms: number): string => (ms < 1000 ? "0s" : span(Math.floor(ms / 1000) * 1000));
  const isUnderWay = state === "running" || (state === "awaiting" && startedAt !== null);
  const time = isUnderWay ? whole(now - (startedAt ?? now)) : tookMs === null ? "" : span(tookMs);
  const words = state === "running" ? [row.round > 1 ? roundText(row) : "", lastLine(row.id)] : [why];
  return [
    cell(shown, column),
    "  ",
    [cell(word, STATE_WIDTH), tint],
    [padStart(time, TIME_WIDTH), null],
    ["  ", null],
    [words.filter((text) => text !== "").join("  "), "dim"],
  ];
}

/** `2 running, 3 done, 1 failed, 1 queued, 4 waiting; children: 1 running, 2 done`. */
function countsText(runState: RunState): string {
  const counts = runState.counts();
  const { children, running } = counts;
  const queued = runState.rows.filter(runState.isQueued);
  const ofPlan = queued.filter(({ parent }) => parent === null).length;
  const own = [`${running} running`, ...otherWords(counts, ofPlan)].join(", ");
  if (children.all === 0) return own;
  const words = otherWords(children, queued.length - ofPlan);
  return `${own}; children: ${[...countWords({ running: children.running }), ...words].join(", ")}`;
}

function otherWords(counts: Counts["children"], queued: number): string[] {
  const { done, failed, skipped, cancelled, parked, awaiting, waiting, resting } = counts;
  const others = waiting - queued + resting + awaiting;
  return countWords({ done, failed, skipped, cancelled, parked, queued, waiting: others });
}
