/**
 * Drover's API over the parts of one life. Reads answer when what they saw is durable.
 */
import type { ProjectId, Reader } from "../core/base/index.ts";
import { badField, fail, isRecord, isSha256, name, ok, readSection, seq, whole } from "../core/base/index.ts";
import { projectFields, settingsFor } from "../core/config/index.ts";
import type { State } from "../core/model/index.ts";
import { type Why, why } from "../core/why/index.ts";
import type { Anchor, Head, VerifyReport } from "../log/index.ts";
import type {
  AnyParams,
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
import { readOptions } from "./base/call-options.ts";
import { accepted, badInput, type DroverError, refused } from "./base/drover-error.ts";
import type { Callbacks } from "./callbacks.ts";
import { type ConfigApi, createConfigApi } from "./config-api.ts";
import { type FeedEvent, type FeedOptions, readFeedOptions } from "./feed.ts";
import type { Files } from "./files/files.ts";
import { endLife, type Life } from "./life.ts";
import { readGateName } from "./permits/local-permits.ts";
import type { RemotePermits } from "./permits/remote-permits.ts";
import type { Plans } from "./plans/plans.ts";
import type { Schedules } from "./schedules/schedules.ts";
import { createPast } from "./snapshots/past.ts";
import type { AttemptTokens } from "./tasks/attempt-tokens.ts";
import type { EarlyCalls, TaskApi } from "./tasks/task-api.ts";
import { type GateView, type GateWithCalls, gateDetail, gateViews } from "./views/gate-view.ts";
import { lineView, readLineLimit } from "./views/line-view.ts";
import { queueView } from "./views/queue-view.ts";
import { projectViews, statsOf, workerView } from "./views/stats.ts";
import { type UsageOptions, usageOf } from "./views/usage.ts";
import type { Handler, LocalWorker, WorkerOptions } from "./workers/local-workers.ts";
import type { RemoteWorkers } from "./workers/remote-workers.ts";
import { notLeading } from "./writer/follower.ts";
import type { CommitListener } from "./writer/group-commit.ts";
import { onceDurable, type Writer } from "./writer/writer.ts";

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
  Pick<SharedCalls, "stats" | "queue" | "line" | "putProject" | "resetGate" | "removeGate" | "pause" | "resume"> &
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
    /** What is decided at once and may be told later. */
    readonly early: EarlyCalls;
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
    /** The number of the last event that is durable. */
    committedSeq(): number;
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

/** The parts of a life as one thing; the log is closed with it. */
export function apiOf(parts: Life): Drover {
  const { writer, log, feed, tasks, workers, localPermits, rejections, snapshots, artifacts, failed } = parts;
  const { plans, early, remote, permits, schedules, callbacks, files, tokens: attemptTokens } = parts;
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
    await endLife(parts);
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
    early,
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
    committedSeq: writer.committedSeq,
    logTime: () => ({ at: writer.now(), aheadMs: writer.aheadMs() }),
    ...createConfigApi(writer),
    attemptTokens,
    permits,
    files: {
      put: files.put,
      get: files.get,
      open: files.open,
      has: files.has,
      totals: files.totals,
      counted: files.counted,
    },
    schedules,
    plans,
    callbacks,
    queue: () => read(() => queueView(state, writer.now())),
    line: async (given) => {
      const limit = readLineLimit(given);
      return read(() => lineView(state, writer.now(), limit));
    },
    pause: (target = {}) => setPaused(target, true),
    resume: (target = {}) => setPaused(target, false),
    lookForArtifacts: async () => {
      if (artifacts === null) throw notLeading();
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
