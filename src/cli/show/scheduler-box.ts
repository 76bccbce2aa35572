/**
 * The scheduler box: what is out and for how long, what waits and for how long, and what was done so far.
 *
 *     ┌─ Scheduler ──────────────────────────────────────────┐
 *     │ Running: 10/10  Queued: 5  Rate Limited: No          │
 *     ├──────────────────────────────────────────────────────┤
 *     │ [HIGH] exec-001  Running   2.3s                      │
 *     │ ─────────────────────────────────────────────────────│
 *     │ [LOW]  exec-014  Queued    waiting 2.0s              │
 *     ├──────────────────────────────────────────────────────┤
 *     │ Stats: 1,234 completed | 12 rate limited | avg wait 0.4s, avg run 2.3s
 *     └──────────────────────────────────────────────────────┘
 *
 * A call is named by the task that makes it, unless its caller gave it a name that a person can read. Below the numbers
 * stands what they are of, and the numbers of the other kind.
 *
 * Of the two lists as much is shown as there is room for; each ends with how many more there are.
 */
import type { GateDetail, LineEntry, LineGate, LinePart, LineView, PriorityName } from "../../protocol/index.ts";
import { clipMiddle, type Paint, padEnd, plain, type Tint, widthOf } from "../shell/text.ts";
import { type BoxLine, boxOf, cell } from "./box.ts";
import { gateState, gateTint, isRateLimited, shownTokens } from "./fleet-view.ts";
import { span } from "./time.ts";

export type SchedulerBox = Pick<LinePart, "inFlight" | "maxInFlight" | "queued" | "completed" | "failed"> &
  Pick<LinePart, "avgWaitMs" | "avgRunMs" | "running" | "next"> &
  Pick<LineView, "rateLimited" | "isRateLimited"> & {
    readonly title: string;
    readonly paused?: boolean;
    /** Tasks whose turn has not come: they wait for others or an instant, and are not queued. */
    readonly waiting?: number;
    /** What stands below its numbers. */
    readonly notes?: readonly BoxLine[];
    /** What its lists were filtered by: of others it does not say how many there are. */
    readonly filter?: string;
  };

type BoxSize = {
  readonly width: number;
  /** How many lines the whole box may have. */
  readonly height: number;
  readonly paint: Paint;
  /** The id of the row that is marked. */
  readonly marked?: string | null;
  /** Filled up with empty lines to its height. */
  readonly isFilled?: boolean;
};

/** Edges, head, foot and the lines across. */
const AROUND = 6;
/** On a terminal of so many lines: the last is for the prompt, and a box that shows no row says nothing. */
export const boxHeight = (lines: number): number => Math.max(2 * AROUND, lines - 1);
/** What a box needs besides its rows. */
const around = ({ notes = [] }: SchedulerBox): number => AROUND + notes.length;
const ID_MAX = 36;
const ID_LEAST = 8;
/** What is made up says little: a part of it leaves room for whose it is. */
const ID_MADE_UP_MAX = 20;
/** As wide as `waiting 12.3s` and a little more, so that numbers do not jump. */
const TIME_WIDTH = 15;

/** The calls of the gates where any are out or wait, else the tasks; and how many there are of the other. */
export function lineBox(line: LineView): SchedulerBox {
  const { rateLimited, isRateLimited, paused, calls, tasks, waiting } = line;
  const hasGates = calls.maxInFlight > 0;
  const shown = hasCalls(line)
    ? { ...calls, notes: [noteOf("calls to providers", "Tasks", tasks), ...gateNote(calls)] }
    : { ...tasks, waiting, ...(hasGates ? { notes: [noteOf("tasks", "Calls to providers", calls)] } : {}) };
  return { title: "Scheduler", rateLimited, isRateLimited, paused, ...shown };
}

function noteOf(these: string, others: string, part: LinePart): BoxLine {
  return [[`These are ${these}.  `, "dim"], `${others}: ${outOf(part)} running, ${grouped(part.queued)} queued`];
}

