/**
 * What a worker says, of itself when it joins and by each sync, and what it is answered.
 *
 * The fields are read by their schemas. Here they become what the core takes: sets are sorted, and what is absent has
 * its default. What a sync reports becomes commands. Naming an attempt makes it running. One that was running and is no
 * longer named is queued again at once; so is one that the worker has room for, that its answers have named for several
 * leases, and that it still does not name. The answer says all that the worker should run and has not named yet, all
 * that it must stop, and what else concerns it, of committed events only. Everything an answer says has a key, under
 * which the long polls remember it (sync-polls.ts).
 */
import type { Seq, WorkerId } from "../../core/base/index.ts";
import { isTimedOutUnnamed, timeoutError } from "../../core/lifecycle/index.ts";
import type {
  Attempt,
  Command,
  PushTarget,
  State,
  Takes,
  Task,
  Worker,
  WorkerSettings,
} from "../../core/model/index.ts";
import { bringsCall } from "../../plan/index.ts";
import type {
  Assignment,
  AttemptRef,
  JoinBody,
  LeanTask,
  NamedAssignment,
  RunningReport,
  SyncAnswer,
  SyncBody,
  TaskBody,
  WorkerOptions,
} from "../../protocol/index.ts";
import { joinBody, syncBody, workerOptions } from "../../protocol/shapes/index.ts";
import { present } from "../../std/index.ts";
import { readBody } from "../base/call-options.ts";
import { canonical, quoted } from "../base/canonical-json.ts";
import { countTokens } from "../base/charged-tokens.ts";
import { accepted, badInput } from "../base/drover-error.ts";
import type { AttemptTokens } from "../tasks/attempt-tokens.ts";
import { type BodyStore, DamagedBody, damagedReason, type KeptBody } from "../tasks/body-store.ts";
import { failed, reportOf } from "../tasks/handler-outcome.ts";
import { called, hasInputs, type ReadInputs } from "../tasks/inputs.ts";
import { parseStored } from "../tasks/task-body.ts";
import { assignedText, currentRound, leanlyAssigned, viewOf } from "../tasks/task-view.ts";
import type { Writer } from "../writer/writer.ts";
import type { NoticeKey, SyncPolls } from "./sync-polls.ts";
import { isNamedBy } from "./unbegun.ts";

const PROGRESS_BYTES_MAX = 16 * 1024;

type ReadWorker = { readonly id: string | null; readonly settings: WorkerSettings; readonly takes: Takes | null };

export const readWorker = (options: unknown): ReadWorker => toWorker(readBody(workerOptions, options));

export function readJoin(body: JoinBody): ReadWorker & { readonly target: PushTarget | null } {
  const { endpoint, path = null, ...options } = readBody(joinBody, body);
  return { ...toWorker(options), target: endpoint === undefined ? null : { endpoint: new URL(endpoint).href, path } };
}

function toWorker(options: WorkerOptions): ReadWorker {
  const { id = null, slots = 1, capabilities = [], resources, zone = null, worktrees = null } = options;
  const takes = { actions: setOf(options.actions), types: setOf(options.types), projects: setOf(options.projects) };
  return {
    id,
    takes: takes.actions === null && takes.types === null && takes.projects === null ? null : takes,
    settings: {
      slots,
      capabilities: setOf(capabilities),
      cpu: resources?.cpuMillicores ?? null,
      memory: resources?.memoryBytes ?? null,
      zone,
      status: "ready",
      worktrees,
    },
  };
}

/** Without repeats and sorted, so that equal sets are equal values. */
function setOf(names: readonly string[]): readonly string[];
function setOf(names: readonly string[] | null | undefined): readonly string[] | null;
function setOf(names: readonly string[] | null | undefined): readonly string[] | null {
  return names === undefined || names === null ? null : [...new Set(names)].sort();
}

export function readSync(given: SyncBody): SyncBody {
  const body = readBody(syncBody, given);
  const { capabilities, running = [] } = body;
  for (const [index, { progress }] of running.entries()) {
    const size = progress === undefined ? 0 : canonical(progress, `running[${index}].progress`).length;
    const most = `at most ${PROGRESS_BYTES_MAX} characters of JSON`;
    if (size > PROGRESS_BYTES_MAX) throw badInput(`running[${index}].progress`, `${size} characters`, most);
  }
  return capabilities === undefined ? body : { ...body, capabilities: setOf(capabilities) };
}

