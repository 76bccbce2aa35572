/**
 * How a run is shown: a live picture on a terminal, lines in a file or a pipe, JSON for programs.
 *
 * On a terminal the picture is drawn again when something happened and twice a second, for the clocks in it. The three
 * ways say the same things; the run does not know which of them observes it.
 */

import { relative } from "node:path";
import { type Clock, ringEvery } from "../../std/index.ts";
import type { Output } from "../shell/output.ts";
import type { Terminal } from "../shell/terminal.ts";
import { plain, plainLines } from "../shell/text.ts";
import { jsonOf, lineOf, nameWidth } from "./lines.ts";
import { createScreen, pictureOf, type Screen } from "./screen.ts";
import type { RunObserver } from "./session.ts";
import type { RunState } from "./state.ts";

export type Show = RunObserver & {
  /** A line that a command wrote. */
  wrote(id: string, line: string): void;
  end(): void;
};
export type ShowParts = {
  readonly terminal: Terminal;
  readonly output: Output;
  readonly name: string;
  readonly data: string;
  readonly slots: number;
  readonly lastLine: (id: string) => string;
  readonly clock: Pick<Clock, "elapsed" | "ringAt">;
};

const REDRAW_MS = 500;

export function createShow(parts: ShowParts): Show {
  const { terminal, output } = parts;
  let runState: RunState | null = null;
  let width = 0;
  const canRedraw = terminal.width !== null && terminal.env.TERM !== "dumb";
  const live = canRedraw && !output.isJson ? createLive(parts, () => runState) : null;
  const print = (text: string): void => (live === null ? terminal.out(`${text}\n`) : live.screen.print(text));

  return {
    begun(given) {
      runState = given;
      width = nameWidth(given);
      if (output.isJson) output.line(begunJson(given, parts), () => "");
      else print(begunText(given, parts));
      live?.begin();
    },
    happened(fact, row) {
      if (output.isJson) output.line(jsonOf(fact, row), () => "");
      // On a terminal the picture shows what has started.
      else if (live !== null && fact.kind === "started") live.screen.refresh();
      else print(lineOf(fact, row, { paint: output.paint, width }));
    },
    noted(text) {
      if (output.isJson) output.line({ event: "note", text }, () => "");
      else if (live === null) terminal.err(`note: ${plainLines(text)}\n`);
      else print(`${output.paint("yellow", "note:")} ${plainLines(text)}`);
    },
    wrote(id, line) {
      const row = runState?.rows.find((one) => one.id === id);
      if (row === undefined) return;
      if (output.isJson) output.line({ event: "output", task: row.task.name, line }, () => "");
      else print(`${output.paint("cyan", plain(row.task.name))} | ${plain(line.replaceAll("\t", "  "))}`);
    },
    end: () => live?.end(),
  };
}

type Live = { readonly screen: Screen; begin(): void; end(): void };

function createLive({ terminal, output, lastLine, clock }: ShowParts, runState: () => RunState | null): Live {
  let cancel = (): void => {};
  let isOn = false;
  const screen = createScreen(terminal.out, () => {
    const shown = runState();
    if (!isOn || shown === null || shown.isOver()) return [];
    const sizes = { width: terminal.width ?? 80, nameWidth: nameWidth(shown) };
    return pictureOf({ runState: shown, now: terminal.now(), paint: output.paint, lastLine, ...sizes });
  });
  return {
    screen,
    begin() {
      isOn = true;
      screen.refresh();
      cancel = ringEvery(clock, REDRAW_MS, screen.refresh);
    },
    end() {
      cancel();
      isOn = false;
      screen.end();
    },
  };
}

function begunText(runState: RunState, { name, data, slots, terminal }: ShowParts): string {
  const { all, before } = runState.counts();
  const tasks = (count: number): string => (count === 1 ? "1 task" : `${count} tasks`);
  if (before === all) return `${name}: all of it (${tasks(all)}) was done before; --fresh runs it anew.`;
  const short = relative(terminal.cwd, data);
  const log = `log in ${short === "" || short.startsWith("..") ? data : short}`;
  const first = before === 0 ? tasks(all) : `${before} of ${tasks(all)} done before`;
  return `${name}: ${first}, ${slots} at once; ${log}`;
}

function begunJson(runState: RunState, { name, data, slots }: ShowParts): unknown {
  const { all, before } = runState.counts();
  return { event: "begun", plan: name, tasks: all, before, slots, data };
}
