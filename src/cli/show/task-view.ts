/**
 * Tasks for people: a table of many, a list of everything about one.
 */
import type { Round, TaskState, TaskView, UsageView } from "../../protocol/index.ts";
import type { Column, Output } from "../shell/output.ts";
import { plainLines, type Tint, wrapLine } from "../shell/text.ts";
import { age, bytes, count, lasted, cost as shownCost, span } from "./time.ts";

const TINTS: Readonly<Record<TaskState, Tint | null>> = {
  waiting: "dim",
  queued: null,
  assigned: "cyan",
  running: "cyan",
  parked: "yellow",
  done: "green",
  failed: "red",
  cancelled: "yellow",
  skipped: "yellow",
  rejected: "red",
};

export const tintOf = (state: TaskState): Tint | null => TINTS[state];

/** A longer id is cut in its middle rather than that there is no room for anything else. */
const ID_LEAST = 28;
/** Why a task failed is worth more than where it ran. */
const NOTE_LEAST = 24;

export function taskColumns(
  now: number,
  { ids = ID_LEAST, notes = NOTE_LEAST }: { readonly ids?: number; readonly notes?: number } = {},
): readonly Column<TaskView>[] {
  return [
    { title: "ID", of: ({ taskId }) => taskId, stays: true, shrinks: "last", least: ids },
    { title: "STATE", of: ({ state }) => state, tint: ({ state }) => tintOf(state), stays: true, least: 9 },
    { title: "PROJECT", of: ({ project }) => (project === "default" ? "" : (project ?? "")), shrinks: true, leaves: 3 },
    { title: "AGENT", of: ({ agentId }) => agentId ?? "", shrinks: true, leaves: 7 },
    { title: "ACTION", of: ({ action }) => action ?? "", shrinks: true, leaves: 1 },
    { title: "TRY", of: ({ attempt }) => (attempt > 1 ? String(attempt) : ""), align: "right", leaves: 5 },
    { title: "WORKER", of: ({ worker }) => worker ?? "", shrinks: true, leaves: 9 },
    { title: "AGE", of: ({ createdAt }) => lasted(createdAt, undefined, now), align: "right", least: 6, leaves: 2 },
    {
      title: "TOOK",
      of: ({ startedAt, completedAt }) => lasted(startedAt, completedAt, now),
      align: "right",
      least: 6,
      leaves: 6,
    },
    { title: "TOKENS", of: ({ usage }) => tokensOf(usage), align: "right", leaves: 4 },
    { title: "COST", of: ({ usage }) => shownCost(usage?.cost), align: "right", leaves: 8 },
    { title: "NOTE", of: (task) => noteOf(task, now), shrinks: true, least: notes },
  ];
}

/** The one thing about a task that does not show in its state. */
function noteOf({ error, position, progress, state, approval, held, heldUntil }: TaskView, now: number): string {
  if (error !== undefined) return error;
  if (state === "parked") return approval?.question === undefined ? "" : `asks: ${approval.question}`;
  if (held === "budget") return `budget used up${heldUntil === undefined ? "" : `, more ${age(heldUntil, now)}`}`;
  if (held === "never-fits") return "no worker here can run it";
  if (held === "no-workers") return "no worker is here";
  if (position !== undefined) return `number ${position} in line`;
  return typeof progress === "string" ? progress : "";
}

export const taskTable = (tasks: readonly TaskView[], output: Output): string =>
  output.table(tasks, taskColumns(output.now()));

/** Tasks under their parents, as far as those are among them, and what people compare of a tree. */
export function taskTree(tasks: readonly TaskView[], output: Output): string {
  const known = new Set(tasks.map(({ taskId }) => taskId));
  const below = new Map<string | undefined, TaskView[]>();
  for (const task of tasks) {
    const parent = task.parent !== undefined && known.has(task.parent) ? task.parent : undefined;
    below.set(parent, [...(below.get(parent) ?? []), task]);
  }
  const rows: Branch[] = [];
  const open: Branch[] = (below.get(undefined) ?? []).map((task) => ({ task, level: 0 })).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { task, level } = next;
    rows.push(next);
    open.push(...(below.get(task.taskId) ?? []).map((child) => ({ task: child, level: level + 1 })).reverse());
  }
  return output.table(rows, treeColumns(output.now()));
}

type Branch = { readonly task: TaskView; readonly level: number };

const treeColumns = (now: number): readonly Column<Branch>[] => [
  { title: "ID", of: ({ task, level }) => `${"  ".repeat(level)}${task.taskId}`, stays: true },
  { title: "STATE", of: ({ task }) => task.state, tint: ({ task }) => tintOf(task.state), stays: true },
  { title: "ACTION", of: ({ task }) => task.action ?? "", shrinks: true },
  { title: "TRY", of: ({ task }) => (task.attempt > 1 ? String(task.attempt) : ""), align: "right" },
  { title: "TOOK", of: ({ task }) => lasted(task.startedAt, task.completedAt, now), align: "right" },
  { title: "TOKENS", of: ({ task }) => tokensOf(task.usage), align: "right" },
  { title: "NOTE", of: ({ task }) => noteOf(task, now), shrinks: true },
];