/** What was said is said again after so long, if the worker goes on asking and does not act on it. */
const SAY_AGAIN_MS = 1000;
const DRAIN = "drain";

export type SyncParts = {
  readonly writer: Writer;
  readonly bodies: BodyStore;
  readonly inputs: ReadInputs;
  readonly tokens: AttemptTokens;
  readonly polls: SyncPolls;
  readonly progress: Map<string, unknown>;
  /** What was missing where the end of an attempt was not taken. */
  readonly missing: WeakMap<Attempt, string>;
  /** Tabs that were taken over, by the worker that had them. */
  readonly lostTabs: Map<WorkerId, ReadonlySet<string>>;
  /** Tasks that were to go on with a worker and have ended, with the time that has elapsed when they did. */
  readonly over: Map<WorkerId, Map<string, number>>;
};

export function hasChanges(
  { writer, polls, lostTabs, over }: SyncParts,
  id: WorkerId,
  stray: readonly AttemptRef[],
): boolean {
  const worker = writer.state.fleet.byId.get(id);
  if (worker === undefined) return true;
  const isUnsaid = (key: NoticeKey): boolean => !polls.wasNotified(id, key, SAY_AGAIN_MS);
  const committed = writer.committedSeq();
  // Asked at every commit that concerns the worker, of as many as it has slots: in no order, and up to the first.
  if (worker.attempts.some((attempt) => isDue(attempt, committed) && isUnsaid(keyOf(attempt)))) return true;
  if (keysFor(worker, [], stray).some(isUnsaid)) return true;
  const unsaid = [...[...(lostTabs.get(id) ?? [])].map(lossOf), ...[...(over.get(id)?.keys() ?? [])].map(endOf)];
  return unsaid.some((key) => !polls.wasNotified(id, key));
}

type Said = Pick<SyncAnswer, "cancel" | "lost" | "over" | "drain">;
/** How an assignment is written: at once, or null if something has to be read first; and then. */
export type Writing<Written> = {
  atOnce(parts: SyncParts, attempt: Attempt, leaseUntil: string | null): Written | null;
  of(assignment: Assignment): Written;
};
export const AS_OBJECTS: Writing<Assignment> = { atOnce: assignmentAtHand, of: (assignment) => assignment };
export const AS_TEXTS: Writing<string> = { atOnce: assignmentText, of: JSON.stringify };
/** Their tasks alone, for a worker that knows the rest. */
export const AS_LEAN_TASKS: Writing<LeanTask> = {
  atOnce(parts, { task }) {
    const view = viewAtHand(parts, task);
    return view === null ? null : leanTaskOf(view);
  },
  of: ({ task }) => leanTaskOf(task),
};
export const AS_LEAN_TEXTS: Writing<string> = {
  atOnce: (parts, attempt) => leanText(parts, attempt) ?? textOf(AS_LEAN_TASKS.atOnce(parts, attempt, null)),
  of: ({ task }) => JSON.stringify(leanTaskOf(task)),
};
const textOf = (task: LeanTask | null): string | null => (task === null ? null : JSON.stringify(task));

function leanTaskOf(view: Assignment["task"]): LeanTask {
  const { taskId: _id, state: _state, attempt: _attempt, worker: _worker, ...lean } = view;
  return lean;
}

/** What a lean answer begins with: who only passes tasks on reads this, and leaves them as they are. */
export const namedAs = ({ number, task }: Attempt): NamedAssignment => ({
  taskId: task.id,
  attempt: number,
  taskSeq: task.seq,
  ...(task.requirements.onLoss === "fail" ? { onLoss: "fail" } : {}),
  ...(goesOn(task) ? { goesOn: true } : {}),
});

/** The same as text. */
export function nameText({ number, task }: Attempt): string {
  const onLoss = task.requirements.onLoss === "fail" ? ',"onLoss":"fail"' : "";
  return `{${nameFields(task, number)}${onLoss}${goesOn(task) ? ',"goesOn":true' : ""}}`;
}

/** Another round of its loop, or what goes on after an answer: it was kept for the worker that has its files. */
const goesOn = ({ extra }: Task): boolean =>
  extra !== null && ((extra.loop !== null && extra.loop.rounds.length > 0) || extra.approval !== null);

