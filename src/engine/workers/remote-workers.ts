/**
 * Workers over the wire: they join, and then say and hear everything by one call, `sync`.
 *
 * A sync is level-triggered: it says all that the worker runs, and the answer says all that it should run and has not
 * named yet, and all that it must stop. So an answer that is lost loses nothing, the next one says it again. Naming
 * an attempt makes it running; one that was running and is no longer named is queued again at once; one that is
 * named but not held any more (its lease had ended) is to be stopped. Syncs are numbered: an older one that arrives
 * late is refused, a newer one ends a long poll that still waits, and one worker has one session.
 *
 * Answers speak of committed events only. A worker that says nothing for a lease (leases.ts) is given up as lost.
 * One that comes back under its old session goes on, but what it held is gone and it is told to stop it.
 */
import { name, type Seq, text, type WorkerId } from "../../core/base/index.ts";
import type { Attempt, Command, Event, Task, Worker, WorkerSettings } from "../../core/model/index.ts";
import type { Clock } from "../../std/index.ts";
import { tokensOf } from "../permits/local-permits.ts";
import { type BodyStore, DamagedBody, damagedReason } from "../tasks/body-store.ts";
import { blank } from "../tasks/handler-outcome.ts";
import { parseStored } from "../tasks/task-body.ts";
import { isoTime, type TaskView, viewOf } from "../tasks/task-view.ts";
import { abortSignal, readOptions } from "../writer/call-options.ts";
import { type DroverError, refused } from "../writer/drover-error.ts";
import { type Applied, notify, type Writer } from "../writer/writer.ts";
import { createLeaseBook } from "./leases.ts";
import { createPollLine } from "./long-polls.ts";
import { createRemoteResults, type ResultAnswer } from "./remote-results.ts";
import {
  type JoinBody,
  type ResultReport,
  type RunningReport,
  readJoin,
  readSync,
  SESSION_MAX,
  type SyncBody,
} from "./sync-body.ts";

/** What was said is said again after so long, if the worker goes on asking without having heard. */
const SAY_AGAIN_MS = 1000;
/** A worker that was given up is forgotten if it has not come back by then. */
const FORGET_MS = 3_600_000;
/** A poll lasts at most this part of a lease: a worker that hears nothing until its lease is over has lost it. */
const POLL_PART = 2;
const DRAIN = "drain";
/** How many leases an attempt may stay unnamed by a worker that names what it runs. */
const LEASES_UNNAMED_MAX = 3;

export type Joined = {
  readonly workerId: string;
  readonly session: string;
  readonly leaseMs: number;
  /** How many worktrees a worker of this fleet may keep. */
  readonly maxWorktrees: number;
};
type Named = { readonly taskId: string; readonly attempt: number };
export type Assignment = Named & { readonly task: TaskView; readonly leaseUntil: string };
export type SyncAnswer = {
  readonly assignments: readonly Assignment[];
  readonly cancel: readonly Named[];
  readonly results: readonly ResultAnswer[];
  readonly leaseUntil: string;
  /** How long a lease is now: it may have been changed since the worker joined. */
  readonly leaseMs: number;
  /** How many worktrees it may keep now: that may have been changed too. */
  readonly maxWorktrees: number;
  /** Tabs that another worker has named since, until this one names its capabilities anew. */
  readonly lost?: readonly string[];
  readonly drain?: true;
};
export type LeaveOptions = { readonly session?: string };
export type RemoteWorkers = {
  join(body: JoinBody): Promise<Joined>;
  sync(worker: string, body: SyncBody, options?: { signal?: AbortSignal }): Promise<SyncAnswer>;
  /** It gets nothing more and is told so; what it runs goes on. */
  drain(worker: string, options?: LeaveOptions): Promise<void>;
  /** It leaves; its attempts are queued again at no cost. With a session, only that one leaves, not its successor. */
  leave(worker: string, options?: LeaveOptions): Promise<void>;
  /**
   * Decided before it returns, so whatever is asked for next finds it so: how attempts ended, and which of them never
   * reached the worker, whatever its syncs have named. Those are queued again at no cost; it gets nothing before its
   * next sync. The word of another session than the present one is not heard.
   */
  lastWord(worker: string, said: LastWord): void;
};
export type LastWord = {
  readonly session: string;
  readonly results: readonly ResultReport[];
  readonly unbegun: readonly Named[];
};
export type RemoteWorkersService = RemoteWorkers & {
  /** A new life: whoever the log says is there gets a full lease. */
  begin(): void;
  progressOf(task: string): unknown;
  /** Whether no worker is being spoken to, and nothing is known of what one does. */
  isIdle(): boolean;
  onCommitted(batch: readonly Applied[]): void;
  stop(error: DroverError): void;
};

