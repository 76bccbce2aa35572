/**
 * Workers in this process: a function that is given tasks.
 *
 * An assignment is acted upon once it is durable, never before. The handler gets the task and a context: a
 * signal that fires when the attempt must stop, ways to report progress and usage, and permits for LLM
 * calls. What it returns is the result; what it throws is a failure, except that a provider's 429 or 529
 * and a `TaskRequeue` send the task back without counting against it, and an error with `permanent: true`
 * is not tried again. A quick handler never costs a "running" event: that is written only if the attempt
 * still runs a turn later.
 *
 * A worker that leaves takes no more, tells its handlers to stop and waits for them, up to `workers.killGrace`. Only
 * then are its slots and the locks of its tasks free: what still runs must not meet its own successor. What a
 * handler returns in that time counts; what it throws does not, since being told to stop is no failure of the task.
 */
import { isRecord, type Seq, type TaskId, type WorkerId, whole } from "../../core/base/index.ts";
import { fifo, IdTable, peek, push, shift } from "../../core/collections/index.ts";
import type { Event, Task, WorkerSettings } from "../../core/model/index.ts";
import {
  type HeldPermit,
  type LocalPermits,
  type PermitOptions,
  tokensOf,
  type Usage,
} from "../permits/local-permits.ts";
import { type BodyStore, DamagedBody, damagedReason, type Kept } from "../tasks/body-store.ts";
import { blank, done, failedSafely, type Report } from "../tasks/handler-outcome.ts";
import { type AssignedTask, assignedTask } from "../tasks/task-body.ts";
import { badInput, DroverError, isStop, reading, refused } from "../writer/drover-error.ts";
import type { Host } from "../writer/host.ts";
import { type Applied, tell, type Writer } from "../writer/writer.ts";
import { type Crew as CrewOf, type Running as RunningOf, signalOf } from "./local-attempt.ts";
import { readWorker } from "./worker-options.ts";

export { RESULT_BYTES_MAX, TaskRequeue } from "../tasks/handler-outcome.ts";
export type { AssignedTask } from "../tasks/task-body.ts";

export type WorkerOptions = {
  readonly id?: string;
  readonly slots?: number;
  readonly capabilities?: readonly string[];
  readonly resources?: { readonly cpuMillicores?: number | null; readonly memoryBytes?: number | null };
  readonly zone?: string | null;
  /** Which tasks it takes: names, or patterns with `*`; absent: all. */
  readonly actions?: readonly string[] | null;
  readonly types?: readonly string[] | null;
  readonly projects?: readonly string[] | null;
  /** How many it runs at once at first, if not as many as it has slots; 0: none until `limit` says otherwise. */
  readonly limit?: number;
};
export type TaskContext = {
  /** Fires when the attempt must stop: cancelled, timed out, past its deadline, out of budget. */
  readonly signal: AbortSignal;
  readonly attempt: number;
  /** Something to show while it runs; kept in memory, not in the log. */
  progress(value: unknown): void;
  /** Tokens used so far by this attempt, in all. */
  usage(usage: Usage): void;
  /** Makes an LLM call when its gate lets it out. */
  withPermit<Value>(
    gate: string,
    call: (permit: HeldPermit) => Promise<Value> | Value,
    options?: PermitOptions,
  ): Promise<Value>;
};
export type Handler = (task: AssignedTask, context: TaskContext) => unknown;
export type LocalWorker = AsyncDisposable & {
  readonly id: string;
  /** Runs at most so many at once from now on; what runs goes on. The note says why. */
  limit(count: number, note?: string | null): Promise<void>;
  /** Takes no more, and resolves when what it runs has ended. */
  drain(): Promise<void>;
  /**
   * Takes no more, tells what it runs to stop, waits for it up to `workers.killGrace`, and leaves; what had not
   * ended is queued again. May be called twice.
   */
  close(): Promise<void>;
};

/** Handlers called in one turn of the event loop: what else the program does must not wait for thousands. */
const STARTED_PER_TURN_MAX = 128;

type Crew = CrewOf<Handler>;
type Running = RunningOf<Handler>;
export type LocalWorkers = {
  join(options: WorkerOptions, handler: Handler): Promise<LocalWorker>;
  onCommitted(batch: readonly Applied[]): void;
  progressOf(task: string): unknown;
  /** All leave together, each as by its `close`. */
  leaveAll(): Promise<void>;
  /** The engine has stopped: handlers are told, since nobody will hear what they say. */
  stop(error: DroverError): void;
};

