/**
 * Reading tasks: one by its id, or a page of those a filter names.
 *
 * A live task is read from the state and its body from the log; one whose record has expired is read
 * back from the log through its tombstone; one that was turned away, from memory. Pages are in the order of
 * submission, and a cursor stays good however much happens in between. It is made in small pieces, with a turn of the
 * event loop for all others between two of them. A page ends by its bytes as well as by its
 * count: a thousand bodies of the largest kind are more than one text can hold.
 */
import type { Reader, Seq, TaskId } from "../../core/base/index.ts";
import { badField, fail, flag, isRecord, name, ok, oneOf, readSection, setOf, whole } from "../../core/base/index.ts";
import { front, items } from "../../core/collections/index.ts";
import type { EventKind, State, Task } from "../../core/model/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import type { Log } from "../../log/index.ts";
import type { AnyEvent, TaskPage, TaskState, TaskView } from "../../protocol/index.ts";
import { readShape } from "../../protocol/schema/index.ts";
import { labelFilter, PAGE_DEFAULT } from "../../protocol/shapes/index.ts";
import { PAGE_MAX, SKIP_MAX } from "../../protocol/wire/index.ts";
import { nextTurn, remember } from "../../std/index.ts";
import { accepted, badInput, DroverError, reading, refused } from "../base/drover-error.ts";
import type { Writer } from "../writer/writer.ts";
import { type BodyStore, checkedPayload, DamagedBody, damagedReason } from "./body-store.ts";
import { type Rejected, type RejectedRing, viewOfRejected } from "./rejected.ts";
import { instantField, parseStored, type TaskInput } from "./task-body.ts";
import { glance, tombstoneView } from "./task-view.ts";

/** A task whose body would take a page beyond this begins the next one. */
export const PAGE_BYTES: number = 1024 * 1024;
/** How many bodies are read at a time: few at first, since they may be large, and more while the page has room. */
const PIECE_MIN = 4;
const PIECE_MAX = 32;
/** How many tasks are looked at in one turn of the event loop. */
const LOOKED_AT_ONCE = 1000;

/** A longer name is none of git's. */
const BRANCH_MAX = 1024;

/** What reading takes. */
export type TaskSources = {
  readonly writer: Pick<Writer, "state" | "now" | "settled">;
  readonly log: Log;
  readonly bodies: BodyStore;
  readonly rejected: RejectedRing;
  readonly progressOf: (task: string) => unknown;
};

/** Which tasks. */
export type TaskFilter = {
  /** Only of this agent. */
  readonly agentId?: string;
  /** Only of this project, or these. */
  readonly project?: string | readonly string[];
  /** Only in this state, or these. */
  readonly state?: TaskState | readonly TaskState[];
  /** Only of this type. */
  readonly type?: string;
  /** Only with this label, as `key=value`, or with all of these. */
  readonly label?: string | readonly string[];
  /** Only of this group. */
  readonly group?: string;
  /** Only tasks that name this one as parent. */
  readonly parent?: string;
  /** Only this task and all below it: its children, theirs, and so on. */
  readonly root?: string;
};

/** One look at the state; then, when all that was seen is durable, what the log holds of it. */
export async function readTask(parts: TaskSources, id: TaskId): Promise<TaskView> {
  const { writer, bodies, rejected, log } = parts;
  const { state } = writer;
  const task = state.tasks.get(id);
  if (task !== undefined) {
    const show = glance(state, task, writer.now());
    const resultSeq = task.end?.resultSeq ?? null;
    const progress = parts.progressOf(id);
    await writer.settled();
    const view = await withBody(show, needed(bodies, task.seq as Seq));
    const result = resultSeq === null ? {} : await resultOf(id, bodies.read(resultSeq as Seq, task.end?.resultHash));
    return { ...view, ...result, ...(progress === undefined ? {} : { progress }) };
  }
  const stone = state.tombstones.get(id);
  const turnedAway = rejected.find(id, writer.now(), state.config.scheduler.resultTtl);
  await writer.settled();
  if (stone !== undefined) {
    const view = await withBody((body) => tombstoneView(stone, body), bodies.read(stone.seq as Seq));
    const end = await endOf(log, id, stone.endSeq as Seq);
    return { ...view, ...end, ...(view.error === undefined ? {} : { error: bothErrors(end.error, view.error) }) };
  }
  if (turnedAway !== null) return viewOfRejected(turnedAway);
  throw refused({ type: "task-unknown", task: id });
}

