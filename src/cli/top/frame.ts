/**
 * A frame of `drover top`: what is known and what was chosen, as lines of exactly the size of the screen.
 *
 * It reads no clock and asks no server, so that a stored frame says whether it still looks as it did.
 */
import type { LineEntry } from "../../protocol/index.ts";
import { clip, type Paint, plain, widthOf, wrapLine } from "../shell/text.ts";
import { type BoxLine, barOf, boxOf, cell, fitted } from "../show/box.ts";
import { gateState, gateTint, percent } from "../show/fleet-view.ts";
import { boxesOf, grouped, type SchedulerBox, schedulerBox, shownEntries } from "../show/scheduler-box.ts";
import { span } from "../show/time.ts";
import { eventLine } from "../verbs/events.ts";
import { type Picture, type Size, TABS, type Tab, type View } from "./picture.ts";
import { filtered, padded, rowsIn, tableLines } from "./tables.ts";

export type FrameParts = {
  readonly picture: Picture;
  readonly view: View;
  readonly size: Size;
  readonly now: number;
  readonly url: string;
  readonly paint: Paint;
};

/** A message that is longer than a line goes on, so far. */
const FOOT_MAX = 3;
/** From here on there is room beside the box. */
export const WIDE = 120;
/** From here on there is room for calls and tasks. */
const HIGH = 36;
const SIDE_MIN = 44;
const SIDE_MAX = 64;
const BOX_MAX = 96;

const NAMES: Readonly<Record<Tab, string>> = {
  scheduler: "Scheduler",
  tasks: "Tasks",
  projects: "Projects",
  workers: "Workers",
  gates: "Gates",
  events: "Events",
};

export function frameOf(parts: FrameParts): string[] {
  const { size } = parts;
  const height = bodyHeight(parts);
  const body = bodyOf(parts, height).slice(0, height);
  const filled = [...body, ...Array.from({ length: Math.max(0, height - body.length) }, () => "")];
  return [barLine(parts), ...troubleLines(parts), ...filled, ...footLines(parts)].slice(0, size.rows);
}

/** What the bar at the top, what is wrong, and the foot leave. */
function bodyHeight(parts: Seen): number {
  const above = parts.picture.node.trouble === null ? 1 : 2;
  return Math.max(1, parts.size.rows - above - footRows(parts).length);
}

/** How much of a text over the tab is seen at once. */
export const panelRows = (parts: Seen): number => Math.max(1, bodyHeight(parts) - 2);

function bodyOf(parts: FrameParts, height: number): string[] {
  const { view, picture, size, paint } = parts;
  if (view.panel !== null) return panelOf(view.panel, { width: size.columns, height, paint });
  if (view.tab === "scheduler") return schedulerTab(parts, height);
  const lines =
    view.tab === "events"
      ? eventLines(parts, height - 2)
      : tableLines(view.tab, picture, {
          filter: view.filter,
          marked: view.marked,
          now: parts.now,
          paint,
          width: size.columns - 4,
          height: height - 2,
        });
  return framed(NAMES[view.tab], lines, { width: size.columns, height, paint });
}

/** Lines that have colours already, in a box of exactly this size. */
function framed(
  title: string,
  lines: readonly string[],
  { width, height, paint }: { readonly width: number; readonly height: number; readonly paint: Paint },
): string[] {
  const [top = "", bottom = ""] = boxOf(title, [], { width, paint });
  const edge = paint("dim", "│");
  const rows = Array.from({ length: Math.max(0, height - 2) }, (_, at) => padded(lines[at] ?? "", width - 4));
  return [top, ...rows.map((row) => `${edge} ${row} ${edge}`), bottom];
}

const panelOf = (
  { title, lines, top }: NonNullable<View["panel"]>,
  size: { readonly width: number; readonly height: number; readonly paint: Paint },
): string[] => framed(title, lines.slice(top), size);

// ------------------------------------------------------------------ the scheduler

/** A box as it is drawn: what was read, aged by the time since, and what the filter lets through. */
function shownBox(box: SchedulerBox, { picture, view, now }: Seen): SchedulerBox {
  const passed = picture.lost === null ? Math.max(0, now - picture.at) : 0;
  const shown = (entries: readonly LineEntry[]): LineEntry[] =>
    filtered(entries, view.filter, (entry) => Object.values(entry).join(" ")).map((entry) => ({
      ...entry,
      ms: entry.ms + passed,
    }));
  return { ...box, running: shown(box.running), next: shown(box.next), filter: view.filter };
}
export type Seen = Pick<FrameParts, "picture" | "view" | "now" | "size">;

