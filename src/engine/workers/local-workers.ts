/**
 * Workers in this process: a function that is given tasks.
 *
 * An assignment is acted upon once it is durable, never before. The handler gets the task and a context: a
 * signal that fires when the attempt must stop, ways to report progress and usage, and permits for LLM
 * calls. What it returns is the result; what it throws is a failure, except that a provider's 429 or 529
 * and a `TaskRequeue` send the task back without counting against it, and an error with `permanent: true`
 * is not tried again.
 *
 * A worker that leaves takes no more, stops its handlers and waits for them, up to `workers.killGrace`. Only
 * then are its slots and the locks of its tasks free: what still runs must not meet its own successor. What a
 * handler returns in that time counts; what it throws does not, since being stopped is no failure of the task.
 */
import { isRecord, type TaskId, type WorkerId, whole } from "../../core/base/index.ts";
import { fifo, push, type TaskTable } from "../../core/collections/index.ts";
import type { Event, WorkerSettings } from "../../core/model/index.ts";
import type { WorkerOptions as Described } from "../../protocol/index.ts";
import type { Clock } from "../../std/index.ts";
import { accepted, badInput, DroverError, isStop, reading } from "../base/drover-error.ts";
import type { LocalPermits } from "../permits/local-permits.ts";
import type { AttemptTokens } from "../tasks/attempt-tokens.ts";
import type { BodyStore } from "../tasks/body-store.ts";
import { reportOf } from "../tasks/handler-outcome.ts";
import type { ReadInputs } from "../tasks/inputs.ts";
import type { TaskApi } from "../tasks/task-api.ts";
import type { Applied } from "../writer/group-commit.ts";
import { notify, type Writer } from "../writer/writer.ts";
import type { AttemptFiles, Handler, HandlerWorker, RunningAttempt } from "./handler-runner.ts";
import { createHandlerRunner, stopAttempt } from "./handler-runner.ts";
import { readWorker } from "./sync.ts";

export { TaskRequeue, TaskSkip } from "../../std/index.ts";
export type { AssignedTask } from "../tasks/task-body.ts";
export type { Handler, TaskContext } from "./handler-runner.ts";

/** What any worker says of itself. */
export type WorkerOptions = Described & {
  /** How many it runs at once at first, if not as many as it has slots; 0: none until `limit` says otherwise. */
  readonly limit?: number;
};
/** A worker of this process. */
export type LocalWorker = AsyncDisposable & {
  /** Its id. */
  readonly id: string;
  /** Runs at most so many at once from now on; what runs goes on. The note says why. */
  limit(count: number, note?: string | null): Promise<void>;
  /** At most so many of its tasks have a worktree from now on; null: any number. The note says why. */
  limitWorktrees(count: number | null, note?: string | null): Promise<void>;
  /** Takes no more, and resolves when what it runs has ended. */
  drain(): Promise<void>;
  /**
   * Takes no more, stops what it runs, waits for it up to `workers.killGrace`, and leaves; what had not ended is
   * queued again. May be called twice.
   */
  close(): Promise<void>;
};
type LocalWorkers = {
  join(options: WorkerOptions, handler: Handler): Promise<LocalWorker>;
  onCommitted(batch: readonly Applied[]): void;
  progressOf(task: string): unknown;
  /** All leave together, each as by its `close`. */
  leaveAll(): Promise<void>;
  /** The engine has stopped, and so do the handlers: what they return counts no more. */
  stop(error: DroverError): void;
};

type LocalWorkersDeps = {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly bodies: BodyStore;
  readonly inputs: ReadInputs;
  readonly files: AttemptFiles;
  readonly permits: LocalPermits;
  readonly tasks: () => Pick<TaskApi, "submitChild">;
  readonly tokens: AttemptTokens;
};