/** The body of a task that the state still has is never pruned. */
async function needed(bodies: BodyStore, seq: Seq): Promise<string> {
  const text = await bodies.read(seq);
  if (text === null) throw new DamagedBody(seq);
  return text;
}

/** A view has what the state knows of a task also where its body is damaged, and says that it is. */
async function withBody(show: Seen["show"], reading: Promise<string | null>): Promise<TaskView> {
  try {
    const text = await reading;
    return show(text === null ? null : parseStored(text));
  } catch (error) {
    if (!(error instanceof DamagedBody)) throw error;
    const view = show(null);
    return { ...view, error: bothErrors(view.error, damagedReason(error.seq)) };
  }
}

/** Why a task failed comes first, then that its body is damaged, unless that is why. */
function bothErrors(own: string | undefined, damage: string): string {
  if (own === undefined) return damage;
  return own.includes(damage) ? own : `${own}; ${damage}`;
}

/** A result that is not what was written is left out. */
async function resultOf(id: TaskId, reading: Promise<string | null>): Promise<{ result?: unknown; branch?: string }> {
  try {
    const text = await reading;
    if (text === null) return {};
    const result = JSON.parse(text) as unknown;
    return { result, ...branchOf(result) };
  } catch (error) {
    throw error instanceof DamagedBody ? damagedResult(id, error) : error;
  }
}

/** Where an exec worker has left the work of a command, if it has: in its tree, or, that being gone, in commits. */
export function branchOf(result: unknown): { branch?: string } {
  const workspace = isRecord(result) ? result.workspace : null;
  if (!isRecord(workspace) || (workspace.isKept !== true && !(Number(workspace.commits) > 0))) return {};
  const { branch } = workspace;
  return typeof branch === "string" && branch !== "" && branch.length <= BRANCH_MAX ? { branch } : {};
}

export function damagedResult(id: TaskId, cause: DamagedBody): DroverError {
  const message = `the result of ${id} is not what was stored (event ${cause.seq}); run drover verify`;
  return new DroverError("damaged", message, { details: { task: id, event: cause.seq }, cause });
}

/** How a buried task ended, as the log has it. */
export async function endOf(
  log: Log,
  id: TaskId,
  seq: Seq,
): Promise<{ result?: unknown; branch?: string; error?: string; attempt?: number }> {
  const record = await log.readRecord(seq);
  if (record === null || record.bytes.length === 0) return {};
  const { event } = decodeEvent(record.bytes, seq);
  // One that waited for its children had answered before.
  if (event.kind === "task-done" && event.resultSeq !== null) return endOf(log, id, event.resultSeq);
  if (event.kind === "task-done" || event.kind === "attempt-done") {
    const read = async () => checkedPayload(record, seq);
    const result = await resultOf(
      id,
      read().then((payloads) => (payloads === null ? null : Buffer.from(payloads).toString())),
    );
    return { attempt: event.attempt, ...result };
  }
  const attempt = event.kind === "task-failed" && event.attempt !== null ? { attempt: event.attempt } : {};
  return "reason" in event && typeof event.reason === "string" ? { error: event.reason, ...attempt } : attempt;
}

