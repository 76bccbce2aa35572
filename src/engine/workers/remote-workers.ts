/**
 * Workers over the wire: they join, and then say and hear everything by one call, `sync`.
 *
 * A sync is level-triggered: it says all that the worker runs, and the answer says all that it should run and has not
 * named yet, and all that it must stop. So an answer that is lost loses nothing, the next one says it again. An attempt
 * that is named but not held any more (its lease had ended) is to be stopped. Syncs are numbered: an older one that
 * arrives late is refused, a newer one ends a long poll that still waits, and one worker has one session. What a sync
 * says, and its answer, are in sync.ts.
 *
 * A worker that says nothing for a lease (leases.ts) is given up as lost. One that comes back under its old session
 * goes on, but what it held is gone and the answer tells it to stop that.
 */
import { name, type TaskId, text, type WorkerId } from "../../core/base/index.ts";
import type { Attempt, Event, Worker, WorkerSettings } from "../../core/model/index.ts";
import type { Log } from "../../log/index.ts";
import type {
  AttemptRef,
  JoinBody,
  Joined,
  ResultAnswer,
  ResultReport,
  SyncAnswer,
  SyncBody,
} from "../../protocol/index.ts";
import { SESSION_MAX } from "../../protocol/shapes/index.ts";
import { type Clock, isoTime, remember } from "../../std/index.ts";
import { abortSignal, readOptions } from "../base/call-options.ts";
import { accepted, type DroverError, refused } from "../base/drover-error.ts";
import type { FileRoom } from "../files/files.ts";
import type { AttemptTokens } from "../tasks/attempt-tokens.ts";
import type { BodyStore } from "../tasks/body-store.ts";
import type { ReadInputs } from "../tasks/inputs.ts";
import type { Applied } from "../writer/group-commit.ts";
import { notify, type Writer } from "../writer/writer.ts";
import { createLeaseBook } from "./leases.ts";
import { createRemoteResults, type RemoteResults } from "./remote-results.ts";
import {
  type Answer,
  AS_LEAN_TASKS,
  AS_LEAN_TEXTS,
  AS_OBJECTS,
  AS_TEXTS,
  answerFor,
  applyOffer,
  applyRunning,
  comeBack,
  endTimedOut,
  hasChanges,
  namedAs,
  nameText,
  readJoin,
  readSync,
  type SyncParts,
  settingsOf,
  type Writing,
} from "./sync.ts";
import { createSyncPolls } from "./sync-polls.ts";
import { createUnbegun, type Unbegun } from "./unbegun.ts";

/** A worker that was given up is forgotten if it has not come back by then. */
const FORGET_MS = 3_600_000;
/** A poll lasts at most this part of a lease: a worker that hears nothing until its lease is over has lost it. */
const POLL_PART = 2;

type SyncOptions = { signal?: AbortSignal };
type LeaveOptions = { readonly session?: string };
/** Workers in other processes. */
export type RemoteWorkers = {
  /** A worker joins; under the same id a new session begins. */
  join(body: JoinBody): Promise<Joined>;
  /** A worker says what runs and what has ended; it is answered what to run and what to stop. */
  sync(worker: string, body: SyncBody, options?: SyncOptions): Promise<SyncAnswer>;
  /** The same, answered as the text of its JSON: what is stored of a task is not read and written again for it. */
  syncText(worker: string, body: SyncBody, options?: SyncOptions): Promise<string>;
  /** It gets nothing more, and its next answer says so; what it runs goes on. */
  drain(worker: string, options?: LeaveOptions): Promise<void>;
  /** It leaves; its attempts are queued again at no cost. With a session, only that one leaves, not its successor. */
  leave(worker: string, options?: LeaveOptions): Promise<void>;
  /**
   * Decided before it returns, so whatever is asked for next finds it so: how attempts ended, and which of them never
   * reached the worker, whatever its syncs have named. Those are queued again at no cost; it gets nothing before its
   * next sync. The word of another session than the present one does not count.
   */
  lastWord(worker: string, said: LastWord): void;
};
export type LastWord = {
  readonly session: string;
  readonly results: readonly ResultReport[];
  readonly unbegun: readonly AttemptRef[];
};
type RemoteWorkersService = RemoteWorkers & {
  /** A new life: every worker that the log has gets a full lease. */
  begin(): void;
  progressOf(task: string): unknown;
  /** Whether no worker has synced, and no progress of one is known. */
  isIdle(): boolean;
  onCommitted(batch: readonly Applied[]): void;
  stop(error: DroverError): void;
};