const nameFields = ({ id, seq }: Task, attempt: number): string =>
  `"taskId":${quoted(id)},"attempt":${attempt},"taskSeq":${seq}`;

export type Answer<Written> = {
  /** Which attempts are given, each in the place of what is written of it. */
  readonly given: readonly Attempt[];
  readonly written: readonly Written[];
  readonly said: Said;
};

export async function answerFor<Written>(
  parts: SyncParts,
  worker: Worker,
  stray: readonly AttemptRef[],
  leaseUntil: string | null,
  writing: Writing<Written>,
): Promise<Answer<Written>> {
  const due = dueFor(parts.writer, worker);
  const lost = [...(parts.lostTabs.get(worker.id) ?? [])];
  const over = [...(parts.over.get(worker.id)?.keys() ?? [])];
  parts.polls.markNotified(worker.id, [...keysFor(worker, due, stray), ...lost.map(lossOf), ...over.map(endOf)]);
  const given = due.filter(({ state }) => state === "assigned");
  const known = given.map((attempt) => writing.atOnce(parts, attempt, leaseUntil));
  const read = async (attempt: Attempt): Promise<Written | null> => {
    const assignment = await assignmentOf(parts, attempt, leaseUntil);
    return assignment === null ? null : writing.of(assignment);
  };
  const isWhole = known.every((written) => written !== null);
  const written = isWhole ? known : await Promise.all(known.map((one, index) => one ?? read(given[index] as Attempt)));
  const stopping = due.filter(({ state }) => state === "stopping").map(nameOf);
  return {
    given: isWhole ? given : given.filter((_, index) => written[index] !== null),
    written: isWhole ? known : written.filter((one) => one !== null),
    said: {
      cancel: [...stopping, ...stray],
      ...(lost.length === 0 ? {} : { lost }),
      ...(over.length === 0 ? {} : { over }),
      ...(worker.status === "draining" ? { drain: true as const } : {}),
    },
  };
}

/** The attempts it should know of: those it has not named, and those it must stop. */
function dueFor(writer: Writer, worker: Worker): Attempt[] {
  const committed = writer.committedSeq();
  return worker.attempts.inOrder().filter((attempt) => isDue(attempt, committed));
}

const isDue = ({ state, task }: Attempt, committed: number): boolean =>
  state !== "running" && task.lastSeq <= committed;

/** Null if its body or what it needs has to be read first, or something in it is to be filled in. */
function assignmentAtHand(parts: SyncParts, attempt: Attempt, leaseUntil: string | null): Assignment | null {
  const { task, number } = attempt;
  const view = viewAtHand(parts, task);
  return view === null ? null : assignment(attempt, view, leaseUntil, parts.tokens.ofLive(task, number));
}

function viewAtHand(parts: SyncParts, task: Task): Assignment["task"] | null {
  const text = bodyAtHand(parts, task)?.text;
  const body = text === undefined ? null : parseStored(text);
  return body === null || bringsCall(body.params) ? null : assignedView(parts.writer, task, body);
}

/** What its worker sees of it beside its body would have to be read first, if it needs anything. */
const bodyAtHand = ({ bodies }: SyncParts, task: Task): KeptBody | undefined =>
  hasInputs(task) ? undefined : bodies.peek(task.seq as Seq);

/** The same as text. The body of a plain task is put in as it is stored, and neither read nor written again. */
function assignmentText(parts: SyncParts, attempt: Attempt, leaseUntil: string | null): string | null {
  const { task, number } = attempt;
  const kept = bodyAtHand(parts, task);
  const { state, now } = parts.writer;
  const view = kept === undefined ? null : assignedText(state, task, kept, now());
  if (view === null) {
    const assignment = assignmentAtHand(parts, attempt, leaseUntil);
    return assignment === null ? null : JSON.stringify(assignment);
  }
  const lease = leaseUntil === null ? "" : `,"leaseUntil":"${leaseUntil}"`;
  const token = parts.tokens.ofLive(task, number);
  return `{${nameFields(task, number)},"task":${view}${lease},"token":"${token}"}`;
}

function leanText(parts: SyncParts, { task }: Attempt): string | null {
  const kept = bodyAtHand(parts, task);
  return kept === undefined ? null : leanlyAssigned(parts.writer.state, task, kept, parts.writer.now());
}

