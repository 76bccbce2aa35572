/**
 * One life of an engine: its parts, joined over a state that was recovered or is hot already.
 *
 * A leader decides: its writer appends to the log, and what acts by itself (schedules, artifacts, leases of workers)
 * begins with it. A follower applies what the leader of its log has had committed: reads, waits and the feed are the
 * same code over the same hooks, and whatever would write is refused. A life ends once; the state outlives it.
 */
import type { Seq } from "../core/base/index.ts";
import type { Config } from "../core/config/index.ts";
import type { MutableState } from "../core/model/index.ts";
import type { Log } from "../log/index.ts";
import { type Clock, withSteadyDate } from "../std/index.ts";
import type { DroverError } from "./base/drover-error.ts";
import { type Callbacks, createCallbacks } from "./callbacks.ts";
import { beginLife, type LeadingNode } from "./config-api.ts";
import { createFeed } from "./feed.ts";
import type { FileRoom } from "./files/files.ts";
import type { FileMedium } from "./files/medium.ts";
import { filesOf, type LifeFiles, openFiles } from "./files/open-file.ts";
import { createLocalPermits, type LocalPermits } from "./permits/local-permits.ts";
import { createRemotePermits } from "./permits/remote-permits.ts";
import { createPlans, type Plans, waitForPlan } from "./plans/plans.ts";
import { createSchedules } from "./schedules/schedules.ts";
import { createSnapshotter, type Snapshotter } from "./snapshots/snapshotter.ts";
import {
  type ArtifactExists,
  type ArtifactSource,
  type ArtifactWatch,
  artifactSourceFor,
  watchArtifacts,
} from "./tasks/artifacts.ts";
import { type AttemptTokens, createAttemptTokens } from "./tasks/attempt-tokens.ts";
import { createEndWatch, isEnd } from "./tasks/await-end.ts";
import { createBodyStore } from "./tasks/body-store.ts";
import { createInputs } from "./tasks/inputs.ts";
import { createRejectedCounter, createRejectedRing, type RejectedCounter } from "./tasks/rejected.ts";
import { createTaskApi, type EarlyCalls, type TaskApi } from "./tasks/task-api.ts";
import { createLocalWorkers } from "./workers/local-workers.ts";
import { createRemoteWorkers } from "./workers/remote-workers.ts";
import { type FollowerOptions, startFollower } from "./writer/follower.ts";
import { type Commit, createCommitWatch, stopOf } from "./writer/group-commit.ts";
import type { LogClock } from "./writer/log-clock.ts";
import { createStorageGuard } from "./writer/storage-guard.ts";
import { startWriter, type Writer, type WriterHooks, type WriterOptions } from "./writer/writer.ts";

/** What a life does: decide, or apply what another has decided. */
export type Role = Leads | { readonly type: "follower"; readonly follow: FollowerOptions["follow"] };
type Leads = {
  readonly type: "leader";
  readonly epoch: number;
  /** Whether the lead is still sure; absent: always. */
  readonly holds?: () => boolean;
  /** The config that is to be in force; null: what the log has. */
  readonly config: Config | null;
  /** The node of a cluster that leads. */
  readonly node?: LeadingNode;
};

/** What a life is over, and what stands around it. */
export type LifeOptions = {
  readonly log: Log;
  /** All of the log, applied. */
  readonly state: MutableState;
  /** The event of the newest snapshot. */
  readonly snapshotSeq: Seq;
  readonly role: Role;
  readonly clock: Clock;
  /** That of the lives before; absent: one of its own. */
  readonly logClock?: LogClock;
  readonly newId: () => string;
  readonly onWarning: (message: string) => void;
  /** The data directory, for what is no part of the log. */
  readonly data?: string;
  /** A secret that all nodes of a cluster have, for the tokens of attempts. Absent: one of the data directory. */
  readonly attemptSecret?: string;
  readonly artifactExists?: ArtifactExists;
  readonly fileMedium?: FileMedium;
  /** Files that outlive this life; absent: they end with it. */
  readonly files?: FileRoom;
  /** Called with each commit, when all who wait for it have heard of it. */
  readonly onCommit?: (commit: Commit) => void;
};
export type Life = {
  readonly writer: Writer;
  readonly log: Log;
  readonly rejections: RejectedCounter;
  readonly tasks: TaskApi;
  readonly plans: Plans;
  readonly workers: ReturnType<typeof createLocalWorkers>;
  readonly early: EarlyCalls;
  readonly remote: ReturnType<typeof createRemoteWorkers>;
  readonly permits: ReturnType<typeof createRemotePermits>;
  readonly localPermits: LocalPermits;
  readonly schedules: ReturnType<typeof createSchedules>;
  readonly callbacks: Callbacks;
  readonly files: LifeFiles;
  /** Only a leader looks for artifacts. */
  readonly artifacts: ArtifactWatch | null;
  readonly artifactSource: ArtifactSource;
  readonly tokens: AttemptTokens;
  readonly feed: ReturnType<typeof createFeed>;
  readonly commits: ReturnType<typeof createCommitWatch>;
  readonly snapshots: Snapshotter;
  /** Resolves with the reason if it must end. */
  readonly failed: Promise<DroverError>;
};

