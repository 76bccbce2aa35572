/**
 * Drover embedded in a program: open it, give it tasks, run them, ask it why.
 *
 *     const drover = await openDrover({ data: ".drover" });
 *     await drover.worker({ slots: 4 }, async (task, context) => work(task.params));
 *     const { taskId } = await drover.submit({ agentId: "ann", action: "build" });
 *     const task = await drover.wait(taskId);
 *
 * Without `data` everything is in memory and ends with the process. Every answer is durable when it
 * arrives. This file only joins the parts: the writer decides, the log keeps, workers run.
 */
import { randomUUID } from "node:crypto";
import type { ProjectId, Reader } from "../core/base/index.ts";
import {
  badField,
  fail,
  flag,
  isRecord,
  isSha256,
  milliseconds,
  name,
  ok,
  readSection,
  seq,
  whole,
} from "../core/base/index.ts";
import { type Config, projectFields, readConfig, settingsFor } from "../core/config/index.ts";
import type { State } from "../core/model/index.ts";
import { type Why, why } from "../core/why/index.ts";
import type { Anchor, Head, Log, VerifyReport } from "../log/index.ts";
import { createMemoryLog } from "../log/memory/index.ts";
import { openSqliteLog as open, type SqliteLogOptions } from "../log/sqlite/index.ts";
import type {
  AnyParams,
  ConfigInput,
  GateStatus,
  Inputs,
  PauseBody,
  PauseStatus,
  ProjectView,
  SharedCalls,
  UsageReport,
  WithPermit,
  WorkerView,
} from "../protocol/index.ts";
import { type Clock, clockFrom, realClock, withSteadyDate } from "../std/index.ts";
import { readOptions } from "./base/call-options.ts";
import { accepted, badInput, type DroverError, reading, refused } from "./base/drover-error.ts";
import { type Callbacks, createCallbacks } from "./callbacks.ts";
import { beginLife, type ConfigApi, createConfigApi } from "./config-api.ts";
import { createFeed, type FeedEvent, type FeedOptions, readFeedOptions } from "./feed.ts";
import type { Files } from "./files/files.ts";
import type { FileMedium } from "./files/medium.ts";
import { openFiles } from "./files/open-file.ts";
import { createLocalPermits, readGateName } from "./permits/local-permits.ts";
import { createRemotePermits, type RemotePermits } from "./permits/remote-permits.ts";
import { createPlans, type Plans, waitForPlan } from "./plans/plans.ts";
import { createSchedules, type Schedules } from "./schedules/schedules.ts";
import { createPast } from "./snapshots/past.ts";
import { createSnapshotter } from "./snapshots/snapshotter.ts";
import { type ArtifactExists, type ArtifactWatch, artifactSourceFor, watchArtifacts } from "./tasks/artifacts.ts";
import { type AttemptTokens, createAttemptTokens } from "./tasks/attempt-tokens.ts";
import { createEndWatch, isEnd } from "./tasks/await-end.ts";
import { createBodyStore } from "./tasks/body-store.ts";
import { createInputs } from "./tasks/inputs.ts";
import { createRejectedCounter, createRejectedRing } from "./tasks/rejected.ts";
import { createTaskApi, type TaskApi } from "./tasks/task-api.ts";
import { type GateView, type GateWithCalls, gateDetail, gateViews } from "./views/gate-view.ts";
import { queueView } from "./views/queue-view.ts";
import { projectViews, statsOf, workerView } from "./views/stats.ts";
import { type UsageOptions, usageOf } from "./views/usage.ts";
import { createLocalWorkers, type Handler, type LocalWorker, type WorkerOptions } from "./workers/local-workers.ts";
import { createRemoteWorkers, type RemoteWorkers } from "./workers/remote-workers.ts";
import { type CommitListener, createCommitWatch } from "./writer/group-commit.ts";
import { recover } from "./writer/recovery.ts";
import { createStorageGuard } from "./writer/storage-guard.ts";
import { onceDurable, startWriter, type Writer, type WriterHooks } from "./writer/writer.ts";

const LEAD_MS = 10_000;
/** What a log, a clock or a medium must at least be able to do. */
const METHODS = {
  log: ["append", "read", "readRecord", "head", "loadSnapshot", "acquireLead", "verify", "close"],
  clock: ["now", "elapsed", "defer", "ringAt"],
  fileMedium: ["sweep", "list", "receive", "read", "touch", "remove"],
} as const;