export function createRemoteWorkers(deps: {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly bodies: BodyStore;
  readonly inputs: ReadInputs;
  readonly files: Pick<FileRoom, "faultOf">;
  readonly tokens: AttemptTokens;
  readonly log: Pick<Log, "readRecord">;
}): RemoteWorkersService {
  const { writer, clock, newId, bodies, inputs, tokens } = deps;
  const { state } = writer;
  const missing = new WeakMap<Attempt, string>();
  const results = createRemoteResults(writer, deps.files, deps.log, missing);
  const unbegun = createUnbegun(writer);
  const progress = new Map<string, unknown>();
  /** Those that were drained by a call: they stay so until they join anew. */
  const drained = new Set<WorkerId>();
  const forgetting = new Map<WorkerId, () => void>();
  /** Tabs that were taken over, by the worker that had them. */
  const lostTabs = new Map<WorkerId, ReadonlySet<string>>();
  const polls = createSyncPolls(clock);
  const leases = createLeaseBook({ clock, leaseMs: () => state.config.workers.lease, onSilent });
  const over = new Map<WorkerId, Map<string, number>>();
  const parts = { writer, bodies, inputs, tokens, polls, progress, missing, lostTabs, over };

  const isIdle = (): boolean => polls.isEmpty() && progress.size === 0;

  async function join(body: JoinBody): Promise<Joined> {
    const { id, settings, takes, target } = readJoin(body);
    const session = newId();
    const worker = { worker: id as WorkerId | null, kind: target === null ? "pull" : "push" } as const;
    const decided = writer.execute({ type: "join-worker", ...worker, session, settings, target, takes });
    const workerId = accepted(decided).id as WorkerId;
    forgetWord(parts, workerId);
    polls.markNotified(workerId, []);
    drained.delete(workerId);
    leases.renew(workerId);
    await writer.settled();
    const { lease, maxWorktrees } = state.config.workers;
    const tokenKey = tokens.keyFor({ id: workerId, session });
    return { workerId, session, leaseMs: lease, maxWorktrees, brief: true, ahead: true, tokenKey };
  }

  function find(given: string): Worker {
    if (state.fleet.byId.get(given as WorkerId)?.kind === "local")
      throw refused({ type: "worker-local", worker: given });
    return findRemote(writer, given);
  }
  const check = (worker: Worker, sync: SyncBody): void => checkSession(parts, worker, sync);

  function onSilent(worker: WorkerId): void {
    notify(writer, { type: "leave-worker", worker, lost: true });
    forgetLater(worker);
  }

  function forgetLater(worker: WorkerId): void {
    const forget = (): void => {
      forgetting.delete(worker);
      if (state.fleet.byId.get(worker)?.status !== "unreachable") return;
      notify(writer, { type: "leave-worker", worker, lost: false });
      drained.delete(worker);
      forgetWord(parts, worker);
    };
    // One that comes back and is lost again has its hour anew.
    forgetting.get(worker)?.();
    forgetting.set(worker, clock.ringAt(clock.elapsed() + FORGET_MS, forget, { keepAlive: false }));
  }

  async function drain(given: string, options?: LeaveOptions): Promise<void> {
    const worker = find(given);
    check(worker, readOptions<{ session?: string }>({ session: text(1, SESSION_MAX) }, options));
    const settings: WorkerSettings = { ...settingsOf(worker), status: "draining" };
    drained.add(worker.id);
    await writer.run({ type: "change-worker", worker: worker.id, settings });
  }

  async function leave(given: string, options?: LeaveOptions): Promise<void> {
    const said = readOptions<{ session?: string }>({ session: text(1, SESSION_MAX) }, options);
    const { id } = find(given);
    check(find(given), said);
    drained.delete(id);
    leases.end(id);
    // Not later: it may have joined again by the time that its leave is durable.
    forgetWord(parts, id);
    await writer.run({ type: "leave-worker", worker: id, lost: false });
  }

  function lastWord(given: string, { session, unbegun: neverPosted, results: ended }: LastWord): void {
    const report = readSync({ session, running: neverPosted, results: ended });
    const worker = state.fleet.byId.get(given as WorkerId);
    if (worker?.session !== session || worker.status === "unreachable") return;
    for (const result of report.results ?? []) results.take(worker.id, result);
    unbegun.take(worker, report.running ?? []);
    applyOffer(writer, worker, { status: "overloaded" });
  }

  return {
    join,
    ...createSync({ ...parts, clock, leases, drained, results, unbegun }),
    drain,
    leave,
    lastWord,
    begin() {
      for (const { id, kind, status } of state.fleet.order) {
        if (kind !== "local") polls.markNotified(id, []);
        if (status === "unreachable") forgetLater(id);
        else if (kind !== "local") leases.renew(id);
      }
    },
    progressOf: (task) => progress.get(task),
    isIdle,
    onCommitted(batch) {
      if (isIdle()) return;
      const now = clock.elapsed();
      for (const { event } of batch) noteEvent(parts, event, now);
    },
    stop(error) {
      leases.stop();
      for (const cancel of forgetting.values()) cancel();
      polls.stop(error);
    },
  };
}