const instant = (at: string | undefined, now: number): string | undefined =>
  at === undefined ? undefined : `${at} (${age(at, now)})`;

const text = (value: string | number | undefined): string | undefined =>
  value === undefined ? undefined : String(value);
const names = (list: readonly string[] | undefined): string | undefined => list?.join(", ");

const needsOf = ({ needs }: TaskView): string | undefined =>
  names(Array.isArray(needs) ? needs : needs && Object.entries(needs).map(([name, id]) => `${id} (as ${name})`));

/** Those that are charged. */
export const tokensOf = (usage: UsageView | undefined): string =>
  usage === undefined ? "" : count(usage.inputTokens + usage.outputTokens);

export function usageOf({ inputTokens, outputTokens, cachedTokens, cost }: UsageView): string {
  const cached = cachedTokens === 0 ? "" : `, ${count(cachedTokens)} from a cache`;
  const price = cost === undefined ? "" : `; cost ${shownCost(cost)}`;
  return `${count(inputTokens)} tokens in, ${count(outputTokens)} out${cached}${price}`;
}

const labelsOf = ({ labels }: TaskView): string | undefined =>
  labels === undefined ? undefined : names(Object.entries(labels).map(([key, value]) => `${key}=${value}`));

const filesOf = ({ files }: TaskView): string | undefined =>
  files === undefined ? undefined : names(files.map(({ path, size }) => `${path} (${bytes(size)})`));

/** Of a task whose record has expired (resultTtl) it may not be known any more: it has an end and no latency. */
function attemptOf({ state, attempt, worker, completedAt, latencyMs }: TaskView): string {
  if (attempt > 0) return `${attempt}${worker === undefined ? "" : ` on ${worker}`}`;
  const isExpired = completedAt !== undefined && latencyMs === undefined && state !== "rejected";
  return isExpired ? "not known any more; the record of this task has expired" : "none";
}

/** The limit is on its own failures, and the number of an attempt counts all of them. */
function attemptsMaxOf({ attempt, maxAttempts }: TaskView): string | undefined {
  if (maxAttempts === undefined) return undefined;
  const counted = `at most ${maxAttempts}`;
  return attempt <= maxAttempts ? counted : `${counted}; only those that fail by themselves count`;
}

/** With what waiting has made of it, where that is something else. */
function priorityOf({ priority, effectivePriority }: TaskView): string | undefined {
  if (effectivePriority === undefined || effectivePriority === (priority ?? 0)) return text(priority);
  return typeof priority === "string"
    ? `${priority} (${effectivePriority})`
    : `${priority ?? 0}, now ${effectivePriority}`;
}

/**
 * Everything about one task, and what it waits for although it runs; what is unset is left out. Results and payloads
 * come last, since they may be long.
 */
export function taskDetails(task: TaskView, output: Output, waitsFor: readonly string[] = []): string {
  const now = output.now();
  const head = output.list([
    ["task", task.taskId],
    ["state", task.state, tintOf(task.state)],
    ["error", task.error, "red"],
    ...waitsFor.map((detail) => ["waits", detail, "yellow"] as const),
    ["branch", task.branch],
    ["action", task.action],
    ["agent", task.agentId],
    ["project", task.project],
    ["type", task.type],
    ["priority", priorityOf(task)],
    ["score", text(task.score)],
    ["depth", task.depth === 0 ? undefined : text(task.depth)],
    ["position", text(task.position)],
    ["attempt", attemptOf(task)],
    ["created", instant(task.createdAt, now)],
    ["runnable", instant(task.runnableAt, now)],
    ["started", instant(task.startedAt, now)],
    ["ended", instant(task.completedAt, now)],
    ["took", lasted(task.startedAt, task.completedAt, now)],
    ["in all", task.latencyMs === undefined ? undefined : `${span(task.latencyMs)} from submit to end`],
    ["deadline", instant(task.deadline, now)],
    ["not before", instant(task.notBefore, now)],
    ["parent", task.parent],
    ["children", childrenOf(task)],
    ["group", task.group],
    ["needs", needsOf(task)],
    ["artifact", task.inputArtifact],
    ["outputs", names(task.outputs)],
    ["files", filesOf(task)],
    ["capabilities", names(task.capabilities)],
    ["locks", names(task.locks)],
    ...resourceRows(task),
    ["zone", task.zone],
    ["provider", task.provider],
    ["tokens", task.estimatedTokens === undefined ? undefined : `${count(task.estimatedTokens)} estimated`],
    ["used", task.usage && usageOf(task.usage)],
    ...attemptRows(task),
    ["tab", task.tabId],
    ["ref", task.ref],
    ["selector", task.selector],
    ["iteration", text(task.iteration)],
    ["attempts", attemptsMaxOf(task)],
    ["timeout", task.timeoutMs === undefined ? undefined : span(task.timeoutMs)],
    ["on loss", task.onLoss],
    ["on dependency failure", task.onDependencyFailure],
    ["callback", task.callbackUrl],
    ["labels", labelsOf(task)],
    ["approval", approvalOf(task, now), "yellow"],
    ["loop", loopOf(task)],
    ...(task.rounds ?? []).map(roundRow),
  ]);
  const values = (["progress", "params", "payload", "result"] as const)
    .filter((key) => task[key] !== undefined)
    .map((key) => `${output.paint("dim", key)}\n${indented(shownValue(task[key]), output.width)}`);
  return head + values.join("");
}