/** How a Drover is opened. */
export type OpenOptions = {
  /** The data directory; absent: in memory. */
  readonly data?: string;
  /** A log that is open already; it is closed with the Drover. */
  readonly log?: Log;
  /** What differs from the defaults; see docs/reference/config.md. Absent: what the log has stays in force. */
  readonly config?: ConfigInput | Config;
  /** The wall clock in milliseconds, for tests. */
  readonly now?: () => number;
  /** Whether an input artifact is there; by default, whether the file exists under `artifacts.root`. */
  readonly artifactExists?: ArtifactExists;
  /** Called with what went wrong though Drover goes on, such as a snapshot; by default a warning of the process. */
  readonly onWarning?: (message: string) => void;
  /** The time, the next turn and the alarms, for simulators and tests. */
  readonly clock?: Clock;
  /** Makes a name that no other batch or session has, for simulators and tests. */
  readonly newId?: () => string;
  /** Where the contents of files lie, for simulators and tests. */
  readonly fileMedium?: FileMedium;
};

/** What time it is in the log. */
export type LogTime = {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Below zero while the wall clock has jumped ahead and is not believed yet. */
  readonly aheadMs: number;
};
type VerifyOptions = { readonly expect?: { readonly seq: number; readonly hash: string } };

/** Drover inside a program. */
export type Drover = AsyncDisposable &
  Pick<SharedCalls, "stats" | "queue" | "putProject" | "resetGate" | "removeGate" | "pause" | "resume"> &
  TaskApi &
  ConfigApi & {
    /** Every condition between a task and its start, now or as of an event. */
    why(
      task: string,
      options?: {
        /** The number of an event; absent: now. */
        at?: number;
      },
    ): Promise<Why>;
    /** Joins a worker that runs tasks in this process. */
    worker(options: WorkerOptions, handler: Handler): Promise<LocalWorker>;
    /** The same, for a handler that names what it is given and what it answers. */
    worker<Params extends object = AnyParams, Result = unknown, Needed extends object = Inputs>(
      options: WorkerOptions,
      handler: Handler<Params, Result, Needed>,
    ): Promise<LocalWorker>;
    /** All workers. */
    workers(): Promise<WorkerView[]>;
    /** Workers in other processes. */
    readonly remote: RemoteWorkers;
    /** Tokens by which attempts submit children over the wire. */
    readonly attemptTokens: AttemptTokens;
    /** Permits for callers in other processes. */
    readonly permits: RemotePermits;
    /** The files that tasks leave. */
    readonly files: Files;
    /** Recurring tasks. */
    readonly schedules: Schedules;
    /** Tasks that are put as one. */
    readonly plans: Plans;
    /** Ends of tasks that a webhook is to be notified of. */
    readonly callbacks: Callbacks;
    /** What was used, summed up by project, agent, type, day or a label. */
    usage(options?: UsageOptions): Promise<UsageReport>;
    /** All projects: weight, budget, charge, level, target. */
    projects(): Promise<ProjectView[]>;
    /** All gates: what is out, what waits, what holds them. */
    gates(): Promise<GateView[]>;
    /** One gate, with what it has done in all and the calls that are out or wait. */
    gate(id: string): Promise<GateWithCalls>;
    /** Makes a call when its gate lets it out; a 429 or 529 it throws goes back in the queue with its age. */
    readonly withPermit: WithPermit;
    /** The events of the log: those there are, or, with `follow`, also those to come. */
    events(options?: FeedOptions): AsyncIterable<FeedEvent>;
    /** Calls the listener with each batch of events as it is committed, and what that cost; answers how to stop. */
    watch(listener: CommitListener): () => void;
    /** Where the log ends. */
    head(): Promise<Head>;
    /** What time it is in the log, and how far that is ahead of the wall clock. */
    logTime(): LogTime;
    /** Looks for awaited artifacts now instead of at the next poll. */
    lookForArtifacts(): Promise<void>;
    /** Makes a snapshot now; answers the number of the event it is of. */
    snapshot(): Promise<number>;
    /** Checks the whole log: its chain, its signatures, its bodies. */
    verify(options?: VerifyOptions): Promise<VerifyReport>;
    /** Resolves with the reason if the engine must stop: the log failed, or another writer took over. */
    readonly failed: Promise<DroverError>;
    /**
     * Admits no more, stops handlers and waits for them up to `workers.killGrace`; then what is under way
     * becomes durable and the log is closed. The rest stays in the log. May be called twice.
     */
    close(): Promise<void>;
    /** The state, for reading only. */
    readonly state: State;
  };