type Syncing = SyncParts & {
  readonly clock: Clock;
  readonly leases: Pick<ReturnType<typeof createLeaseBook>, "renew">;
  readonly drained: ReadonlySet<WorkerId>;
  readonly results: RemoteResults;
  readonly unbegun: Unbegun;
};

function createSync(parts: Syncing): Pick<RemoteWorkers, "sync" | "syncText"> {
  const { writer, polls, clock } = parts;
  const { state } = writer;

  /** What a sync says is taken down; answers what its answer is made of, and what became of its results. */
  function hear(given: string, said: SyncBody): { id: WorkerId; stray: AttemptRef[]; answers: ResultAnswer[] } {
    const found = findRemote(writer, given);
    const { id } = found;
    checkSession(parts, found, said);
    polls.advance(id, said.n);
    if (found.status === "unreachable") comeBack(writer, found, parts.drained);
    const worker = findRemote(writer, given);
    const answers = (said.results ?? []).map((result) => parts.results.take(id, result));
    // What is given back is not lost because it is not named.
    parts.unbegun.take(worker, said.unbegun ?? []);
    const stray = said.running === undefined ? [] : applyRunning(parts, worker, said.running);
    endTimedOut(writer, worker);
    if (said.capabilities !== undefined) parts.lostTabs.delete(id);
    dropOld(parts.over, id, clock.elapsed() - OVER_MS);
    applyOffer(writer, worker, said);
    return { id, stray, answers };
  }

  async function answer<Written>(
    given: string,
    said: SyncBody,
    signal: AbortSignal | undefined,
    writing: Writing<Written>,
  ): Promise<Omit<Answer<Written>, "said"> & { readonly said: Omit<SyncAnswer, "assignments"> }> {
    let leaseMs = state.config.workers.lease;
    const { id, stray, answers } = hear(given, said);
    const { seq: saidBy } = state;
    let leftMs = parts.leases.renew(id);
    const heardAt = clock.elapsed();
    let heldMs = 0;
    const isLate = answers.some(({ code }) => code === "stale_attempt");
    const known = isLate ? await parts.results.knownAgain(said.results ?? [], answers) : answers;
    const untold = said.brief === true ? known.filter(isWorthTelling) : known;
    const waitMs = Math.min(said.waitMs ?? 0, Math.floor(leaseMs / POLL_PART));
    if (untold.length === 0 && waitMs > 0) {
      await polls.wait(id, { waitMs, signal, hasChanges: () => hasChanges(parts, id, stray) });
      heldMs = Math.floor(clock.elapsed() - heardAt);
    }
    // What it said must be durable, and that it is gone or is to go; not what others said while it waited.
    if (writer.committedSeq() < saidBy || !isStaying(state.fleet.byId.get(id), said)) await writer.settled();
    const worker = state.fleet.byId.get(id);
    if (worker === undefined) throw refused({ type: "worker-unknown", worker: given });
    // It may have joined again while this one waited: what is assigned now is for its new session only.
    checkSession(parts, worker, { ...(said.session === undefined ? {} : { session: said.session }) });
    const { maxWorktrees, lease } = state.config.workers;
    // Who hears the answer was there all the time; who has gone, or was given up, was not.
    const isRenewed = heldMs > 0 && signal?.aborted !== true && worker.status !== "unreachable";
    if (isRenewed) {
      leaseMs = lease;
      leftMs = parts.leases.renew(id);
    }
    const leaseUntil = isoTime(clock.now() + leftMs);
    const news = await answerUnlessOvertaken(parts, worker, said, stray, leaseUntil, writing);
    // A session outlives the key of a server whose log is served from another directory.
    const key = isLean(said) ? { tokenKey: parts.tokens.keyFor(worker) } : {};
    const own = { ...(said.n === undefined ? {} : { n: said.n }), ...(isRenewed ? { heldMs } : {}) };
    return { ...news, said: { ...news.said, results: untold, ...own, leaseUntil, ...key, leaseMs, maxWorktrees } };
  }

  return {
    async sync(given, body, options) {
      const { signal } = readSyncOptions(options);
      const asked = readSync(body);
      if (isLean(asked)) {
        const { given: attempts, written: tasks, said } = await answer(given, asked, signal, AS_LEAN_TASKS);
        return { named: attempts.map(namedAs), ...said, assignments: [], tasks };
      }
      const { written: assignments, said } = await answer(given, asked, signal, AS_OBJECTS);
      return { assignments, ...said };
    },
    async syncText(given, body, options) {
      const { signal } = readSyncOptions(options);
      const asked = readSync(body);
      if (!isLean(asked)) {
        const { written, said } = await answer(given, asked, signal, AS_TEXTS);
        return `${JSON.stringify(said).slice(0, -1)},"assignments":[${written.join(",")}]}`;
      }
      const { given: attempts, written, said } = await answer(given, asked, signal, AS_LEAN_TEXTS);
      const named = attempts.map(nameText).join(",");
      const rest = JSON.stringify(said).slice(1, -1);
      return `{"named":[${named}],${rest},"assignments":[],"tasks":[${written.join(",")}]}`;
    },
  };
}