/** Limits of several gates add up to no limit of any: each stands by itself too. */
function gateNote({ gates = [] }: LinePart): BoxLine[] {
  if (gates.length < 2) return [];
  const words = ({ queued, ...gate }: LineGate): string =>
    `${gate.id} ${outOf(gate)}${queued === 0 ? "" : ` +${grouped(queued)} queued`}`;
  return [[["Gates: ", "dim"], gates.map(words).join(", ")]];
}

/** `8/10`. What went out before the limit sank still runs, and is no part of it: `9, limit 1`. */
const outOf = ({ inFlight, maxInFlight }: Pick<LinePart, "inFlight" | "maxInFlight">): string =>
  `${grouped(inFlight)}${inFlight <= maxInFlight ? "/" : ", limit "}${grouped(maxInFlight)}`;

/** Where neither calls nor tasks are under way, what was done last of either is all the same: calls. */
export function hasCalls(line: LineView): boolean {
  const { calls } = line;
  return calls.inFlight + calls.queued > 0 || (!hasTasks(line) && calls.completed > 0);
}

type Placed = { readonly box: SchedulerBox; readonly height: number };
type Placing = {
  /** What of a box is shown. */
  readonly shown?: (box: SchedulerBox) => SchedulerBox;
  /** There is room for both, however many calls there are. */
  readonly isLarge?: boolean;
};
/** A box of tasks that has fewer lines says too little. */
const TASKS_LEAST = 9;

export const hasTasks = ({ tasks }: LineView): boolean => tasks.inFlight + tasks.queued > 0;

/** The box; where it shows calls, below it the tasks: where there is room for both, or in what the calls leave. */
export function boxesOf(
  line: LineView,
  height: number,
  { shown = (box) => box, isLarge = false }: Placing = {},
): readonly Placed[] {
  const box = shown(lineBox(line));
  const isLeft = height - wholeHeight(box) >= TASKS_LEAST && hasTasks(line);
  if (!hasCalls(line) || !(isLarge || isLeft)) return [{ box, height }];
  const tasks = shown({ ...lineBox(line), ...line.tasks, waiting: line.waiting, title: "Tasks", notes: [] });
  const most = isLarge ? Math.max(Math.floor(height / 2), height - wholeHeight(tasks)) : height;
  const upper = Math.min(wholeHeight(box), most);
  return [
    { box, height: upper },
    { box: tasks, height: height - upper },
  ];
}

/** How many lines a box would have that shows all there is. */
function wholeHeight(box: SchedulerBox): number {
  const { inFlight, queued, running, next } = box;
  const rows = Math.max(inFlight, running.length) + Math.max(queued, next.length);
  return around(box) + Math.max(1, rows + (inFlight > 0 && queued > 0 ? 1 : 0));
}

/** One gate, drawn as the scheduler is, with what holds it and what it has used. */
export function gateBox(gate: GateDetail, now: number): SchedulerBox {
  const { id, running, queued, limit, stats, calls } = gate;
  const of = (state: "running" | "queued"): LineEntry[] =>
    calls
      .filter((call) => call.state === state)
      .map(({ state: _, seconds, ...call }) => ({ ...call, ms: Math.round(seconds * 1000) }));
  const mean = (sum: number, count: number): number => (count === 0 ? 0 : sum / count);
  return {
    title: id,
    inFlight: running,
    maxInFlight: limit,
    queued,
    completed: stats.completed,
    rateLimited: stats.rateLimited,
    isRateLimited: isRateLimited(gate),
    avgWaitMs: mean(stats.waitMs, stats.scheduled),
    avgRunMs: mean(stats.serviceMs, stats.completed),
    running: of("running"),
    next: of("queued"),
    notes: gateNotes(gate, now),
  };
}