/** Null if its body is damaged, or nothing is to be done: the attempt is over then. */
async function assignmentOf(parts: SyncParts, attempt: Attempt, leaseUntil: string | null): Promise<Assignment | null> {
  const { writer, bodies, inputs, tokens } = parts;
  const { task, number } = attempt;
  const text = await soundText(bodies, task.seq as Seq);
  const ended = { task: task.id, attempt: number, tokens: 0 };
  if (text !== null) {
    const body = parseStored(text);
    const now = assignedView(writer, task, body);
    const found = hasInputs(task) ? await inputs(task, body.needs) : null;
    const token = tokens.of(task.id, number);
    try {
      const { params } = called(body.params, found);
      const isPlain = params === undefined && found === null;
      return assignment(attempt, isPlain ? now : { ...now, ...present({ params, inputs: found }) }, leaseUntil, token);
    } catch (thrown) {
      writer.execute({ type: "finish-attempt", report: failed(ended, thrown, writer.now()).report });
      return null;
    }
  }
  const report = reportOf(ended, "failed", damagedReason(task.seq));
  writer.execute({ type: "finish-attempt", report: { ...report, permanent: true } });
  return null;
}

/** In a brief answer without the lease, which it says once. */
const assignment = (
  attempt: Attempt,
  task: Assignment["task"],
  leaseUntil: string | null,
  token: string | null,
): Assignment => ({
  ...nameOf(attempt),
  taskSeq: attempt.task.seq,
  task,
  ...(leaseUntil === null ? {} : { leaseUntil }),
  ...(token === null ? {} : { token }),
});

/** A task as its worker sees it. What came of earlier rounds is in the note of the last. */
function assignedView(writer: Writer, task: Task, body: TaskBody): Assignment["task"] {
  const { position: _, rounds: _rounds, ...view } = viewOf(writer.state, task, body, writer.now());
  const round = currentRound(task);
  return round === null ? view : { ...view, round };
}

/** The text of a body; null if it is damaged. */
async function soundText(bodies: BodyStore, seq: Seq): Promise<string | null> {
  try {
    return await bodies.read(seq);
  } catch (error) {
    if (error instanceof DamagedBody) return null;
    throw error;
  }
}

const lossOf = (tab: string): string => `${tab} lost`;
const endOf = (task: string): string => `${task} over`;
const nameOf = ({ task, number }: Attempt): AttemptRef => ({ taskId: task.id, attempt: number });
/** An attempt that it should run is its own key: nearly all are of that kind. */
const keyOf = (attempt: Attempt): NoticeKey =>
  attempt.state === "assigned" ? attempt : `${attempt.task.id}#${attempt.number} ${attempt.state}`;

const keysFor = (worker: Worker, due: readonly Attempt[], stray: readonly AttemptRef[]): NoticeKey[] => [
  ...due.map(keyOf),
  ...stray.map(({ taskId, attempt, taskSeq = "" }) => `${taskId}#${attempt} stray${taskSeq}`),
  ...(worker.status === "draining" ? [DRAIN] : []),
];

/** How many it may hold: as many as it has slots, and what it wanted ahead. */
const mostOf = ({ offered, slots }: Worker): number => Math.max(offered, slots);

/** How many leases an attempt may stay unnamed by a worker that names what it runs. */
const LEASES_UNNAMED_MAX = 3;

const must = (writer: Writer, command: Command): unknown => accepted(writer.execute(command));

/** The attempts that the worker says it runs. Answers those that it runs and does not hold. */
export function applyRunning(parts: SyncParts, worker: Worker, running: readonly RunningReport[]): AttemptRef[] {
  const { writer, polls, progress, missing } = parts;
  const named = new Set<Attempt>();
  const stray: AttemptRef[] = [];
  for (const { progress: shown, usage, ...name } of running) {
    const attempt = writer.state.tasks.get(name.taskId as Task["id"])?.attempt ?? null;
    if (attempt === null || !isNamedBy(name, attempt) || attempt.worker.id !== worker.id) {
      stray.push(name);
      continue;
    }
    named.add(attempt);
    const one = { task: attempt.task.id, attempt: attempt.number };
    if (attempt.state === "assigned") must(writer, { type: "start-attempt", ...one });
    if (shown !== undefined) progress.set(one.task, shown);
    if (usage !== undefined) must(writer, { type: "report-usage", ...one, tokens: countTokens(usage) });
  }
  const hasRoom = named.size < mostOf(worker);
  for (const attempt of [...worker.attempts]) {
    if (named.has(attempt)) continue;
    if (attempt.state === "assigned" && !(hasRoom && isDeclined(parts, attempt))) continue;
    // One that must stop may have been taken back before it was ever named.
    if (attempt.startedAt < 0 && attempt.state === "stopping" && !polls.wasNotified(worker.id, keyOf(attempt)))
      continue;
    const reason = missing.get(attempt) ?? `worker ${worker.id} is there and no longer has it`;
    must(writer, { type: "lose-attempt", task: attempt.task.id, attempt: attempt.number, reason });
  }
  return stray;
}