const readSyncOptions = (options: SyncOptions | undefined) =>
  readOptions<{ signal?: AbortSignal }>({ signal: abortSignal }, options);

/** Only a brief sync is. */
const isLean = ({ brief, lean }: SyncBody): boolean => brief === true && lean === true;

/**
 * If a newer sync of the worker is here, its answer says all. What this one gave would be run and reported while that
 * one still waits with its results, and they would all be said a second time.
 */
function answerUnlessOvertaken<Written>(
  parts: SyncParts,
  worker: Worker,
  { n = Number.POSITIVE_INFINITY, brief }: SyncBody,
  stray: readonly AttemptRef[],
  leaseUntil: string,
  writing: Writing<Written>,
): Promise<Answer<Written>> {
  if (n < parts.polls.last(worker.id)) return Promise.resolve({ given: [], written: [], said: { cancel: [] } });
  return answerFor(parts, worker, stray, brief === true ? null : leaseUntil, writing);
}

/** Under the session that it said, and for longer. */
const isStaying = (worker: Worker | undefined, { session }: SyncBody): boolean =>
  worker !== undefined && worker.status !== "draining" && (session === undefined || session === worker.session);

/** In brief: what is not named was taken. */
const isWorthTelling = ({ accepted: isTaken, code }: ResultAnswer): boolean => !isTaken || code !== undefined;

