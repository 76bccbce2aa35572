/**
 * The tabs with rows: what each lists, by which id a row is marked, and which text a filter looks at.
 *
 * A table is made of the rows that are on the screen and of no others: ten thousand tasks cost what twenty do.
 */
import { stripVTControlCharacters } from "node:util";
import type { GateJson, ProjectView, WorkerView } from "../../protocol/index.ts";
import { USED_UP } from "../../protocol/wire/index.ts";
import { type Column, table } from "../shell/output.ts";
import { clip, type Paint, plain, widthOf } from "../shell/text.ts";
import { barOf } from "../show/box.ts";
import { callsOut, gateState, gateTint, percent, shownBudget, shownTokens, WORKER_TINTS } from "../show/fleet-view.ts";
import { taskColumns } from "../show/task-view.ts";
import { count, span } from "../show/time.ts";
import type { Picture, Tab } from "./picture.ts";

type TableTab = Exclude<Tab, "scheduler" | "events">;
export type TableSize = {
  readonly width: number;
  readonly height: number;
  readonly paint: Paint;
  readonly now: number;
};

const BAR = 10;
const BUDGET_BAR = 5;
/** Of the tasks at 80 columns: so there is room for what each is of, what it does and how old it is. */
const NARROW = { ids: 16, notes: 16 };
const used = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);

const BUDGET = { least: BUDGET_BAR + 5, leaves: 3 } as const;
const projectColumns: readonly Column<ProjectView>[] = [
  { title: "PROJECT", of: ({ id }) => id, stays: true, shrinks: "last", least: 12 },
  { title: "STATUS", of: ({ status }) => (status === "active" ? "" : status), tint: () => "yellow" },
  { title: "WEIGHT", of: ({ weight }) => String(weight), align: "right", leaves: 4 },
  { title: "SHARE", of: shareBar, tint: () => "cyan", least: 13, leaves: 2 },
  { title: "TARGET", of: ({ target }) => percent(target), align: "right", leaves: 5 },
  { title: "TO RUN", of: ({ queued }) => count(queued), align: "right" },
  { title: "RUNNING", of: ({ inFlight }) => count(inFlight), align: "right" },
  { title: "BUDGET", of: burntBar, tint: (project) => (burnt(project) >= USED_UP ? "red" : "yellow"), ...BUDGET },
  { title: "TOKENS", of: shownBudget, shrinks: true, least: 20, leaves: 6 },
];
function shareBar({ share }: ProjectView): string {
  return `${barOf(share, BAR - 2)}${percent(share).padStart(5)}`;
}
const burnt = ({ budget, spent, reserved }: ProjectView): number =>
  budget.limit === null ? 0 : used(spent + reserved, budget.limit);
function burntBar(project: ProjectView): string {
  return project.budget.limit === null
    ? ""
    : `${barOf(burnt(project), BUDGET_BAR)}${percent(burnt(project)).padStart(5)}`;
}

const workerColumns: readonly Column<WorkerView>[] = [
  { title: "WORKER", of: ({ id }) => id, stays: true, shrinks: "last", least: 12 },
  { title: "STATUS", of: ({ status }) => status, tint: ({ status }) => WORKER_TINTS[status], stays: true, least: 11 },
  { title: "SLOTS", of: ({ inFlight, slots }) => barOf(used(inFlight, slots), BAR), tint: () => "cyan", leaves: 3 },
  { title: "BUSY", of: ({ inFlight, slots }) => `${inFlight} of ${slots}`, align: "right", least: 6 },
  { title: "KIND", of: ({ kind }) => kind, least: 5, leaves: 7 },
  { title: "ZONE", of: ({ zone }) => zone ?? "", shrinks: true, least: 6, leaves: 8 },
  { title: "CAPABILITIES", of: ({ capabilities }) => capabilities.join(", "), shrinks: true, leaves: 4 },
  { title: "NOTE", of: workerNote, shrinks: true, least: 11, leaves: 2 },
];
/** Why it takes nothing, or what it is kept free for. */
function workerNote({ note, heldFor }: WorkerView): string {
  return note ?? (heldFor === undefined ? "" : `held for ${heldFor}`);
}