export async function startLife(options: LifeOptions): Promise<Life> {
  const { log, state, role, clock, newId, onWarning } = options;
  const artifactSource = artifactSourceFor(options.artifactExists, () => state.config.artifacts);
  const failed = Promise.withResolvers<DroverError>();
  const bodies = createBodyStore(log);
  const ends = createEndWatch();
  const rejected = createRejectedRing();
  const commits = createCommitWatch(onWarning);
  const storage = createStorageGuard({ state, log });
  let watch: ArtifactWatch | null = null;
  const hooks: WriterHooks = {
    onApplied: (event, payload) => {
      localPermits.onApplied(event);
      permits.onApplied(event);
      watch?.onApplied(event);
      if (isEnd(event)) bodies.release(state.tasks.get(event.task)?.seq ?? 0);
      if (event.kind === "task-done" && payload !== undefined) bodies.keepResult(state.seq, payload);
    },
    isAwaited: (event) => {
      if (commits.isHeard()) return true;
      // Only listeners want a submit; callers that wait want a good end too. Later callers find both in the state.
      const { kind } = event;
      if (kind === "task-submitted") return false;
      return kind !== "task-done" || !(ends.isIdle() && remote.isIdle() && state.callbacks.due.size === 0);
    },
    onCommitted: (batch, commit) => {
      ends.onCommitted(batch);
      workers.onCommitted(batch);
      remote.onCommitted(batch);
      callbacks.onCommitted(batch);
      snapshots.onCommitted(writer.committedSeq());
      commits.onCommitted(batch, commit);
      feed.onCommitted();
      options.onCommit?.(commit);
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
  const writer: Writer = startRole(role, { ...options, storage, hooks });
  const feed = createFeed({ log, head: writer.committedSeq, state });
  const steady = withSteadyDate(clock);
  const localPermits = createLocalPermits(writer, steady);
  const permits = createRemotePermits(writer, steady, newId);
  const callbacks = createCallbacks({ writer, bodies, task: (id) => tasks.task(id) });
  const { files: room = openFiles(options) } = options;
  const files = filesOf(room, { state, bodies, settled: writer.settled });
  const tokens = createAttemptTokens(state, options.data, options.attemptSecret);
  const inputs = createInputs({ writer, log, bodies });
  const forWorkers = { writer, clock: steady, newId, bodies, inputs, files, tokens, log };
  const workers = createLocalWorkers({ ...forWorkers, permits: localPermits, tasks: () => tasks });
  const remote = createRemoteWorkers(forWorkers);
  const progressOf = (task: string): unknown => workers.progressOf(task) ?? remote.progressOf(task);
  const snapshots = createSnapshotter({
    log,
    writer,
    config: () => state.config,
    lastSeq: options.snapshotSeq,
    onFailure: (error) => onWarning(snapshotWarning(error, state.config.log.snapshotEvery)),
    onPruned: feed.onPruned,
  });
  const rejections = createRejectedCounter(writer, steady);
  const sources = { writer, log, bodies, ends, clock, rejected, rejections, artifacts: artifactSource, progressOf };
  const { api: tasks, submitNow: submit, early } = createTaskApi(sources);
  const schedules = createSchedules({ writer, storage, clock: steady, submit, artifacts: artifactSource, onWarning });
  await begun(writer, role, storage.measure);
  if (role.type === "leader") {
    remote.begin();
    schedules.begin();
    watch = watchArtifacts({ writer, clock: steady, exists: artifactSource.exists, onWarning });
  }
  const plans: Plans = { ...createPlans({ writer, bodies, clock }), wait: waitForPlan(writer, tasks.waitGroup) };
  const apis = { tasks, early, plans, workers, remote, permits, schedules, callbacks, localPermits, files, tokens };
  const around = { writer, log, feed, commits, rejections, snapshots, artifactSource };
  return { ...apis, ...around, artifacts: watch, failed: failed.promise };
}

/** A life that does not begin must not go on. */
async function begun(writer: Writer, role: Role, ready: () => Promise<unknown>): Promise<void> {
  try {
    if (role.type === "leader") await beginLife(writer, role.config, role.node);
    await ready();
  } catch (error) {
    writer.stop(stopOf(error));
    throw error;
  }
}

const startRole = (role: Role, parts: Omit<WriterOptions, "epoch" | "holds">): Writer =>
  role.type === "follower" ? startFollower({ ...parts, ...role }) : startWriter({ ...parts, ...role });

/** Ends it in good order, to the last snapshot that was asked for. The log stays open. */
export async function endLife(life: Life): Promise<void> {
  stopActing(life);
  await life.workers.leaveAll();
  await life.snapshots.stop();
  await life.files.stop();
  life.rejections.flush();
  await life.writer.close();
  life.feed.close();
}

/** What acts by itself acts no more, and no work is added. */
export function stopActing({ artifacts, schedules, writer }: Life): void {
  artifacts?.stop();
  schedules.stop();
  writer.stopAdmitting();
}

/** Ends it at once: whoever waits gets the error, and what was not committed is gone. Log and files stay open. */
export async function dropLife(life: Life, error: DroverError): Promise<void> {
  stopActing(life);
  life.writer.stop(error);
  life.feed.close();
  // A snapshot is a matter between the log and itself.
  void life.snapshots.stop();
  await life.writer.close();
}

const snapshotWarning = (error: unknown, every: number): string =>
  `a snapshot, or the pruning behind it, failed; nothing more is pruned, and the next is tried ${every} events on: ` +
  String(error);