function findRemote({ state }: Writer, given: string): Worker {
  const id = accepted(name()(given, "workerId"));
  const worker = state.fleet.byId.get(id as WorkerId);
  if (worker === undefined || worker.kind === "local") throw refused({ type: "worker-unknown", worker: id });
  return worker;
}

/** A sync counts if it is of the present session, and no older than the last. */
function checkSession({ polls }: SyncParts, { id, session: present }: Worker, { session, n }: SyncBody): void {
  const last = polls.last(id);
  if (session !== undefined && session !== present) throw refused({ type: "session-lost", worker: id });
  if (n !== undefined && n < last) throw refused({ type: "sync-stale", worker: id, n, last });
}

/** What was to be said to a worker that is another now, or gone. */
function forgetWord({ polls, lostTabs, over }: SyncParts, worker: WorkerId): void {
  polls.forget(worker);
  lostTabs.delete(worker);
  over.delete(worker);
}

/** For so long a worker hears in every answer that a task has ended, and of so many. */
const OVER_MS = 60_000;
const OVER_MAX = 1000;
const ENDS: ReadonlySet<string> = new Set(["task-cancelled", "task-failed", "task-skipped"]);

/** A loop, or a task that had asked, ended while it waited: the worker of its last attempt keeps something for it. */
function noteOver({ writer, polls, over }: SyncParts, id: TaskId, now: number): void {
  const { attempt, extra, lastWorker } = writer.state.tasks.get(id) ?? { attempt: null, extra: null, lastWorker: null };
  const worker = lastWorker === null ? undefined : writer.state.fleet.byId.get(lastWorker);
  const wasToGoOn = (extra?.loop?.rounds.length ?? 0) > 0 || extra?.approval != null;
  if (worker?.kind !== "pull" || attempt !== null || !wasToGoOn) return;
  const tasks = over.get(worker.id) ?? new Map<string, number>();
  over.set(worker.id, tasks);
  remember(tasks, id, now, OVER_MAX);
  polls.wake(worker.id);
}

function dropOld(over: Map<WorkerId, Map<string, number>>, worker: WorkerId, before: number): void {
  const tasks = over.get(worker);
  for (const [task, at] of tasks ?? []) if (at < before) tasks?.delete(task);
  if (tasks?.size === 0) over.delete(worker);
}

/** Wakes the poll of the worker that an event concerns, and forgets progress that is no longer true. */
function noteEvent(parts: SyncParts, event: Event, now: number): void {
  const { writer, polls, progress, lostTabs, over } = parts;
  // Of every task, and of no concern here.
  if (event.kind === "task-submitted" || event.kind === "attempt-started") return;
  if (event.kind === "task-done") {
    if (progress.size > 0) progress.delete(event.task);
  } else if (event.kind === "task-assigned") {
    // What a former attempt said of itself is not true of this one.
    if (progress.size > 0) progress.delete(event.task);
    polls.wake(event.worker);
  } else if (event.kind === "tabs-moved") {
    lostTabs.set(event.worker, new Set([...(lostTabs.get(event.worker) ?? []), ...event.capabilities]));
    polls.wake(event.worker);
  } else if (event.kind === "worker-changed" || event.kind === "worker-left") polls.wake(event.worker);
  else if ("task" in event && event.task !== null) {
    const attempt = writer.state.tasks.get(event.task)?.attempt ?? null;
    if (attempt === null) progress.delete(event.task);
    else if (attempt.state !== "running") polls.wake(attempt.worker.id);
    if (ENDS.has(event.kind)) noteOver(parts, event.task, now);
    else if (event.kind === "task-retried") for (const tasks of over.values()) tasks.delete(event.task);
  }
}