/** On a high screen there is room for calls and tasks. */
const boxesIn = (parts: Seen, height: number): ReturnType<typeof boxesOf> =>
  boxesOf(parts.picture.line, height, {
    shown: (box) => shownBox(box, parts),
    isLarge: parts.size.columns >= WIDE && height >= HIGH,
  });

function schedulerTab(parts: FrameParts, height: number): string[] {
  const { size, paint, view } = parts;
  const isWide = size.columns >= WIDE;
  const side = isWide ? Math.max(SIDE_MIN, Math.min(SIDE_MAX, size.columns - BOX_MAX)) : 0;
  const width = isWide ? size.columns - side - 1 : size.columns;
  const lines = boxesIn(parts, height).flatMap((placed) =>
    schedulerBox(placed.box, { width, height: placed.height, paint, marked: view.marked, isFilled: true }),
  );
  if (!isWide) return lines;
  const beside = sideOf(parts, side, height);
  return lines.map((line, at) => `${line} ${beside[at] ?? ""}`);
}

/** Projects, gates and workers at a glance, each in as many rows as there are, as far as there is room. */
function sideOf({ picture, paint, now }: FrameParts, width: number, height: number): string[] {
  const inner = width - 4;
  const named = [...(picture.projects ?? []), ...(picture.gates ?? []), ...(picture.workers ?? [])];
  const longest = named.reduce((most, { id }) => Math.max(most, widthOf(plain(id))), 8);
  const name = Math.min(longest, inner - 32);
  const projects = (picture.projects ?? []).map(
    ({ id, share, target, queued }): BoxLine => [
      `${cell(id, name)} `,
      [barOf(share, 8), "cyan"],
      ` ${percent(share).padStart(5)} of ${percent(target).padEnd(4)} ${grouped(queued).padStart(4)}`,
    ],
  );
  const gates = (picture.gates ?? []).map((gate): BoxLine => {
    const share = gate.requests === 0 ? 0 : gate.requestsUsed / gate.requests;
    return [`${cell(gate.id, name)} `, [barOf(share, 8), "cyan"], [` ${gateState(gate, now)}`, gateTint(gate)]];
  });
  const workers = (picture.workers ?? []).map(
    ({ id, inFlight, slots, status }): BoxLine => [
      `${cell(id, name)} `,
      [barOf(slots === 0 ? 0 : inFlight / slots, 8), "cyan"],
      ` ${`${inFlight}/${slots}`.padStart(6)}  `,
      [status, status === "unreachable" ? "red" : "dim"],
    ],
  );
  const boxes = [
    { title: "Projects: share of target, to run", rows: projects, none: picture.projects && "none yet" },
    { title: "Gates: requests in the window", rows: gates, none: picture.gates && "none yet" },
    { title: "Workers: slots", rows: workers, none: picture.workers && "none is here" },
  ];
  let left = height;
  return boxes.flatMap(({ title, rows, none }, at) => {
    const isLast = at === boxes.length - 1;
    const fair = Math.floor(left / (boxes.length - at));
    const room = Math.max(1, (isLast ? left : fair) - 2);
    const lines = rows.length === 0 ? [[[none ?? "…", "dim"] as const]] : limited(rows, room);
    const filled = isLast ? [...lines, ...Array.from({ length: Math.max(0, room - lines.length) }, () => [])] : lines;
    left -= filled.length + 2;
    return boxOf(title, [filled], { width, paint });
  });
}

const limited = (rows: readonly BoxLine[], room: number): readonly BoxLine[] =>
  rows.length <= room ? rows : [...rows.slice(0, room - 1), [[`… ${rows.length - room + 1} more`, "dim"]]];

// ------------------------------------------------------------------ events

function eventLines({ picture, view, size, paint }: FrameParts, height: number): string[] {
  if (picture.eventsRefused !== null) return [plain(picture.eventsRefused)];
  if (picture.events === null) return ["…"];
  const all = filtered(picture.events, view.filter, ({ kind, task, payload }) =>
    [kind, task, JSON.stringify(payload)].join(" "),
  );
  if (all.length === 0)
    return [view.filter === "" ? "Nothing has happened yet." : `Nothing here has "${plain(view.filter)}".`];
  return all.slice(-height).map((event) => eventLine(event, { paint, width: size.columns - 4 }));
}