export function createLocalWorkers(deps: {
  readonly writer: Writer;
  readonly host: Host;
  readonly bodies: BodyStore;
  readonly permits: LocalPermits;
}): LocalWorkers {
  const { writer, host, bodies, permits } = deps;
  const crews = new Map<WorkerId, Crew>();
  const running = new IdTable<Running>();
  const progress = new Map<string, unknown>();
  const idle = new Map<WorkerId, PromiseWithResolvers<void>>();
  /** What was given a slot and not to its handler yet. */
  const starting = fifo<Running>();

  async function join(options: WorkerOptions, handler: Handler): Promise<LocalWorker> {
    if (typeof handler !== "function") throw badInput("handler", handler, "a function that is given tasks");
    const { limit: first, ...said } = reading(options, "", () => (isRecord(options) ? { ...options } : {}));
    const { id: wanted, settings: all, takes } = readWorker(isRecord(options) ? said : options);
    const limit = first === undefined ? all.slots : readLimit(first, all);
    const settings = limitedTo(all, limit, null);
    const session = host.newId();
    const worker = wanted as WorkerId | null;
    const decided = writer.execute({ type: "join-worker", worker, kind: "local", session, settings, takes });
    if (!decided.ok) throw refused(decided.failure);
    const id = decided.value.id as WorkerId;
    const crew: Crew = { id, handler, settings, limit, active: 0, leaving: null, onIdle: () => {}, waiting: fifo() };
    crews.set(id, crew);
    await writer.settled();
    return {
      id,
      limit: async (count, note = null) => await change(crew, all, readLimit(count, all), note),
      drain: () => drain(crew),
      close: () => leave(crew),
      [Symbol.asyncDispose]: () => leave(crew),
    };
  }

  async function change(crew: Crew, all: WorkerSettings, limit: number, note: string | null): Promise<void> {
    if (crew.leaving !== null || writer.state.fleet.byId.get(crew.id)?.status === "draining") return;
    crew.settings = limitedTo(all, limit, note);
    crew.limit = limit;
    tell(writer, { type: "change-worker", worker: crew.id, settings: crew.settings });
    serve(crew);
    await writer.settled();
  }

  async function drain({ id, settings }: Crew): Promise<void> {
    const worker = writer.state.fleet.byId.get(id);
    if (worker === undefined) return;
    await writer.run({ type: "change-worker", worker: id, settings: { ...settings, status: "draining" } });
    if (worker.attempts.size === 0) return;
    const quiet = idle.get(id) ?? Promise.withResolvers();
    idle.set(id, quiet);
    await quiet.promise;
  }

  function leave(crew: Crew): Promise<void> {
    if (crew.leaving !== null) return crew.leaving.left;
    const reason = new DroverError("stopped", "its worker leaves");
    const { promise: left, resolve, reject } = Promise.withResolvers<void>();
    crew.leaving = { reason, left };
    depart(crew, reason).then(resolve, reject);
    return left;
  }

  async function depart(crew: Crew, reason: DroverError): Promise<void> {
    const { id } = crew;
    if (crew.active > 0) await stopHandlers(crew, reason);
    crews.delete(id);
    if (!writer.state.fleet.byId.has(id)) return;
    try {
      await writer.run({ type: "leave-worker", worker: id, lost: false });
    } catch (error) {
      // An engine that has stopped has no workers any more: there is nothing left to leave.
      if (!isStop(error)) throw error;
    }
    wakeIdle(id);
  }

  /** Resolves when the last has ended, or the grace is over. */
  async function stopHandlers(crew: Crew, reason: DroverError): Promise<void> {
    const ended = Promise.withResolvers<void>();
    crew.onIdle = ended.resolve;
    tell(writer, { type: "change-worker", worker: crew.id, settings: { ...crew.settings, status: "draining" } });
    for (const entry of running.values()) if (entry.crew === crew && entry.stopped === null) tellToStop(entry, reason);
    const graceEnd = host.elapsed() + writer.state.config.workers.killGrace;
    const cancel = host.ringAt(graceEnd, ended.resolve, { keepAlive: true });
    await ended.promise;
    cancel();
  }

  function tellToStop(entry: Running, reason: DroverError): void {
    entry.stopped = reason;
    entry.controller?.abort(reason);
  }

  function abort(task: TaskId, reason: string): void {
    const entry = running.get(task);
    if (entry === undefined) return confirmUnstarted(task);
    tellToStop(entry, new DroverError("stopped", reason));
  }

  /** What waits for a slot of its worker has nothing to stop: it is over at once. */
  function confirmUnstarted(task: TaskId): void {
    const attempt = writer.state.tasks.get(task)?.attempt ?? null;
    if (attempt === null || attempt.state !== "stopping" || !crews.has(attempt.worker.id)) return;
    const report = { ...blank({ task, attempt: attempt.number, tokens: 0 }), outcome: "cancelled" as const };
    tell(writer, { type: "finish-attempt", report });
  }

  function wakeIdle(id: WorkerId): void {
    if ((writer.state.fleet.byId.get(id)?.attempts.size ?? 0) > 0) return;
    idle.get(id)?.resolve();
    idle.delete(id);
  }

  /** Starts what was assigned, as far as the worker has slots. */
  function serve(crew: Crew): void {
    while (crew.active < crew.limit && crew.leaving === null) {
      const next = shift(crew.waiting);
      if (next === undefined) return;
      const record = writer.state.tasks.get(next.task);
      // It may have been stopped, or taken away, while it waited.
      if (record?.attempt?.number !== next.attempt || record.attempt.state !== "assigned") continue;
      begin(crew, next.task, next.attempt, record);
    }
  }

  /** Takes a slot. What begins in one turn is given to its handlers once that is over, so many in each turn. */
  function begin(crew: Crew, task: TaskId, attempt: number, { seq: at, ask }: Task): void {
    const seq = at as Seq;
    const entry: Running = { task, attempt, seq, crew, isOver: false, controller: null, stopped: null, tokens: null };
    running.set(task, entry);
    crew.active++;
    if (ask.onLoss === "fail") return void beginOnRecord(entry);
    line(entry);
  }

  function line(entry: Running): void {
    push(starting, entry);
    if (starting.length === 1) queueMicrotask(startSome);
  }

  /** One that must not run twice is given to its handler once the log knows that it may have begun. */
  async function beginOnRecord(entry: Running): Promise<void> {
    tell(writer, { type: "start-attempt", task: entry.task, attempt: entry.attempt });
    try {
      await writer.settled();
    } catch (error) {
      // An engine that has stopped starts nothing more.
      if (!isStop(error)) throw error;
      return;
    }
    line(entry);
  }

  function startSome(): void {
    const begun: Running[] = [];
    for (let entry = peek(starting); entry !== undefined && begun.length < STARTED_PER_TURN_MAX; ) {
      // It stays in line until it was started: what begins meanwhile needs no turn of its own.
      if (!entry.isOver) start(entry);
      begun.push(entry);
      shift(starting);
      entry = peek(starting);
    }
    host.defer(() => writeBegun(begun));
    if (starting.length > 0) host.defer(startSome);
  }

  function start(entry: Running): void {
    const kept = bodies.peek(entry.seq);
    if (kept !== undefined) perform(entry, kept);
    else
      bodies.read(entry.seq).then(
        (text) => perform(entry, text === null ? null : { text, plain: null }),
        (error) => (error instanceof DamagedBody ? perform(entry, null) : fail(entry, error)),
      );
  }

  /** Calls the handler. One that answers at once is finished at once: no promise is made for it. */
  function perform(entry: Running, body: Kept | null): void {
    let result: unknown;
    let isLater = false;
    try {
      // Told to stop before it began.
      if (isCutShort(entry)) return finish(entry, null);
      if (entry.stopped !== null) throw entry.stopped;
      if (body === null) throw missingBody(entry.seq);
      const { text, plain } = body;
      body.plain = null;
      result = entry.crew.handler(assignedTask(text, plain, entry.task, entry.attempt), new Context(entry));
      isLater = isThenable(result);
    } catch (error) {
      return fail(entry, error);
    }
    if (!isLater) return succeed(entry, result);
    Promise.resolve(result).then(
      (value) => succeed(entry, value),
      (error) => fail(entry, error),
    );
  }

  /** An answer that cannot be kept is a failure. */
  function succeed(entry: Running, result: unknown): void {
    let report: Report;
    try {
      report = done(entry, result);
    } catch (error) {
      return fail(entry, error);
    }
    finish(entry, report);
  }

  const fail = (entry: Running, error: unknown): void => finish(entry, failedSafely(entry, error, host.now()));

  function finish(entry: Running, ended: Report | null): void {
    const { crew, task, attempt } = entry;
    letGo(entry);
    // Without a report it never began; the log may have it as running all the same.
    if (ended === null) tell(writer, { type: "return-attempt", task, attempt });
    else if (!isCutShort(entry) || isTold(ended))
      tell(writer, { type: "finish-attempt", report: ended.report }, ended.text);
    if (idle.size > 0) wakeIdle(crew.id);
  }

  /** The handler has ended, or was given up on: its slot is free, once. */
  function letGo(entry: Running): void {
    if (entry.isOver) return;
    entry.isOver = true;
    if (running.get(entry.task) === entry) running.delete(entry.task);
    if (progress.size > 0) progress.delete(entry.task);
    entry.crew.active--;
    if (entry.crew.active === 0) entry.crew.onIdle();
    serve(entry.crew);
  }

  /** Those that still run a turn later are written down as running. */
  function writeBegun(begun: readonly Running[]): void {
    for (const { task, attempt, isOver } of begun) if (!isOver) tell(writer, { type: "start-attempt", task, attempt });
  }

  /** Made for every attempt and mostly left alone: what it offers is made when somebody reaches for it. */
  class Context implements TaskContext {
    readonly attempt: number;
    readonly #entry: Running;
    constructor(entry: Running) {
      this.attempt = entry.attempt;
      this.#entry = entry;
    }
    get signal(): AbortSignal {
      return signalOf(this.#entry);
    }
    get progress(): TaskContext["progress"] {
      const entry = this.#entry;
      return (value) => {
        if (!entry.isOver) progress.set(entry.task, value);
      };
    }
    get usage(): TaskContext["usage"] {
      const entry = this.#entry;
      const { task, attempt } = entry;
      return (usage) => {
        entry.tokens = Math.max(entry.tokens ?? 0, tokensOf(usage));
        tell(writer, { type: "report-usage", task, attempt, tokens: entry.tokens });
      };
    }
    get withPermit(): TaskContext["withPermit"] {
      const entry = this.#entry;
      const { task, attempt } = entry;
      return (gate, call, options) =>
        permits.withPermit(gate, call, options, { task, attempt, signal: signalOf(entry) });
    }
  }

  /** An attempt that is over while its handler still runs, because it ignores its signal. */
  function giveUp(event: Event): void {
    const entry = "task" in event && event.task !== null ? running.get(event.task) : undefined;
    if (entry === undefined || !("attempt" in event) || event.attempt !== entry.attempt) return;
    if (entry.stopped === null) abort(entry.task, "its attempt is over");
    letGo(entry);
  }

  function onCommittedEvent(event: Event): void {
    switch (event.kind) {
      case "task-submitted":
      case "task-done":
        return;
      case "task-assigned": {
        const crew = crews.get(event.worker);
        if (crew === undefined) return;
        push(crew.waiting, event);
        return serve(crew);
      }
      case "attempt-stopping":
        return abort(event.task, `stopped: ${event.cause}`);
      case "task-cancelled":
        return abort(event.task, `cancelled: ${event.reason}`);
      case "task-failed":
        return event.attempt === null ? abort(event.task, event.reason) : giveUp(event);
      case "attempt-stopped":
      case "attempt-failed":
      case "attempt-lost":
        return giveUp(event);
      default:
    }
  }

  return {
    join,
    progressOf: (task) => progress.get(task),
    async leaveAll() {
      await Promise.all([...crews.values()].map(leave));
    },
    onCommitted(batch) {
      if (crews.size > 0 || running.size > 0) for (const { event } of batch) onCommittedEvent(event);
      // An attempt may also be over because its worker was given up on, not because a handler ended.
      for (const id of idle.keys()) wakeIdle(id);
    },
    stop(error) {
      for (const entry of running.values()) {
        tellToStop(entry, error);
      }
      for (const quiet of idle.values()) quiet.reject(error);
      idle.clear();
    },
  };
}

/** As others see it: one that may run nothing has its slots, and takes no task. */
const limitedTo = (settings: WorkerSettings, limit: number, note: string | null): WorkerSettings =>
  limit === 0 ? { ...settings, status: "overloaded", note } : { ...settings, slots: limit, note };

/** Never more than its slots. */
function readLimit(count: unknown, { slots }: WorkerSettings): number {
  const read = whole(0, 100_000)(count, "limit");
  if (!read.ok) throw refused(read.failure);
  return Math.min(slots, read.value);
}

const missingBody = (seq: Seq): Error => Object.assign(new Error(damagedReason(seq)), { permanent: true });

/** Its worker leaves, and told it to stop. */
const isCutShort = ({ stopped, crew }: Running): boolean => stopped !== null && stopped === crew.leaving?.reason;

/** An attempt cut short because its worker leaves is lost with the worker, at no cost to its task, but for these. */
const isTold = ({ report }: Report): boolean =>
  report.outcome === "done" || report.permanent || report.rateLimited === true;

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === "object" || typeof value === "function") &&
  value !== null &&
  typeof (value as { then?: unknown }).then === "function";