export function createLocalWorkers(deps: LocalWorkersDeps): LocalWorkers {
  const { writer, clock, newId } = deps;
  const workers = new Map<WorkerId, HandlerWorker>();
  /** Callers that wait until a worker which drains has ended what it runs. */
  const draining = new Map<WorkerId, PromiseWithResolvers<void>>();
  const { running, progress, serve, giveUp } = createHandlerRunner({
    ...deps,
    submitChild: (...child) => deps.tasks().submitChild(...child),
    onEnded: ({ id }) => {
      if (draining.size > 0) endDrain(id);
    },
  });

  async function join(options: WorkerOptions, handler: Handler): Promise<LocalWorker> {
    if (typeof handler !== "function") throw badInput("handler", handler, "a function that is given tasks");
    const { limit: first, ...given } = reading(options, "", () => (isRecord(options) ? { ...options } : {}));
    const { id: wanted, settings: all, takes } = readWorker(isRecord(options) ? given : options);
    const limit = first === undefined ? all.slots : readLimit(first, all);
    const settings = limitedTo(all, limit, null);
    let { worktrees = null } = all;
    const worker = { worker: wanted as WorkerId | null, kind: "local", session: newId() } as const;
    const id = accepted(writer.execute({ type: "join-worker", ...worker, settings, takes })).id as WorkerId;
    const waiting = fifo<{ task: TaskId; attempt: number }>();
    const own: HandlerWorker = { id, handler, settings, limit, active: 0, leaving: null, onIdle: () => {}, waiting };
    workers.set(id, own);
    await writer.settled();
    return {
      id,
      limit: async (count, note = null) => await change(own, { ...all, worktrees }, readLimit(count, all), note),
      limitWorktrees: async (count, note = null) => {
        worktrees = count === null ? null : readLimit(count, all);
        await change(own, { ...all, worktrees }, own.limit, note);
      },
      drain: () => drain(own),
      close: () => leave(own),
      [Symbol.asyncDispose]: () => leave(own),
    };
  }

  async function change(worker: HandlerWorker, all: WorkerSettings, limit: number, note: string | null): Promise<void> {
    if (worker.leaving !== null || writer.state.fleet.byId.get(worker.id)?.status === "draining") return;
    worker.settings = limitedTo(all, limit, note);
    worker.limit = limit;
    notify(writer, { type: "change-worker", worker: worker.id, settings: worker.settings });
    serve(worker);
    await writer.settled();
  }

  async function drain({ id, settings }: HandlerWorker): Promise<void> {
    const worker = writer.state.fleet.byId.get(id);
    if (worker === undefined) return;
    await writer.run({ type: "change-worker", worker: id, settings: { ...settings, status: "draining" } });
    if (worker.attempts.size === 0) return;
    const drained = draining.get(id) ?? Promise.withResolvers();
    draining.set(id, drained);
    await drained.promise;
  }

  function endDrain(id: WorkerId): void {
    if ((writer.state.fleet.byId.get(id)?.attempts.size ?? 0) > 0) return;
    draining.get(id)?.resolve();
    draining.delete(id);
  }

  function leave(worker: HandlerWorker): Promise<void> {
    if (worker.leaving !== null) return worker.leaving.left;
    const reason = new DroverError("stopped", "its worker leaves");
    const { promise: left, resolve, reject } = Promise.withResolvers<void>();
    worker.leaving = { reason, left };
    depart(worker, reason).then(resolve, reject);
    return left;
  }

  async function depart(worker: HandlerWorker, reason: DroverError): Promise<void> {
    const { id } = worker;
    if (worker.active > 0) await stopHandlers({ writer, clock, running }, worker, reason);
    workers.delete(id);
    if (!writer.state.fleet.byId.has(id)) return;
    try {
      await writer.run({ type: "leave-worker", worker: id, lost: false });
    } catch (error) {
      // An engine that has stopped has no workers any more: there is nothing left to leave.
      if (!isStop(error)) throw error;
    }
    endDrain(id);
  }

  function stopTask(task: TaskId, reason: string): void {
    const entry = running.get(task);
    if (entry === undefined) return confirmUnstarted(writer, workers, task);
    stopAttempt(entry, new DroverError("stopped", reason));
  }

  function onEvent(event: Event): void {
    switch (event.kind) {
      case "task-submitted":
      case "task-done":
        return;
      case "task-assigned": {
        const worker = workers.get(event.worker);
        if (worker === undefined) return;
        push(worker.waiting, event);
        return serve(worker);
      }
      case "attempt-stopping":
        return stopTask(event.task, `stopped: ${event.cause}`);
      case "task-cancelled":
        return stopTask(event.task, `cancelled: ${event.reason}`);
      case "task-failed":
        return event.attempt === null ? stopTask(event.task, event.reason) : giveUp(event.task, event.attempt);
      case "attempt-stopped":
      case "attempt-failed":
      case "attempt-lost":
      case "round-ended":
        return giveUp(event.task, event.attempt);
      case "task-parked":
        return event.attempt === null ? undefined : giveUp(event.task, event.attempt);
      default:
    }
  }

  return {
    join,
    progressOf: (task) => progress.get(task),
    async leaveAll() {
      await Promise.all([...workers.values()].map(leave));
    },
    onCommitted(batch) {
      if (workers.size > 0 || running.size > 0) for (const { event } of batch) onEvent(event);
      // An attempt may also be over because its worker was given up on, not because a handler ended.
      for (const id of draining.keys()) endDrain(id);
    },
    stop(error) {
      for (const entry of running.values()) stopAttempt(entry, error);
      for (const drained of draining.values()) drained.reject(error);
      draining.clear();
    },
  };
}

/** Resolves when the last has ended, or the grace is over. */
async function stopHandlers(
  { writer, clock, running }: { writer: Writer; clock: Clock; running: TaskTable<RunningAttempt> },
  worker: HandlerWorker,
  reason: DroverError,
): Promise<void> {
  const ended = Promise.withResolvers<void>();
  worker.onIdle = ended.resolve;
  notify(writer, { type: "change-worker", worker: worker.id, settings: { ...worker.settings, status: "draining" } });
  for (const entry of running.values())
    if (entry.worker === worker && entry.stopped === null) stopAttempt(entry, reason);
  const graceEnd = clock.elapsed() + writer.state.config.workers.killGrace;
  const cancel = clock.ringAt(graceEnd, ended.resolve, { keepAlive: true });
  await ended.promise;
  cancel();
}

/** What waits for a slot of its worker has nothing to stop: it is over at once. */
function confirmUnstarted(writer: Writer, workers: ReadonlyMap<WorkerId, HandlerWorker>, task: TaskId): void {
  const attempt = writer.state.tasks.get(task)?.attempt ?? null;
  if (attempt === null || attempt.state !== "stopping" || !workers.has(attempt.worker.id)) return;
  const report = reportOf({ task, attempt: attempt.number, tokens: 0 }, "cancelled");
  notify(writer, { type: "finish-attempt", report });
}

/** As others see it: one that may run nothing has its slots, and takes no task. */
const limitedTo = (settings: WorkerSettings, limit: number, note: string | null): WorkerSettings =>
  limit === 0 ? { ...settings, status: "overloaded", note } : { ...settings, slots: limit, note };

/** Never more than its slots. */
function readLimit(count: unknown, { slots }: WorkerSettings): number {
  return Math.min(slots, accepted(whole(0, 100_000)(count, "limit")));
}