/** Opens a Drover inside this program: in memory, or with its data in a directory. */
export async function openDrover(options: OpenOptions = {}): Promise<Drover> {
  const config = reading(options, "", () => {
    checkOptions(options);
    return accepted(readConfig(options.config));
  });
  const log =
    options.log ?? (options.data === undefined ? createMemoryLog() : await openSqliteLog({ directory: options.data }));
  try {
    return apiOf(await startParts(options, log, options.config === undefined ? null : config));
  } catch (error) {
    await log.close();
    throw error;
  }
}

function checkOptions(options: OpenOptions): void {
  if (!isRecord(options)) throw badInput("options", options, "an object such as { data: …, config: … }");
  const known = ["data", "log", "config", "now", "artifactExists", "onWarning", "clock", "newId", "fileMedium"];
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) throw refused({ type: "unknown-field", field: key, known });
  }
  if (options.data !== undefined) accepted(directoryPath(options.data, "data"));
  if (options.data !== undefined && options.log !== undefined)
    throw badInput("log", "a log", "absent where data names a directory: one or the other");
  for (const key of ["log", "clock", "fileMedium"] as const) {
    const given: unknown = options[key];
    const able = (typeof given === "object" && given !== null ? given : {}) as Readonly<Record<string, unknown>>;
    const missing = METHODS[key].filter((method) => typeof able[method] !== "function");
    if (given !== undefined && missing.length > 0)
      throw badInput(key, given, `a ${key}: an object with the functions ${missing.join(", ")}`);
  }
  for (const key of ["now", "artifactExists", "onWarning", "newId"] as const) {
    if (options[key] !== undefined && typeof options[key] !== "function")
      throw badInput(key, options[key], "a function");
  }
}

async function startParts(options: OpenOptions, log: Log, config: Config | null) {
  const { artifactExists, newId = randomUUID, clock = options.now ? clockFrom(options.now) : realClock } = options;
  const onWarning = options.onWarning ?? ((message: string) => process.emitWarning(message, "DroverWarning"));
  const { state, snapshotSeq } = await recover(log);
  const artifactSource = artifactSourceFor(artifactExists, () => state.config.artifacts);
  const lead = await log.acquireLead(newId(), milliseconds(LEAD_MS));
  const failed = Promise.withResolvers<DroverError>();
  const bodies = createBodyStore(log);
  const ends = createEndWatch();
  const rejected = createRejectedRing();
  const commits = createCommitWatch(onWarning);
  const storage = createStorageGuard({ state, log });
  let watch: ArtifactWatch | null = null;
  const hooks: WriterHooks = {
    onApplied: (event) => {
      localPermits.onApplied(event);
      permits.onApplied(event);
      watch?.onApplied(event);
      if (isEnd(event)) bodies.release(state.tasks.get(event.task)?.seq ?? 0);
    },
    isAwaited: (event) => {
      // Only listeners want a submit; callers that wait want a good end too. Later callers find both in the state.
      if (event.kind !== "task-submitted" && event.kind !== "task-done") return true;
      if (commits.isHeard()) return true;
      return event.kind === "task-done" && !(ends.isIdle() && remote.isIdle() && state.callbacks.due.size === 0);
    },
    onCommitted: (batch, commit) => {
      ends.onCommitted(batch);
      workers.onCommitted(batch);
      remote.onCommitted(batch);
      callbacks.onCommitted(batch);
      snapshots.onCommitted(writer.committedSeq());
      commits.onCommitted(batch, commit);
      feed.onCommitted();
    },
    onStopped: (error) => {
      localPermits.stop(error);
      ends.stop(error);
      workers.stop(error);
      remote.stop(error);
      permits.stop(error);
      schedules.stop();
      if (error.code !== "closed") failed.resolve(error);
    },
  };
  const writer: Writer = startWriter({ state, log, epoch: lead.epoch, clock, newId, storage, hooks });
  const feed = createFeed({ log, head: writer.committedSeq, state });
  const steady = withSteadyDate(clock);
  const localPermits = createLocalPermits(writer, steady);
  const permits = createRemotePermits(writer, steady);
  const callbacks = createCallbacks({ writer, bodies, task: (id) => tasks.task(id) });
  const files = openFiles(options, { state, bodies, clock: steady, settled: writer.settled, onWarning });
  const tokens = createAttemptTokens(state, options.data);
  const inputs = createInputs({ writer, log, bodies });
  const forWorkers = { writer, clock: steady, newId, bodies, inputs, files, tokens };
  const workers = createLocalWorkers({ ...forWorkers, permits: localPermits, tasks: () => tasks });
  const remote = createRemoteWorkers(forWorkers);
  const progressOf = (task: string): unknown => workers.progressOf(task) ?? remote.progressOf(task);
  const snapshots = createSnapshotter({
    log,
    writer,
    config: () => state.config,
    lastSeq: snapshotSeq,
    onFailure: (error) => onWarning(snapshotWarning(error, state.config.log.snapshotEvery)),
    onPruned: feed.onPruned,
  });
  const rejections = createRejectedCounter(writer, steady);
  const sources = { writer, log, bodies, ends, rejected, rejections, artifacts: artifactSource, progressOf };
  const { api: tasks, submitNow: submit } = createTaskApi(sources);
  const schedules = createSchedules({ writer, storage, clock: steady, submit, artifacts: artifactSource, onWarning });
  await beginLife(writer, config);
  await Promise.all([storage.measure(), files.ready]);
  remote.begin();
  schedules.begin();
  const artifacts = watchArtifacts({ writer, clock: steady, exists: artifactSource.exists, onWarning });
  watch = artifacts;
  const plans: Plans = { ...createPlans({ writer, bodies, clock }), wait: waitForPlan(writer, tasks.waitGroup) };
  const apis = { tasks, plans, workers, remote, permits, schedules, callbacks, localPermits, files, artifacts, tokens };
  return {
    ...apis,
    writer,
    log,
    feed,
    commits,
    rejections,
    snapshots,
    artifactSource,
    failed: failed.promise,
  };
}