function gateNotes(gate: GateDetail, now: number): BoxLine[] {
  const { requests, requestsUsed, windowMs, throttles, stats } = gate;
  const tokens = shownTokens(gate, grouped);
  const used = `Requests: ${grouped(requestsUsed)} of ${grouped(requests)} in ${span(windowMs)}`;
  const strikes = throttles === 0 ? "" : `  Throttles: ${grouped(throttles)}`;
  const most = `  At most: ${grouped(stats.peakRunning)} running, ${grouped(stats.peakQueued)} queued`;
  return [
    ["State: ", [gateState(gate, now), gateTint(gate)], `${strikes}${most}`],
    [tokens === "" ? used : `${used}  Tokens: ${tokens}`],
  ];
}

export function schedulerBox(box: SchedulerBox, size: BoxSize): string[] {
  const { width, height, paint, isFilled = false } = size;
  const room = Math.max(0, height - around(box));
  const rows = rowsOf(box, room, size);
  const filled = isFilled ? [...rows, ...Array.from({ length: Math.max(0, room - rows.length) }, () => [])] : rows;
  return boxOf(box.title, [[headOf(box, width - 4), ...(box.notes ?? [])], filled, [statsOf(box, width - 4)]], {
    width,
    paint,
  });
}

/** How many wait is left out where it has no room. */
function headOf({ queued, waiting = 0, isRateLimited, paused, ...box }: SchedulerBox, columns: number): BoxLine {
  const head = `Running: ${outOf(box)}  Queued: ${grouped(queued)}`;
  const later = waiting === 0 ? "" : `, waiting: ${grouped(waiting)}`;
  const limited = "  Rate Limited: ";
  const hasRoom = widthOf(`${head}${later}${limited}Yes  Paused`) <= columns;
  return [
    `${head}${hasRoom ? later : ""}${limited}`,
    isRateLimited ? ["Yes", "red"] : ["No", "green"],
    ...(paused === true ? (["  ", ["Paused", "yellow"]] as const) : []),
  ];
}

/**
 * A number that is cut off is a wrong one, so where there is too little room one is left out: first how often a
 * provider said no, since the head says whether one does now; then the averages.
 */
function statsOf({ completed, failed = 0, rateLimited, avgWaitMs, avgRunMs }: SchedulerBox, columns: number): BoxLine {
  const ended = `Stats: ${grouped(completed)} completed${failed === 0 ? "" : `, ${grouped(failed)} failed`}`;
  const wait = `avg wait ${seconds(avgWaitMs)}`;
  const averages = `${wait}, ${failed === 0 ? "avg " : ""}run ${seconds(avgRunMs)}`;
  const forms = [`${ended} | ${grouped(rateLimited)} rate limited | ${averages}`, `${ended} | ${averages}`];
  return [[...forms, `${ended} | ${wait}`].find((form) => widthOf(form) <= columns) ?? ended];
}

/** Which entries stand in the box, the running ones first. */
export function shownEntries(box: SchedulerBox, height: number): Shown {
  const room = Math.max(0, height - around(box));
  const isFiltered = (box.filter ?? "") !== "";
  const queued = Math.max(isFiltered ? 0 : box.queued, box.next.length);
  const running = Math.max(isFiltered ? 0 : box.inFlight, box.running.length);
  const rule = queued === 0 || running === 0 ? 0 : 1;
  // Those that wait get what the running ones leave, and at least a third.
  const forQueued = Math.min(queued, Math.max(room - rule - running, Math.floor((room - rule) / 3)));
  const forRunning = Math.max(0, room - rule - forQueued);
  return {
    running: partOf(box.running, running, forRunning),
    queued: partOf(box.next, queued, forQueued),
  };
}

type Part = { readonly entries: readonly LineEntry[]; readonly more: number };
type Shown = { readonly running: Part; readonly queued: Part };

/** As many as fit; where there are more, the last line says how many. */
function partOf(entries: readonly LineEntry[], count: number, room: number): Part {
  if (count <= room && entries.length >= count) return { entries, more: 0 };
  const shown = entries.slice(0, Math.max(0, Math.min(room - 1, entries.length)));
  return { entries: shown, more: room <= 0 ? 0 : count - shown.length };
}

