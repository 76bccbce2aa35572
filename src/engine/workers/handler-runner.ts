/**
 * Runs handlers in this process: takes a slot, calls the handler, and reports how the attempt ended.
 *
 * A quick handler never costs a "running" event: that is written only if the attempt still runs a turn later. A task
 * that must not run twice is the exception: its handler is called once the log has that it may have begun.
 */
import type { Seq, TaskId } from "../../core/base/index.ts";
import { fifo, IdTable, peek, push, shift } from "../../core/collections/index.ts";
import type { Task } from "../../core/model/index.ts";
import type { Clock } from "../../std/index.ts";
import type { LocalPermits } from "../permits/local-permits.ts";
import { type BodyStore, DamagedBody, damagedReason, type Kept } from "../tasks/body-store.ts";
import { done, failedSafely, type Report } from "../tasks/handler-outcome.ts";
import { assignedTask } from "../tasks/task-body.ts";
import { DroverError, isStop } from "../writer/drover-error.ts";
import { notify, type Writer } from "../writer/writer.ts";
import {
  HandlerContext,
  type HandlerWorker,
  isCutShort,
  newAttempt,
  type RunningAttempt,
  stopAttempt,
} from "./local-attempt.ts";

/** Handlers called in one turn of the event loop: what else the program does must not wait for thousands. */
const STARTED_PER_TURN_MAX = 128;

export type HandlerRunner = {
  readonly running: IdTable<RunningAttempt>;
  readonly progress: ReadonlyMap<string, unknown>;
  /** Starts what was assigned to the worker, as far as it has slots. */
  serve(worker: HandlerWorker): void;
  /** The attempt is over while its handler still runs, because it ignores its signal: its slot is free. */
  giveUp(task: TaskId, attempt: number): void;
};

export function createHandlerRunner(deps: {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly bodies: BodyStore;
  readonly permits: LocalPermits;
  /** A handler has ended, and its end is applied. */
  readonly onEnded: (worker: HandlerWorker) => void;
}): HandlerRunner {
  const { writer, clock, bodies, onEnded } = deps;
  const running = new IdTable<RunningAttempt>();
  const progress = new Map<string, unknown>();
  const contextParts = { writer, permits: deps.permits, progress };
  /** What has a slot and was not given to its handler yet. */
  const starting = fifo<RunningAttempt>();

  function serve(worker: HandlerWorker): void {
    while (worker.active < worker.limit && worker.leaving === null) {
      const next = shift(worker.waiting);
      if (next === undefined) return;
      const record = writer.state.tasks.get(next.task);
      // It may have been stopped, or taken away, while it waited.
      if (record?.attempt?.number !== next.attempt || record.attempt.state !== "assigned") continue;
      begin(worker, next.task, next.attempt, record);
    }
  }

  /** Takes a slot. What begins in one turn is given to its handlers once that is over, so many in each turn. */
  function begin(worker: HandlerWorker, task: TaskId, attempt: number, { seq: at, requirements }: Task): void {
    const entry = newAttempt(worker, task, attempt, at as Seq);
    running.set(task, entry);
    worker.active++;
    if (requirements.onLoss === "fail") return void beginOnRecord(entry);
    enqueue(entry);
  }

  function enqueue(entry: RunningAttempt): void {
    push(starting, entry);
    if (starting.length === 1) queueMicrotask(startSome);
  }

  async function beginOnRecord(entry: RunningAttempt): Promise<void> {
    notify(writer, { type: "start-attempt", task: entry.task, attempt: entry.attempt });
    try {
      await writer.settled();
    } catch (error) {
      // An engine that has stopped starts nothing more.
      if (!isStop(error)) throw error;
      return;
    }
    enqueue(entry);
  }

  function startSome(): void {
    const begun: RunningAttempt[] = [];
    for (let entry = peek(starting); entry !== undefined && begun.length < STARTED_PER_TURN_MAX; ) {
      // It stays in the queue until it was started: what begins meanwhile needs no turn of its own.
      if (!entry.isOver) start(entry);
      begun.push(entry);
      shift(starting);
      entry = peek(starting);
    }
    clock.defer(() => writeBegun(begun));
    if (starting.length > 0) clock.defer(startSome);
  }

  /** Those that still run a turn later are written down as running. */
  function writeBegun(begun: readonly RunningAttempt[]): void {
    for (const { task, attempt, isOver } of begun)
      if (!isOver) notify(writer, { type: "start-attempt", task, attempt });
  }

  function start(entry: RunningAttempt): void {
    const kept = bodies.peek(entry.seq);
    if (kept !== undefined) return perform(entry, kept);
    bodies.read(entry.seq).then(
      (text) => perform(entry, text === null ? null : { text, plain: null }),
      (error) => (error instanceof DamagedBody ? perform(entry, null) : fail(entry, error)),
    );
  }

  /** Calls the handler. One that answers at once is finished at once: no promise is made for it. */
  function perform(entry: RunningAttempt, body: Kept | null): void {
    let result: unknown;
    let isLater = false;
    try {
      // It was stopped before it began.
      if (isCutShort(entry)) return finish(entry, null);
      if (entry.stopped !== null) throw entry.stopped;
      if (body === null) throw missingBody(entry.seq);
      const { text, plain } = body;
      body.plain = null;
      const task = assignedTask(text, plain, entry.task, entry.attempt);
      result = entry.worker.handler(task, new HandlerContext(entry, contextParts));
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
  function succeed(entry: RunningAttempt, result: unknown): void {
    let report: Report;
    try {
      report = done(entry, result);
    } catch (error) {
      return fail(entry, error);
    }
    finish(entry, report);
  }

  const fail = (entry: RunningAttempt, error: unknown): void => finish(entry, failedSafely(entry, error, clock.now()));

  function finish(entry: RunningAttempt, ended: Report | null): void {
    const { worker, task, attempt } = entry;
    release(entry);
    // Without a report it never began; the log may have it as running all the same.
    if (ended === null) notify(writer, { type: "return-attempt", task, attempt });
    else if (!isCutShort(entry) || countsWhenCutShort(ended))
      notify(writer, { type: "finish-attempt", report: ended.report }, ended.text);
    onEnded(worker);
  }

  /** The handler has ended, or was given up on: its slot is free, once. */
  function release(entry: RunningAttempt): void {
    if (entry.isOver) return;
    entry.isOver = true;
    if (running.get(entry.task) === entry) running.delete(entry.task);
    if (progress.size > 0) progress.delete(entry.task);
    entry.worker.active--;
    if (entry.worker.active === 0) entry.worker.onIdle();
    serve(entry.worker);
  }

  function giveUp(task: TaskId, attempt: number): void {
    const entry = running.get(task);
    if (entry === undefined || attempt !== entry.attempt) return;
    if (entry.stopped === null) stopAttempt(entry, new DroverError("stopped", "its attempt is over"));
    release(entry);
  }

  return { running, progress, serve, giveUp };
}

const missingBody = (seq: Seq): Error => Object.assign(new Error(damagedReason(seq)), { permanent: true });

/** An attempt cut short because its worker leaves is lost with the worker, at no cost to its task, but for these. */
const countsWhenCutShort = ({ report }: Report): boolean =>
  report.outcome === "done" || report.permanent || report.rateLimited === true;

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === "object" || typeof value === "function") &&
  value !== null &&
  typeof (value as { then?: unknown }).then === "function";