const STATES = [
  "waiting",
  "queued",
  "assigned",
  "running",
  "parked",
  "done",
  "failed",
  "cancelled",
  "skipped",
  "rejected",
] as const;
/** What tasks are looked for by, whether they were let in or not. */
type Listed = {
  readonly phase: TaskState;
  readonly agent: { readonly id: string };
  readonly project: { readonly id: string };
  readonly id: string;
  readonly requirements: { readonly type: string; readonly action?: string | null };
  /** When it was submitted, or turned away, and how it ended. */
  readonly createdAt?: number;
  readonly at?: number;
  readonly end?: { readonly at: number } | null;
  readonly extra: {
    readonly labels: readonly { readonly text: string }[] | null;
    readonly group?: { readonly group: { readonly id: string } } | null;
    readonly wait?: { readonly answer: unknown } | null;
  } | null;
  readonly links?: { readonly parent: string | null } | null;
};

/** Which tasks a filter names: by what is looked up (labels, group, parent, root), and by all else, asked of each. */
export type Matcher = {
  readonly labels: readonly string[];
  readonly group: string | null;
  readonly parent: string | null;
  readonly root: string | null;
  readonly matches: (task: Listed) => boolean;
};

/** One name, or a list of them. */
export const namesOf: Reader<string | readonly string[]> = (value, field) =>
  Array.isArray(value) ? setOf(name(), PROJECTS_MAX)(value, field) : name()(value, field);
const PROJECTS_MAX = 1000;

/** `more` are fields that the caller has read already; they are named where an unknown one is refused. */
export function matcher(filter: TaskFilter, more: readonly string[] = []): Matcher {
  if (!isRecord(filter)) throw badInput("filter", filter, "an object");
  const states = filter.state === undefined ? null : new Set([filter.state].flat());
  for (const state of states ?? []) accepted(oneOf(...STATES)(state, "state"));
  const ids = { group: name(), parent: name(), root: name() };
  const fields = { agentId: name(), project: namesOf, type: name(), label: readLabels, ...ids };
  const { state: _, ...names } = filter;
  const read = readSection<Omit<TaskFilter, "state">>(fields as never, {}, names, "");
  if (!read.ok) {
    const { failure } = read;
    const known = ["agentId", "project", "state", "type", "label", "group", "parent", "root", ...more];
    throw refused(failure.type === "unknown-field" ? { ...failure, known } : failure);
  }
  const { agentId, project, type, label = [], group = null, parent = null, root = null } = read.value;
  const labels = [label].flat();
  const projects = project === undefined ? null : new Set<string>([project].flat());
  const matches = (task: Listed): boolean =>
    (states === null || states.has(task.phase)) &&
    (agentId === undefined || task.agent.id === agentId) &&
    (projects === null || projects.has(task.project.id)) &&
    (type === undefined || task.requirements.type === type) &&
    (group === null || task.extra?.group?.group.id === group) &&
    (parent === null || task.links?.parent === parent) &&
    // Those that were let in and are below a root were looked up; one that was turned away is below none.
    (root === null || "links" in task) &&
    hasLabels(task, labels);
  return { labels, group, parent, root, matches };
}

const LABELS = labelFilter();
export const readLabels: Reader<string | readonly string[]> = (value, field) => readShape(LABELS, value, field);

const hasLabels = ({ extra }: Pick<Listed, "extra">, wanted: readonly string[]): boolean =>
  wanted.every((text) => extra?.labels?.some((label) => label.text === text) === true);

/** How many tasks a reader of labels remembers whose records may go while it reads. */
const LABELLED_MAX = 10_000;

/**
 * Whether an event is about a task with all of these labels. The state knows the labels of a task while its record is
 * there; of one that is gone, whoever has read its submit does.
 */
function labelledEvents(state: State, label: string | readonly string[]): (event: AnyEvent<number>) => boolean {
  const wanted = [label].flat();
  const known = new Map<string, boolean>();
  return ({ seq: at, task: id, payload }) => {
    if (id === undefined) return false;
    if (payload.kind === "task-submitted") {
      const isMeant = wanted.every((text) => payload.labels.includes(text));
      remember(known, id, isMeant, LABELLED_MAX);
      return isMeant;
    }
    const task = state.tasks.get(id as TaskId);
    // A later task may have taken the id of one that was forgotten.
    return task === undefined || task.seq > at ? known.get(id) === true : hasLabels(task, wanted);
  };
}