/** Its answers have said it again and again, it has room, names what it runs, and does not name this. */
function isDeclined({ writer, polls }: SyncParts, attempt: Attempt): boolean {
  const forMs = polls.notifiedForMs(attempt.worker.id, keyOf(attempt));
  return forMs !== null && forMs >= writer.state.config.workers.lease * LEASES_UNNAMED_MAX;
}

export function endTimedOut(writer: Writer, worker: Worker): void {
  if (worker.attempts.size > mostOf(worker)) return;
  const now = writer.now();
  const isOver = (attempt: Attempt): boolean => isTimedOutUnnamed(writer.state, attempt, now);
  if (!worker.attempts.some(isOver)) return;
  for (const attempt of worker.attempts.inOrder()) {
    if (!isOver(attempt)) continue;
    const ended = { task: attempt.task.id, attempt: attempt.number, tokens: null };
    must(writer, { type: "finish-attempt", report: reportOf(ended, "failed", timeoutError(attempt)) });
  }
}

/** What it offers now. */
export function applyOffer(writer: Writer, worker: Worker, sync: SyncBody): void {
  const { want, capabilities, resources, worktrees, note } = sync;
  const most = worker.offered + aheadFor(writer.state, sync);
  const slots = want === undefined ? worker.offered : Math.min(most, worker.attempts.size + want);
  const room = { cpu: resources?.cpuMillicores ?? null, memory: resources?.memoryBytes ?? null };
  const settings: WorkerSettings = {
    ...settingsOf(worker),
    slots: slots === 0 ? worker.offered : slots,
    status: statusFor(worker, sync, slots),
    note: note === undefined || note === "" ? null : note.toWellFormed(),
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(resources === undefined ? {} : room),
    ...(worktrees === undefined ? {} : { worktrees }),
  };
  must(writer, { type: "change-worker", worker: worker.id, settings });
}

/**
 * How many it is given beyond its slots. A worker that is full of what it fetched ahead has no place for what is
 * critical until one of those has begun, so where the express lane is open there is nothing ahead.
 */
const aheadFor = ({ expressProjects }: State, { ahead = 0 }: SyncBody): number =>
  expressProjects.size > 0 ? 0 : ahead;

/** A worker that drains goes on draining until it joins again; one that wants nothing and has nothing gets none. */
function statusFor({ status }: Worker, sync: SyncBody, slots: number): WorkerSettings["status"] {
  if (status === "draining") return "draining";
  if (slots === 0) return "overloaded";
  return sync.status ?? "ready";
}

/** It was given up and is there after all: the same worker, without the attempts it held. */
export function comeBack(writer: Writer, worker: Worker, drained: ReadonlySet<WorkerId>): void {
  const { id, kind, session, target, takes } = worker;
  const status = drained.has(id) ? "draining" : "ready";
  const settings: WorkerSettings = { ...settingsOf(worker), slots: worker.offered, status };
  must(writer, { type: "join-worker", worker: id, kind, session, settings, target, takes });
}

export function settingsOf(worker: Worker): WorkerSettings {
  const { slots, capabilities, cpu, memory, worktrees, zone, status, note } = worker;
  const orNull = (room: number): number | null => (room === Number.POSITIVE_INFINITY ? null : room);
  const shown = status === "unreachable" ? "ready" : status;
  const room = { cpu: orNull(cpu), memory: orNull(memory), worktrees: orNull(worktrees) };
  return { slots, capabilities, ...room, zone, status: shown, note };
}