const snapshotWarning = (error: unknown, every: number): string =>
  `a snapshot, or the pruning behind it, failed; nothing more is pruned, and the next is tried ${every} events on: ` +
  String(error);

/** The parts as one thing. Reads answer when what they saw is durable. */
function apiOf(parts: Awaited<ReturnType<typeof startParts>>): Drover {
  const { writer, log, feed, tasks, workers, localPermits, rejections, snapshots, artifacts, failed } = parts;
  const { plans, remote, permits, schedules, callbacks, files, tokens: attemptTokens } = parts;
  const { state } = writer;
  const lookAtPast = createPast(log);

  const read = <Value>(view: () => Value): Promise<Value> => onceDurable(writer, view);

  async function explain(task: string, options?: { at?: number }): Promise<Why> {
    const { at } = readOptions<{ at?: number }>({ at: whole(1) }, options);
    const id = tasks.idOf(task);
    await writer.settled();
    const answer =
      at === undefined
        ? why(state, id, writer.now())
        : await lookAtPast(at, writer.committedSeq(), (then) => why(then, id, then.at));
    await writer.settled();
    if (answer.ok) return parts.artifactSource.explain(answer.value);
    // A task that was rejected waits for nothing.
    const found = await tasks.task(task).catch(() => null);
    throw refused(found?.state === "rejected" ? { type: "task-ended", task: id, state: "rejected" } : answer.failure);
  }

  async function setPaused(target: PauseBody, paused: boolean): Promise<PauseStatus> {
    const { scope, id } = readTarget(target);
    await writer.run({ type: "set-paused", scope, id, paused });
    return { ...target, status: paused ? "paused" : "active" };
  }

  async function onGate(type: "reset-gate" | "remove-gate", given: string): Promise<GateStatus> {
    const gate = readGateName(given);
    await writer.run({ type, gate });
    return { status: type === "reset-gate" ? "reset" : "removed", gate };
  }

  async function shut(): Promise<void> {
    artifacts.stop();
    schedules.stop();
    writer.stopAdmitting();
    await workers.leaveAll();
    await snapshots.stop();
    await files.stop();
    rejections.flush();
    await writer.close();
    feed.close();
    await log.close();
  }

  let closing: Promise<void> | null = null;
  function close(): Promise<void> {
    closing ??= shut();
    return closing;
  }

  return {
    ...tasks,
    state,
    failed,
    why: explain,
    worker: (worker: WorkerOptions, handler: unknown) => workers.join(worker, handler as Handler),
    remote,
    workers: () => read(() => state.fleet.order.map(workerView)),
    usage: (given) => read(() => usageOf(state, given)),
    projects: () => read(() => projectViews(state, writer.now())),
    putProject: (id, settings) => putProject(writer, id, settings),
    gates: () => read(() => gateViews(state, writer.now())),
    gate: (id) => read(() => gateDetail(state, readGateName(id), writer.now())),
    resetGate: (gate) => onGate("reset-gate", gate),
    removeGate: (gate) => onGate("remove-gate", gate),
    withPermit: (gate, call, permit) => localPermits.withPermit(gate, call, permit),
    stats: () => {
      rejections.flushIfDue();
      return read(() => statsOf(state, files.totals()));
    },
    events: (given) => feed.read(readFeedOptions(given)),
    watch: parts.commits.watch,
    head: () => log.head(),
    logTime: () => ({ at: writer.now(), aheadMs: writer.aheadMs() }),
    ...createConfigApi(writer),
    attemptTokens,
    permits,
    files: { put: files.put, get: files.get, open: files.open, totals: files.totals },
    schedules,
    plans,
    callbacks,
    queue: () => read(() => queueView(state, writer.now())),
    pause: (target = {}) => setPaused(target, true),
    resume: (target = {}) => setPaused(target, false),
    lookForArtifacts: async () => {
      await artifacts.look();
      await writer.settled();
    },
    snapshot: () => snapshots.make(),
    verify: async (given) => log.verify(readOptions<{ expect?: Anchor }>({ expect: anchor }, given)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function putProject(writer: Writer, id: string, given: unknown): Promise<ProjectView> {
  const project = accepted(name()(id, "project")) as ProjectId;
  const { state } = writer;
  const base = state.projects.get(project)?.settings ?? settingsFor(state.config, project)[0];
  const settings = accepted(readSection(projectFields(base), base, given, ""));
  await writer.run({ type: "put-project", project, settings });
  return projectViews(state, writer.now()).find((view) => view.id === id) as ProjectView;
}

const postHash: Reader<string> = (value, field) =>
  isSha256(value) ? ok(value) : fail(badField(field, value, "a hash of 64 hex digits"));

const anchor: Reader<Anchor> = (value, field) => {
  if (!isRecord(value)) return fail(badField(field, value, "an object with seq and hash"));
  const at = whole(0)(value.seq, `${field}.seq`);
  const hash = postHash(value.hash, `${field}.hash`);
  if (!at.ok) return at;
  return hash.ok ? ok({ seq: seq(at.value), hash: hash.value }) : hash;
};

/**
 * What is to be paused or go on: the fleet, a project or a task. No target is the whole fleet. So a name that came out
 * undefined, as `{ project: settings.project }` may, must not be taken for one that was left out.
 */
function readTarget(target: PauseBody): { scope: "fleet" | "project" | "task"; id: string } {
  const read = readSection<PauseBody>({ project: name(), task: name() } as never, {}, target, "");
  const { project, task } = accepted(read);
  if (project !== undefined && task !== undefined) throw badInput("task", task, "absent where a project is named");
  if (project !== undefined) return { scope: "project", id: project };
  if (task !== undefined) return { scope: "task", id: task };
  const [unsaid] = Object.keys(target);
  if (unsaid !== undefined)
    throw badInput(unsaid, undefined, `the name of a ${unsaid}; or absent, for the whole fleet`);
  return { scope: "fleet", id: "" };
}

const directoryPath: Reader<string> = (value, field) =>
  typeof value === "string" && !/^$|\0/.test(value)
    ? ok(value)
    : fail(badField(field, value, "the path of a directory, without NUL characters"));

/** Opens the log in a directory, to open Drover with or to read beside it: also for reading only. */
export async function openSqliteLog(options: SqliteLogOptions): Promise<Log> {
  const fields = { directory: directoryPath, readOnly: flag, maxBytes: whole(1) };
  const read = readSection<Partial<SqliteLogOptions>>(fields as never, {}, options, "options");
  const { directory, ...rest } = accepted(read);
  if (directory === undefined) throw badInput("options.directory", directory, "the path of a directory");
  return open({ directory, ...rest });
}