type EventFilter = {
  readonly task?: string;
  readonly kind?: EventKind | readonly EventKind[];
  readonly label?: string | readonly string[];
};

/** Whether an event is about a task, of a kind, and about a task with labels, as far as these are asked for. */
export function wantedEvents(state: State, { task, kind, label }: EventFilter): (event: AnyEvent<number>) => boolean {
  const kinds = kind === undefined ? null : new Set<EventKind>([kind].flat());
  const isLabelled = label === undefined ? () => true : labelledEvents(state, label);
  return (event) =>
    isLabelled(event) && (task === undefined || event.task === task) && (kinds === null || kinds.has(event.kind));
}

/** What may match: all tasks, or, where labels, a group or a parent are wanted, those of the smallest of them. */
export function candidates(state: State, wanted: Omit<Matcher, "matches">): Iterable<Task> {
  const { tasks, labels, groups, children } = state;
  if (wanted.root !== null) return treeOf(state, wanted.root as TaskId);
  const lists = wanted.labels.map((text) => labels.get(text)?.tasks ?? null);
  if (wanted.parent !== null) lists.push(children.get(wanted.parent as TaskId) ?? null);
  if (wanted.group !== null) lists.push(groups.get(wanted.group)?.tasks ?? null);
  if (lists.length === 0) return tasks.values();
  const known = lists.filter((list) => list !== null);
  if (known.length < lists.length) return [];
  const rarest = known.reduce((least, list) => (list.size < least.size ? list : least));
  // A copy: other things happen while a page is made.
  return front(rarest, rarest.size);
}

/** A task and all below it, in the order of submission. */
export function treeOf({ tasks, children }: State, root: TaskId): Task[] {
  const top = tasks.get(root);
  const found: Task[] = top === undefined ? [] : [top];
  // The root itself may be gone while its children are there. What is found last is looked below of last.
  for (let id: TaskId | undefined = root, next = found.length; id !== undefined; id = found[next++]?.id) {
    const list = children.get(id);
    if (list !== undefined) for (const child of items(list)) found.push(child);
  }
  return found.sort((left, right) => left.seq - right.seq);
}

const NEWEST_FIRST: ReadonlySet<string> = new Set(["newest", "desc"]);

/** Which tasks, how many of them, and in which order. */
export type PageFilter = TaskFilter & {
  /** Whether those that were submitted first come first, which is the default (asc), or last (desc). */
  readonly order?: "oldest" | "newest" | "asc" | "desc";
  /** Only those whose id, agent, project, type, a label, or action where that is one word, holds this text. */
  readonly q?: string;
  /** Only those that wait for somebody's word; false: only those that do not. */
  readonly asking?: boolean;
  /** Only those that were submitted or have ended since: an instant as text, or milliseconds since 1970. */
  readonly since?: string | number;
  /** How many at most. */
  readonly limit?: number;
  /** The nextCursor of the page before. */
  readonly cursor?: string;
  /** How many of those behind the cursor are passed over. */
  readonly skip?: number;
};

const TEXT_MAX = 200;
const textField: Reader<string> = (value, field) =>
  typeof value === "string" && value !== "" && value.length <= TEXT_MAX
    ? ok(value)
    : fail(badField(field, value, `text of 1 to ${TEXT_MAX} characters`));

/** Whether what people know a task by holds a text, in either case. */
function textIn(text: string): (task: Listed) => boolean {
  const wanted = text.toLowerCase();
  const isIn = (value: string | null | undefined): boolean => value?.toLowerCase().includes(wanted) === true;
  return ({ id, agent, project, requirements, extra }) =>
    isIn(id) ||
    isIn(requirements.action) ||
    isIn(agent.id) ||
    isIn(project.id) ||
    isIn(requirements.type) ||
    extra?.labels?.some((label) => isIn(label.text)) === true;
}