function childrenOf({ children, wait }: TaskView): string | undefined {
  const waits = wait === undefined ? "" : "it waits for all below it";
  if (children === undefined) return waits === "" ? undefined : `none; ${waits}`;
  const open = `${count(children.total)}; ${count(children.open)} below it have not ended`;
  return waits === "" ? open : `${open}, and ${waits}`;
}

function approvalOf({ approval, state }: TaskView, now: number): string | undefined {
  if (approval === undefined) return undefined;
  const { question, until, at, note } = approval;
  const asked = question === undefined ? "" : `: ${plainLines(question)}`;
  if (at !== undefined) return `given ${instant(at, now)}${note === undefined ? "" : `: ${plainLines(note)}`}`;
  const by = until === undefined ? "" : `, to be answered by ${instant(until, now)}`;
  return state === "parked" ? `asked for${asked}${by}` : `needed${asked}`;
}

function loopOf({ loop }: TaskView): string | undefined {
  if (loop === undefined) return undefined;
  const most = `at most ${loop.max} rounds`;
  return loop.until === undefined ? most : `until ${loop.until}; ${most}`;
}

function roundRow({ outcome, note, usage }: Round, index: number): readonly [string, string] {
  const used = usage === undefined ? "" : `, ${roundUsage(usage)}`;
  return [`round ${index + 1}`, `${outcome}${used}${note === undefined ? "" : `: ${plainLines(note)}`}`];
}

/** In detail where its worker said so. */
function roundUsage({ tokens, inputTokens, outputTokens, cachedTokens, cost }: Round["usage"] & {}): string {
  if (inputTokens === undefined || outputTokens === undefined || cachedTokens === undefined)
    return `${count(tokens)} tokens`;
  return usageOf({ inputTokens, outputTokens, cachedTokens, ...(cost === undefined ? {} : { cost }) });
}

type Row = readonly [name: string, value: string | undefined];

const resourceRows = ({ resources }: TaskView): Row[] => [
  ["cpu", resources?.cpuMillicores === undefined ? undefined : `${resources.cpuMillicores / 1000} cores`],
  ["memory", resources?.memoryBytes === undefined ? undefined : bytes(resources.memoryBytes)],
];

/** What each attempt used, where that is not what the task or its rounds say. */
const attemptRows = ({ attempts = [], rounds }: TaskView): (readonly [string, string])[] =>
  attempts.length < 2 || rounds !== undefined
    ? []
    : attempts.map(({ attempt, worker, usage }) => [
        `attempt ${attempt}`,
        `${worker === undefined ? "" : `on ${worker}: `}${usageOf(usage)}`,
      ]);

/** A text as it is, anything else as JSON. */
export const shownValue = (value: unknown): string =>
  plainLines(typeof value === "string" ? value : JSON.stringify(value, null, 2));

const INDENT = "  ";

/** Each line a little further in; on a terminal, one that is too long goes on below itself. */
function indented(block: string, width: number | null): string {
  const lines = block.trimEnd().split("\n");
  const shown = lines.flatMap((line) => wrapLine(INDENT + line, width ?? Number.POSITIVE_INFINITY, INDENT));
  return `${shown.join("\n")}\n`;
}

/** One line about how a task stands, for progress. */
export function taskLine(task: TaskView, output: Output): string {
  const state = output.paint(tintOf(task.state) ?? "bold", task.state);
  const ran = lasted(task.startedAt, task.completedAt, output.now());
  const where = task.worker === undefined ? "" : ` on ${task.worker}`;
  const note = noteOf(task, output.now());
  const parts = [
    task.state === "running" || task.state === "assigned" ? `attempt ${task.attempt}${where}` : "",
    task.completedAt !== undefined && ran !== "" ? `ran ${ran}${where}` : "",
    note,
  ].filter((part) => part !== "");
  return `${task.taskId} ${state}${parts.length === 0 ? "" : `: ${plainLines(parts.join(", "))}`}`;
}