const gateColumns = (now: number): readonly Column<GateJson>[] => [
  { title: "GATE", of: ({ id }) => id, stays: true, shrinks: "last", least: 17 },
  {
    title: "STATE",
    of: (gate) => gateState(gate, now),
    tint: gateTint,
    stays: true,
    shrinks: true,
    least: 25,
  },
  { title: "OUT", of: callsOut, align: "right", least: 6 },
  { title: "WAITING", of: ({ queued }) => count(queued), align: "right" },
  {
    title: "WINDOW",
    of: ({ requests, requestsUsed }) => barOf(used(requestsUsed, requests), BAR),
    tint: () => "cyan",
    leaves: 6,
  },
  {
    title: "REQUESTS",
    of: ({ requests, requestsUsed, windowMs }) => `${count(requestsUsed)} of ${count(requests)} in ${span(windowMs)}`,
    least: 16,
    leaves: 4,
  },
  { title: "THROTTLES", of: ({ throttles }) => (throttles === 0 ? "" : String(throttles)), align: "right", leaves: 3 },
  { title: "TOKENS", of: (gate) => shownTokens(gate), shrinks: true, least: 20, leaves: 5 },
];

/** The rows of a tab that the filter lets through. */
export function rowsIn(tab: TableTab, picture: Picture, filter: string): readonly { readonly id: string }[] {
  // Until the server has searched, those that are here are.
  if (tab === "tasks")
    return filtered(
      picture.tasks ?? [],
      picture.tasksFilter === filter ? "" : filter,
      ({ taskId, state, project, agentId, action, type, worker, error }) =>
        [taskId, state, project, agentId, action, type, worker, error].join(" "),
    ).map((task) => ({ ...task, id: task.taskId }));
  if (tab === "projects") return filtered(picture.projects ?? [], filter, ({ id, status }) => `${id} ${status}`);
  if (tab === "workers")
    return filtered(picture.workers ?? [], filter, ({ id, status, capabilities }) =>
      [id, status, ...capabilities].join(" "),
    );
  return filtered(picture.gates ?? [], filter, ({ id, held }) => `${id} ${held ?? ""}`);
}

export function filtered<Row>(rows: readonly Row[], filter: string, textOf: (row: Row) => string): readonly Row[] {
  const wanted = filter.toLowerCase();
  return wanted === "" ? rows : rows.filter((row) => textOf(row).toLowerCase().includes(wanted));
}

/** What the screen shows of a list: those around the one that is marked. */
export function windowOf<Row extends { readonly id: string }>(
  rows: readonly Row[],
  marked: string | null,
  height: number,
): { readonly from: number; readonly rows: readonly Row[] } {
  const at = rows.findIndex(({ id }) => id === marked);
  const from = Math.max(0, Math.min(at - Math.floor(height / 2), rows.length - height));
  return { from, rows: rows.slice(from, from + Math.max(0, height)) };
}

const EMPTY: Readonly<Record<TableTab, string>> = {
  tasks: "No tasks here.",
  projects: "No project yet: the first task of one creates it.",
  workers: "No worker is here.",
  gates: "No gate yet: the first permit that is asked for creates one.",
};

/** The lines of a tab, in exactly so many rows. */
export function tableLines(
  tab: TableTab,
  picture: Picture,
  {
    filter,
    marked,
    width,
    height,
    paint,
    now,
  }: TableSize & { readonly filter: string; readonly marked: string | null },
): string[] {
  if (picture[tab] === null) return ["…"];
  const all = rowsIn(tab, picture, filter);
  if (all.length === 0) return [filter === "" ? EMPTY[tab] : `Nothing here has "${plain(filter)}".`];
  const isCutOff = tab === "tasks" && picture.hasMoreTasks;
  const needsMore = isCutOff || all.length > height - 1;
  const shown = windowOf(all, marked, needsMore ? height - 2 : height - 1);
  const columns = {
    tasks: taskColumns(now, NARROW),
    projects: projectColumns,
    workers: workerColumns,
    gates: gateColumns(now),
  };
  const text = table(shown.rows, columns[tab] as unknown as readonly Column<{ readonly id: string }>[], {
    width: width - 2,
    paint,
    isSteady: true,
  });
  const [head = "", ...lines] = text.trimEnd().split("\n");
  const left = all.length - shown.rows.length;
  return [
    `  ${head}`,
    ...lines.map((line, at) => (shown.rows[at]?.id === marked ? `${paint("bold", "▸")} ${line}` : `  ${line}`)),
    ...(needsMore ? [paint("dim", `  … ${isCutOff ? "over " : ""}${count(left)} more`)] : []),
  ];
}

/** A line with colours in it, in exactly so many columns. */
export function padded(line: string, columns: number): string {
  const bare = stripVTControlCharacters(line);
  const width = widthOf(bare);
  return width > columns ? clip(bare, columns) : line + " ".repeat(columns - width);
}