/** Whether it waits for somebody's word, and not for what grew below it. */
const isAsking = ({ phase, extra }: Listed): boolean => phase === "parked" && (extra?.wait?.answer ?? null) === null;

/** Whether it was submitted, turned away or has ended since. */
const isSince = ({ createdAt, at, end }: Listed, since: number): boolean =>
  (end?.at ?? createdAt ?? at ?? since) >= since;

/**
 * Tasks in the order they were submitted, or the other way round; the cursor is the number of the last one given out.
 * Those that were turned away, where they are asked for by their state, come after all others, in their own order.
 */
export async function readPage(parts: TaskSources, filter: PageFilter): Promise<TaskPage> {
  const wanted = reading(filter, "", () => readWanted(filter));
  if (wanted.afterRejected !== null) {
    const page = rejectedPage(parts, wanted, { ...wanted, after: wanted.afterRejected });
    await parts.writer.settled();
    return page;
  }
  const { size, skip } = wanted;
  const { state } = parts.writer;
  const now = parts.writer.now();
  const { found, passed, total } = await (wanted.isNewestFirst ? newestOf(state, wanted) : oldestOf(state, wanted));
  const seen = found.slice(0, size).map((task) => ({ show: glance(state, task, now), seq: task.seq as Seq }));
  await parts.writer.settled();
  const tasks = await withBodies(parts.bodies, seen);
  const last = seen[tasks.length - 1];
  const rest = rejectedPage(parts, wanted, { after: 0, size: size - tasks.length, skip: skip - passed });
  const all = total === null ? {} : { total: total + (rest.total ?? 0) };
  if (found.length > tasks.length && last !== undefined)
    return { tasks, count: tasks.length, ...all, nextCursor: String(last.seq) };
  return { ...rest, tasks: [...tasks, ...rest.tasks], count: tasks.length + rest.count, ...all };
}

/** What is behind the cursor and those passed over, and one more than a page holds. */
type Found = {
  readonly found: readonly Task[];
  /** How many were passed over. */
  readonly passed: number;
  /** How many match behind the cursor, where all were looked at. */
  readonly total: number | null;
};

async function oldestOf(state: State, wanted: Wanted): Promise<Found> {
  const found: Task[] = [];
  let [looked, passed] = [0, 0];
  for (const task of candidates(state, wanted)) {
    if (++looked % LOOKED_AT_ONCE === 0) await nextTurn();
    if (task.seq <= wanted.after || !wanted.matches(task) || !state.tasks.has(task.id)) continue;
    if (passed < wanted.skip) passed++;
    else found.push(task);
    if (found.length > wanted.size) break;
  }
  return { found, passed, total: null };
}

/** The last ones before the cursor, the newest first: tasks can be walked in one direction only. */
async function newestOf(state: State, wanted: Wanted): Promise<Found> {
  const before = wanted.after === 0 ? Number.POSITIVE_INFINITY : wanted.after;
  const most = wanted.skip + wanted.size + 1;
  const last: Task[] = [];
  let [looked, total] = [0, 0];
  for (const task of candidates(state, wanted)) {
    if (++looked % LOOKED_AT_ONCE === 0) await nextTurn();
    if (task.seq >= before) break;
    if (!wanted.matches(task)) continue;
    total++;
    last.push(task);
    if (last.length >= 2 * most) last.splice(0, most);
  }
  const here = last.filter((task) => state.tasks.get(task.id) === task);
  // Records have gone meanwhile, and older tasks that were left out come in for them.
  if (here.length < most && total > last.length) return newestOf(state, wanted);
  const found = here.slice(-most).reverse().slice(wanted.skip);
  return { found, passed: Math.min(wanted.skip, here.length), total: total - (last.length - here.length) };
}