type RemoteWorkersDeps = {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly bodies: BodyStore;
};

export function createRemoteWorkers(deps: RemoteWorkersDeps): RemoteWorkersService {
  const { writer, clock, newId, bodies } = deps;
  const { state } = writer;
  const results = createRemoteResults(writer);
  const progress = new Map<string, unknown>();
  /** Those that somebody has told to drain: it stays so until they join anew. */
  const drained = new Set<WorkerId>();
  const forgetting = new Map<WorkerId, () => void>();
  /** Tabs that were taken over, by the worker that had them. */
  const lost = new Map<WorkerId, Set<string>>();
  const line = createPollLine(clock);
  const leases = createLeaseBook({ clock, leaseMs: () => state.config.workers.lease, onSilent });

  const isIdle = (): boolean => line.isEmpty() && progress.size === 0;

  async function join(body: JoinBody): Promise<Joined> {
    const { id, settings, takes, target } = readJoin(body);
    const session = newId();
    const worker = id as WorkerId | null;
    const kind = target === null ? "pull" : "push";
    const decided = writer.execute({ type: "join-worker", worker, kind, session, settings, target, takes });
    if (!decided.ok) throw refused(decided.failure);
    const workerId = decided.value.id as WorkerId;
    line.forget(workerId);
    line.tell(workerId, []);
    drained.delete(workerId);
    lost.delete(workerId);
    leases.renew(workerId);
    await writer.settled();
    const { lease, maxWorktrees } = state.config.workers;
    return { workerId, session, leaseMs: lease, maxWorktrees };
  }

  async function sync(given: string, body: SyncBody, options?: { signal?: AbortSignal }): Promise<SyncAnswer> {
    const { signal } = readOptions<{ signal?: AbortSignal }>({ signal: abortSignal }, options);
    const told = readSync(body);
    const id = find(given).id;
    checkSession(find(given), told);
    line.advance(id, told.n);
    if (find(given).status === "unreachable") comeBack(find(given));
    const leaseUntil = isoTime(clock.now() + leases.renew(id));
    const { lease: leaseMs } = state.config.workers;
    const answers = (told.results ?? []).map((result) => results.take(id, result));
    const stray = told.running === undefined ? [] : hear(find(given), told.running);
    endOverdue(find(given));
    adjust(find(given), told);
    const waitMs = Math.min(told.waitMs ?? 0, Math.floor(leaseMs / POLL_PART));
    if (answers.length === 0 && waitMs > 0) await line.wait(id, { waitMs, signal, hasNews: () => hasNews(id, stray) });
    // What was said becomes durable together with what follows from it, so a result is answered with the next task.
    await writer.settled();
    const worker = state.fleet.byId.get(id);
    if (worker === undefined) throw refused({ type: "worker-unknown", worker: given });
    // It may have joined again while this one waited: what is assigned now is for its new session only.
    checkSession(worker, { ...(told.session === undefined ? {} : { session: told.session }) });
    const { maxWorktrees } = state.config.workers;
    return { ...(await say(worker, stray, leaseUntil)), results: answers, leaseUntil, leaseMs, maxWorktrees };
  }

  function find(given: string): Worker {
    const read = name()(given, "workerId");
    if (!read.ok) throw refused(read.failure);
    const worker = state.fleet.byId.get(read.value as WorkerId);
    if (worker === undefined || worker.kind === "local") throw refused({ type: "worker-unknown", worker: read.value });
    return worker;
  }

  function checkSession(worker: Worker, { session, n }: SyncBody): void {
    if (session !== undefined && session !== worker.session) throw refused({ type: "session-lost", worker: worker.id });
    const last = line.last(worker.id);
    if (n !== undefined && n < last) throw refused({ type: "sync-stale", worker: worker.id, n, last });
  }

  /** It was given up and is there after all: the same worker, with nothing in its hands. */
  function comeBack(worker: Worker): void {
    const { id, kind, session, target, takes } = worker;
    must({
      type: "join-worker",
      worker: id,
      kind,
      session,
      settings: { ...settingsOf(worker), slots: worker.offered, status: drained.has(id) ? "draining" : "ready" },
      target,
      takes,
    });
  }

  function must(command: Command): void {
    const decided = writer.execute(command);
    if (!decided.ok) throw refused(decided.failure);
  }

  /** What it runs, by its own word. Answers what it runs and does not hold. */
  function hear(worker: Worker, running: readonly RunningReport[]): Named[] {
    const named = new Set<Attempt>();
    const stray: Named[] = [];
    for (const { taskId, attempt: number, ...news } of running) {
      const attempt = state.tasks.get(taskId as Task["id"])?.attempt ?? null;
      if (attempt === null || attempt.number !== number || attempt.worker.id !== worker.id) {
        stray.push({ taskId, attempt: number });
        continue;
      }
      named.add(attempt);
      if (attempt.state === "assigned") must({ type: "start-attempt", task: attempt.task.id, attempt: number });
      if (news.progress !== undefined) progress.set(taskId, news.progress);
      if (news.usage !== undefined) {
        must({ type: "report-usage", task: attempt.task.id, attempt: number, tokens: tokensOf(news.usage) });
      }
    }
    const hasRoom = named.size < worker.offered;
    for (const attempt of [...worker.attempts]) {
      if (named.has(attempt)) continue;
      if (attempt.state === "assigned" && !(hasRoom && isDeclined(attempt))) continue;
      // One that is told to stop may have been taken back before it was ever named.
      if (attempt.startedAt < 0 && attempt.state === "stopping" && !line.wasTold(worker.id, keyOf(attempt))) continue;
      must({ type: "lose-attempt", task: attempt.task.id, attempt: attempt.number });
    }
    return stray;
  }

  /** It has been told of it again and again, has room, names what it runs, and does not name this. */
  function isDeclined(attempt: Attempt): boolean {
    const forMs = line.toldForMs(attempt.worker.id, keyOf(attempt));
    return forMs !== null && forMs >= state.config.workers.lease * LEASES_UNNAMED_MAX;
  }

  /** A worker need not say that it runs something; its time is over all the same, counted from when it was told. */
  function endOverdue(worker: Worker): void {
    if (worker.attempts.size > worker.offered) return;
    for (const { state: at, task, number, assignedAt } of [...worker.attempts]) {
      const { timeoutMs } = task.ask;
      if (at !== "assigned" || timeoutMs === null) continue;
      if (writer.now() < assignedAt + timeoutMs + state.config.workers.lease) continue;
      const report = { ...blank({ task: task.id, attempt: number, tokens: null }), outcome: "failed" as const };
      must({ type: "finish-attempt", report: { ...report, error: `timed out after ${timeoutMs} ms` } });
    }
  }

  /** What it offers now. */
  function adjust(worker: Worker, told: SyncBody): void {
    const { want, capabilities, resources } = told;
    if (capabilities !== undefined) lost.delete(worker.id);
    const slots = want === undefined ? worker.offered : Math.min(worker.offered, worker.attempts.size + want);
    const room = { cpu: resources?.cpuMillicores ?? null, memory: resources?.memoryBytes ?? null };
    const settings: WorkerSettings = {
      ...settingsOf(worker),
      slots: Math.max(1, slots),
      status: statusFor(worker, told, slots),
      note: told.note === undefined || told.note === "" ? null : told.note.toWellFormed(),
      ...(capabilities === undefined ? {} : { capabilities }),
      ...(resources === undefined ? {} : room),
    };
    must({ type: "change-worker", worker: worker.id, settings });
  }

  /** Once it is durable. */
  function noteMove({ worker, capabilities }: Extract<Event, { kind: "tabs-moved" }>): void {
    lost.set(worker, new Set([...lostBy(worker), ...capabilities]));
    line.wake(worker);
  }

  const lostBy = (worker: WorkerId): string[] => [...(lost.get(worker) ?? [])];

  /** The attempts it should know of: those it has not named, and those it must stop. */
  function dueFor(worker: Worker): Attempt[] {
    const committed = writer.committedSeq();
    return [...worker.attempts].filter(({ state: at, task }) => at !== "running" && task.lastSeq <= committed);
  }

  function hasNews(id: WorkerId, stray: readonly Named[]): boolean {
    const worker = state.fleet.byId.get(id);
    if (worker === undefined) return true;
    const isUnheard = keysFor(worker, dueFor(worker), stray).some((key) => !line.wasTold(id, key, SAY_AGAIN_MS));
    return isUnheard || lostBy(id).some((tab) => !line.wasTold(id, lossOf(tab)));
  }

  async function say(
    worker: Worker,
    stray: readonly Named[],
    leaseUntil: string,
  ): Promise<Omit<SyncAnswer, "results" | "leaseUntil" | "leaseMs" | "maxWorktrees">> {
    const due = dueFor(worker);
    const gone = lostBy(worker.id);
    line.tell(worker.id, [...keysFor(worker, due, stray), ...gone.map(lossOf)]);
    const given = due.filter(({ state: at }) => at === "assigned");
    const assignments = await Promise.all(given.map((attempt) => assignmentOf(attempt, leaseUntil)));
    const stopping = due.filter(({ state: at }) => at === "stopping").map(nameOf);
    return {
      assignments: assignments.filter((assignment) => assignment !== null),
      cancel: [...stopping, ...stray],
      ...(gone.length === 0 ? {} : { lost: gone }),
      ...(worker.status === "draining" ? { drain: true as const } : {}),
    };
  }

  async function assignmentOf(attempt: Attempt, leaseUntil: string): Promise<Assignment | null> {
    const { task, number } = attempt;
    const text = await soundText(task.seq as Seq);
    if (text !== null) {
      const { position: _, ...view } = viewOf(state, task, parseStored(text), writer.now());
      return { ...nameOf(attempt), task: view, leaseUntil };
    }
    const error = damagedReason(task.seq);
    const nothing = { tokens: 0, retryAfterMs: null, resultHash: null, resultSize: 0, permanent: true };
    writer.execute({
      type: "finish-attempt",
      report: { task: task.id, attempt: number, outcome: "failed", error, ...nothing },
    });
    return null;
  }

  /** The text of a body; null if nobody can read it any more. */
  async function soundText(seq: Seq): Promise<string | null> {
    try {
      return await bodies.read(seq);
    } catch (error) {
      if (error instanceof DamagedBody) return null;
      throw error;
    }
  }

  function onSilent(worker: WorkerId): void {
    notify(writer, { type: "leave-worker", worker, lost: true });
    forgetLater(worker);
  }

  function forgetLater(worker: WorkerId): void {
    const forget = (): void => {
      forgetting.delete(worker);
      if (state.fleet.byId.get(worker)?.status !== "unreachable") return;
      notify(writer, { type: "leave-worker", worker, lost: false });
      line.forget(worker);
      lost.delete(worker);
    };
    // One that comes back and is lost again has its hour anew.
    forgetting.get(worker)?.();
    forgetting.set(worker, clock.ringAt(clock.elapsed() + FORGET_MS, forget, { keepAlive: false }));
  }

  async function drain(given: string, options?: LeaveOptions): Promise<void> {
    const worker = find(given);
    checkSession(worker, readOptions<{ session?: string }>({ session: text(1, SESSION_MAX) }, options));
    const settings: WorkerSettings = { ...settingsOf(worker), status: "draining" };
    drained.add(worker.id);
    await writer.run({ type: "change-worker", worker: worker.id, settings });
  }

  async function leave(given: string, options?: LeaveOptions): Promise<void> {
    const said = readOptions<{ session?: string }>({ session: text(1, SESSION_MAX) }, options);
    const { id } = find(given);
    checkSession(find(given), said);
    drained.delete(id);
    leases.end(id);
    // Not later: it may have joined again by the time that its leave is durable.
    line.forget(id);
    lost.delete(id);
    await writer.run({ type: "leave-worker", worker: id, lost: false });
  }

  function lastWord(given: string, { session, unbegun, results: ends }: LastWord): void {
    const told = readSync({ session, running: unbegun, results: ends });
    const worker = state.fleet.byId.get(given as WorkerId);
    if (worker?.session !== session || worker.status === "unreachable") return;
    for (const result of told.results ?? []) results.take(worker.id, result);
    for (const { taskId, attempt: number } of told.running ?? []) {
      const attempt = state.tasks.get(taskId as Task["id"])?.attempt;
      if (attempt?.number !== number || attempt.worker !== worker) continue;
      must({ type: "return-attempt", task: attempt.task.id, attempt: number });
    }
    adjust(worker, { status: "overloaded" });
  }

  return {
    join,
    sync,
    drain,
    leave,
    lastWord,
    begin() {
      for (const { id, kind, status } of state.fleet.order) {
        if (kind !== "local") line.tell(id, []);
        if (status === "unreachable") forgetLater(id);
        else if (kind !== "local") leases.renew(id);
      }
    },
    progressOf: (task) => progress.get(task),
    isIdle,
    onCommitted(batch) {
      if (isIdle()) return;
      for (const { event } of batch) {
        if (event.kind === "task-assigned") {
          // What a former attempt said of itself is not true of this one.
          progress.delete(event.task);
          line.wake(event.worker);
        } else if (event.kind === "tabs-moved") noteMove(event);
        else if (event.kind === "worker-changed" || event.kind === "worker-left") line.wake(event.worker);
        else if ("task" in event && event.task !== null) {
          const task = state.tasks.get(event.task);
          if (task === undefined || task.attempt === null) progress.delete(event.task);
          else if (task.attempt.state === "stopping") line.wake(task.attempt.worker.id);
        }
      }
    },
    stop(error) {
      leases.stop();
      for (const cancel of forgetting.values()) cancel();
      line.stop(error);
    },
  };
}