// ------------------------------------------------------------------ the bar and the keys

function barLine({ view, size, url, paint, picture }: FrameParts): string {
  const tabs = TABS.flatMap((tab) => [
    " ",
    tab === view.tab ? ([`[${NAMES[tab]}]`, "bold"] as const) : ([` ${NAMES[tab]} `, "dim"] as const),
  ]);
  const left = TABS.reduce((sum, tab) => sum + NAMES[tab].length + 3, 0);
  const where = whereOf(url, Math.max(0, size.columns - left - 2));
  const gap = Math.max(1, size.columns - left - widthOf(where) - 1);
  return fitted([...tabs, " ".repeat(gap), [where, picture.lost === null ? "dim" : "red"]], size.columns, paint);
}

/** Of several addresses all, or the first and how many more there are. */
function whereOf(url: string, room: number): string {
  const [first = "", ...others] = url.split(",").map((one) => plain(one.replace(/^https?:\/\//, "")));
  const all = [first, ...others].join(", ");
  return clip(others.length === 0 || widthOf(all) <= room ? all : `${first} and ${others.length} more`, room);
}

/** What is shown is not as it seems: that stands above all of it, and nothing does where all is well. */
function troubleLines({ picture, size, paint }: FrameParts): string[] {
  const { trouble } = picture.node;
  return trouble === null ? [] : [fitted([[` ${clip(plain(trouble), size.columns - 2)}`, "red"]], size.columns, paint)];
}

const KEYS = "q quit  Tab next  / filter  w why  l log  c cancel  r retry  p pause  ? help";

type Foot = { readonly text: string; readonly tint: "red" | "yellow" | "dim" | "green" | null };

function footOf({ view, picture, now }: Seen): Foot {
  if (view.asked !== null) return { text: `${view.asked.question} y/n`, tint: "yellow" };
  if (view.isTyping) return { text: `/${view.filter}▏  Enter keeps it, Esc clears it`, tint: null };
  if (picture.lost?.isRefusal) return { text: `The server refuses, trying again: ${picture.lost.why}`, tint: "red" };
  if (picture.lost !== null) {
    const since = span(Math.max(0, now - picture.lost.since));
    return { text: `The server is gone for ${since}, trying again: ${picture.lost.why}`, tint: "red" };
  }
  if (view.said !== null) return { text: view.said.text, tint: view.said.isBad ? "red" : "green" };
  if (view.panel !== null) return { text: "Esc back  ↑↓ scroll  q quit", tint: "dim" };
  const text = view.filter === "" ? KEYS : `filter: ${view.filter}  (/ changes it, Esc clears it)`;
  return { text, tint: "dim" };
}

/** What was said is read to its end; the keys are known after a while. */
function footRows(parts: Seen): readonly string[] {
  const { text, tint } = footOf(parts);
  return tint === "dim" ? [text] : wrapLine(plain(text), Math.max(1, parts.size.columns - 2)).slice(0, FOOT_MAX);
}

function footLines(parts: FrameParts): string[] {
  const { tint } = footOf(parts);
  return footRows(parts).map((row) => fitted([[` ${row}`, tint]], parts.size.columns, parts.paint));
}

// ------------------------------------------------------------------ what can be marked

/** The ids on the screen, in their order, and the task behind each, if there is one. */
export function markable(parts: Seen): readonly Marked[] {
  const { picture, view } = parts;
  if (view.tab === "events") return [];
  if (view.tab === "scheduler") {
    const entries = boxesIn(parts, bodyHeight(parts)).flatMap(({ box, height }) => {
      const { running, queued } = shownEntries(box, height);
      return [...running.entries, ...queued.entries];
    });
    return entries.map(({ id, gate, task }) => ({ id, task: gate === undefined ? id : (task ?? null) }));
  }
  const isTask = view.tab === "tasks";
  return rowsIn(view.tab, picture, view.filter).map(({ id }) => ({ id, task: isTask ? id : null }));
}
export type Marked = { readonly id: string; readonly task: string | null };