/** As many of those that were turned away as there is room for, if they are asked for. */
function rejectedPage(
  { writer, rejected }: TaskSources,
  { matches, wantsRejected, isNewestFirst }: Wanted,
  { after, size, skip }: { readonly after: number; readonly size: number; readonly skip: number },
): TaskPage {
  const { state } = writer;
  // One that was let in since, under the id it chose, is a task like any other.
  const isStill = ({ id }: Rejected): boolean => !state.tasks.has(id as TaskId) && !state.tombstones.has(id as TaskId);
  const kept = wantsRejected ? [...rejected.list(writer.now(), state.config.scheduler.resultTtl)] : [];
  const found = kept.filter((entry) => entry.order > after && isStill(entry) && matches(entry));
  const shown: Rejected[] = [];
  let bytes = 0;
  for (const entry of found.slice(skip)) {
    bytes += Buffer.byteLength(entry.text);
    if (shown.length >= size || (bytes > PAGE_BYTES && shown.length > 0)) break;
    shown.push(entry);
  }
  const tasks = shown.map(viewOfRejected);
  const nextCursor = `r${shown.at(-1)?.order ?? after}`;
  const total = isNewestFirst ? { total: found.length } : {};
  return { tasks, count: tasks.length, ...total, ...(found.length > skip + shown.length ? { nextCursor } : {}) };
}

type Seen = { readonly show: (body: TaskInput | null) => TaskView; readonly seq: Seq };

/** As many of them, from the first on, as a page has room for. */
async function withBodies(bodies: BodyStore, seen: readonly Seen[]): Promise<TaskView[]> {
  const tasks: TaskView[] = [];
  let bytes = 0;
  for (let piece = PIECE_MIN; tasks.length < seen.length; piece = Math.min(piece * 2, PIECE_MAX)) {
    if (tasks.length > 0) await nextTurn();
    const next = seen.slice(tasks.length, tasks.length + piece);
    const readings = next.map(({ seq }) => needed(bodies, seq));
    await Promise.allSettled(readings);
    for (const [index, { show }] of next.entries()) {
      const reading = readings[index] as Promise<string>;
      bytes += Buffer.byteLength(await reading.catch(() => ""));
      if (bytes > PAGE_BYTES && tasks.length > 0) return tasks;
      tasks.push(await withBody(show, reading));
    }
  }
  return tasks;
}

type Wanted = Matcher & {
  readonly size: number;
  readonly skip: number;
  readonly isNewestFirst: boolean;
  readonly after: number;
  /** A page that goes on behind the last one of those that were turned away. */
  readonly afterRejected: number | null;
  readonly wantsRejected: boolean;
};

function readWanted(filter: PageFilter): Wanted {
  if (!isRecord(filter)) throw badInput("filter", filter, "an object");
  const { limit = PAGE_DEFAULT, cursor = "0", skip = 0, order = "oldest", q, asking, since, ...wanted } = filter;
  const size = accepted(whole(1, PAGE_MAX)(limit, "limit"));
  const passed = accepted(whole(0, SKIP_MAX)(skip, "skip"));
  if (typeof cursor !== "string" || !/^r?\d{1,16}$/.test(cursor))
    throw badInput("cursor", cursor, "the nextCursor of a former page");
  const isRejected = cursor.startsWith("r");
  const after = Number(isRejected ? cursor.slice(1) : cursor);
  const found = matcher(wanted, ["order", "q", "asking", "since", "limit", "cursor", "skip"]);
  const from = since === undefined ? null : accepted(instantField(since, "since"));
  const holds = q === undefined ? null : textIn(accepted(textField(q, "q")));
  const asks = asking === undefined ? null : accepted(flag(asking, "asking"));
  return {
    size,
    skip: passed,
    after,
    afterRejected: isRejected ? after : null,
    wantsRejected: [wanted.state].flat().includes("rejected"),
    isNewestFirst: NEWEST_FIRST.has(accepted(oneOf("oldest", "newest", "asc", "desc")(order, "order"))),
    ...found,
    matches: (task) =>
      (from === null || isSince(task, from)) &&
      (asks === null || isAsking(task) === asks) &&
      found.matches(task) &&
      (holds === null || holds(task)),
  };
}