function rowsOf(box: SchedulerBox, room: number, { width, marked }: BoxSize): BoxLine[] {
  const { running, queued } = shownEntries(box, room + around(box));
  const inner = width - 4;
  const all = [...running.entries, ...queued.entries];
  const ids = Math.min(
    Math.max(ID_LEAST, inner - 7 - 2 - 10 - TIME_WIDTH),
    all.reduce((widest, entry) => Math.max(widest, wantedBy(nameOf(entry))), ID_LEAST),
  );
  const row = (entry: LineEntry, isRunning: boolean): BoxLine =>
    rowOf(entry, { isRunning, ids, marked: marked ?? null });
  const more = ({ more: count }: Part): BoxLine[] => (count > 0 ? [[[`… ${grouped(count)} more`, "dim"]]] : []);
  const first = [...running.entries.map((entry) => row(entry, true)), ...more(running)];
  const second = [...queued.entries.map((entry) => row(entry, false)), ...more(queued)];
  if (first.length + second.length === 0 && room > 0) return [[[emptyText(box), "dim"]]];
  return first.length === 0 || second.length === 0 ? [...first, ...second] : [...first, "rule", ...second];
}

const emptyText = ({ filter = "" }: SchedulerBox): string =>
  filter === "" ? "Nothing runs, and nothing waits for its turn." : `Nothing here has "${filter}".`;

const CLASSES: Readonly<Record<PriorityName, readonly [word: string, tint: Tint | null]>> = {
  critical: ["[CRIT]", "red"],
  high: ["[HIGH]", "yellow"],
  normal: ["[NORM]", null],
  low: ["[LOW] ", "dim"],
};

/** The id of a call is often one that a program or the engine made up: it is known by its task, and not by that. */
const MADE_UP = /^p\d+$|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}|[0-9a-f]{16}/i;
const wantedBy = (name: string): number => Math.min(MADE_UP.test(name) ? ID_MADE_UP_MAX : ID_MAX, widthOf(plain(name)));
const nameOf = ({ id, task }: LineEntry): string => (task !== undefined && MADE_UP.test(id) ? task : id);

function rowOf(
  entry: LineEntry,
  { isRunning, ids, marked }: { readonly isRunning: boolean; readonly ids: number; readonly marked: string | null },
): BoxLine {
  const { id, class: rank, ms, project, agentId, worker, gate, task, held } = entry;
  const name = nameOf(entry);
  const isMarked = id === marked;
  const time = isRunning ? seconds(ms) : `waiting ${seconds(ms)}`;
  // Who it is of stands behind, as far as there is room.
  const ofCall = [name === task ? undefined : task, named(project), gate];
  const whose =
    task === undefined && gate === undefined
      ? [held && HELD[held], agentId, named(project), worker && `on ${worker}`]
      : ofCall;
  return [
    CLASSES[rank],
    isMarked ? ["▸", "bold"] : " ",
    [padEnd(clipMiddle(plain(name), ids), ids), isMarked ? "bold" : null],
    "  ",
    isRunning ? ["Running   ", "cyan"] : "Queued    ",
    cell(time, TIME_WIDTH),
    ["  ", null],
    [whose.filter((part) => part !== undefined && part !== "").join("  "), "dim"],
  ];
}

const HELD: Readonly<Record<NonNullable<LineEntry["held"]>, string>> = {
  budget: "budget used up",
  "never-fits": "no worker can run it",
  "no-workers": "no worker is here",
};

const named = (project: string): string | undefined => (project === "default" ? undefined : project);

/** `2.3s`, `0.2s`, `3m 20s`. */
export function seconds(ms: number): string {
  const tenths = Math.floor(Math.max(0, ms) / 100);
  return tenths < 600 ? `${(tenths / 10).toFixed(1)}s` : span(ms);
}

/** `1,234`. */
export const grouped = (count: number): string => String(count).replaceAll(/\B(?=(\d{3})+(?!\d))/g, ",");