const lossOf = (tab: string): string => `${tab} lost`;
const nameOf = ({ task, number }: Attempt): Named => ({ taskId: task.id, attempt: number });
const keyOf = ({ task, number, state }: Attempt): string => `${task.id}#${number} ${state}`;

/** Everything a worker is to hear of, by a name each. */
const keysFor = (worker: Worker, due: readonly Attempt[], stray: readonly Named[]): string[] => [
  ...due.map(keyOf),
  ...stray.map(({ taskId, attempt }) => `${taskId}#${attempt} stray`),
  ...(worker.status === "draining" ? [DRAIN] : []),
];

/** A worker that drains goes on draining until it joins again; one that wants nothing and has nothing has no slot. */
function statusFor({ status }: Worker, told: SyncBody, slots: number): WorkerSettings["status"] {
  if (status === "draining") return "draining";
  if (slots === 0) return "overloaded";
  return told.status ?? "ready";
}

function settingsOf(worker: Worker): WorkerSettings {
  const { slots, capabilities, cpu, memory, zone, status, note } = worker;
  const orNull = (room: number): number | null => (room === Number.POSITIVE_INFINITY ? null : room);
  const shown = status === "unreachable" ? "ready" : status;
  return { slots, capabilities, cpu: orNull(cpu), memory: orNull(memory), zone, status: shown, note };
}
