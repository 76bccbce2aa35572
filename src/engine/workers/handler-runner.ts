/**
 * Runs handlers in this process: takes a slot, calls the handler, and reports how the attempt ended.
 *
 * A quick handler never costs a "running" event: that is written only if the attempt still runs a turn later. A task
 * that must not run twice is the exception: its handler is called once the log has that it may have begun.
 */
import type { Seq, TaskId, WorkerId } from "../../core/base/index.ts";
import { type Fifo, fifo, peek, push, shift, TaskTable } from "../../core/collections/index.ts";
import type { Task, UsageTotals, WorkerSettings } from "../../core/model/index.ts";
import type {
  AnyParams,
  ApprovalView,
  CurrentRound,
  FileContent,
  FileRef,
  Inputs,
  TaskContextOf,
} from "../../protocol/index.ts";
import { type Again, type Ask, ask, type Clock, isSafePath, present } from "../../std/index.ts";
import { detailsOf, tokensOf } from "../base/charged-tokens.ts";
import { badInput, DroverError, isStop, refused } from "../base/drover-error.ts";
import type { FileRoom, Files } from "../files/files.ts";
import type { LocalPermits } from "../permits/local-permits.ts";
import type { AttemptTokens } from "../tasks/attempt-tokens.ts";
import { type BodyStore, DamagedBody, damagedReason, type KeptBody } from "../tasks/body-store.ts";
import type { ChildInput } from "../tasks/children.ts";
import { done, failed, type Report } from "../tasks/handler-outcome.ts";
import { called, hasInputs, type ReadInputs } from "../tasks/inputs.ts";
import type { TaskApi } from "../tasks/task-api.ts";
import { type AssignedTask, assignedTask, parseStored } from "../tasks/task-body.ts";
import { approvalView, currentRound } from "../tasks/task-view.ts";
import { notify, type Writer } from "../writer/writer.ts";

/** Handlers called in one turn of the event loop: what else the program does must not wait for thousands. */
const STARTED_PER_TURN_MAX = 128;

type HandlerRunner = {
  readonly running: TaskTable<RunningAttempt>;
  readonly progress: ReadonlyMap<string, unknown>;
  /** Starts what was assigned to the worker, as far as it has slots. */
  serve(worker: HandlerWorker): void;
  /** The attempt is over while its handler still runs, because it ignores its signal: its slot is free. */
  giveUp(task: TaskId, attempt: number): void;
};

type BodySources = { readonly writer: Writer; readonly bodies: BodyStore; readonly inputs: ReadInputs };

/** Where what handlers leave is kept. */
export type AttemptFiles = Pick<FileRoom, "put" | "faultOf"> & Pick<Files, "open">;
type RunnerParts = BodySources & {
  readonly files: AttemptFiles;
  readonly clock: Clock;
  readonly permits: LocalPermits;
  readonly submitChild: TaskApi["submitChild"];
  readonly tokens: AttemptTokens;
  /** A handler has ended, and its end is applied. */
  readonly onEnded: (worker: HandlerWorker) => void;
};

export function createHandlerRunner(deps: RunnerParts): HandlerRunner {
  const { writer, clock, bodies, onEnded } = deps;
  const running = new TaskTable<RunningAttempt>();
  const progress = new Map<string, unknown>();
  const { permits, files, submitChild, tokens } = deps;
  const contextParts = { writer, permits, files, progress, submitChild, tokens };
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
  function begin(worker: HandlerWorker, task: TaskId, attempt: number, record: Task): void {
    const entry = newAttempt(worker, task, attempt, record.seq as Seq);
    if (hasInputs(record)) entry.inputs = {};
    if (record.extra !== null) noteExtra(entry, record);
    running.set(task, entry);
    worker.active++;
    if (record.requirements.onLoss === "fail") return void beginOnRecord(entry);
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
    const kept = entry.inputs === null ? bodies.peek(entry.seq) : undefined;
    if (kept !== undefined) return perform(entry, kept);
    readBody(deps, entry).then(
      (body) => perform(entry, body),
      (error) => (error instanceof DamagedBody ? perform(entry, null) : fail(entry, error)),
    );
  }

  /** Calls the handler. One that answers at once is finished at once: no promise is made for it. */
  function perform(entry: RunningAttempt, body: Pick<KeptBody, "text" | "plain"> | null): void {
    let result: unknown;
    let isLater = false;
    try {
      // It was stopped before it began.
      if (isCutShort(entry)) return finish(entry, null);
      if (entry.stopped !== null) throw entry.stopped;
      if (body === null) throw missingBody(entry.seq);
      const { text, plain } = body;
      body.plain = null;
      const { inputs, round, approval } = entry;
      const task = assignedTask(text, plain, entry.task, entry.attempt);
      const { params } = called(task.params, inputs);
      result = entry.worker.handler(
        params === undefined && inputs === null && round === null && approval === null
          ? task
          : { ...task, ...present({ params, inputs, round, approval }) },
        new HandlerContext(entry, contextParts),
      );
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

  const fail = (entry: RunningAttempt, error: unknown): void => finish(entry, failed(entry, error, clock.now()));

  function finish(entry: RunningAttempt, ended: Report | null): void {
    const { worker, task, attempt } = entry;
    release(entry);
    // Without a report it never began; the log may have it as running all the same.
    if (ended === null) notify(writer, { type: "return-attempt", task, attempt });
    else if (!isCutShort(entry) || countsWhenCutShort(ended))
      notify(writer, { type: "finish-attempt", report: withFiles(entry, ended.report) }, ended.text);
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

const withFiles = ({ files }: RunningAttempt, report: Report["report"]): Report["report"] =>
  files === null ? report : { ...report, files };

/** What few tasks have and their handlers see. */
function noteExtra(entry: RunningAttempt, record: Task): void {
  const approval = record.extra?.approval ?? null;
  entry.round = currentRound(record);
  entry.approval = approval === null ? null : approvalView(approval);
}

/** What is stored of its task; and if that needs others, what it sees of them is noted. */
async function readBody(
  { writer, bodies, inputs }: BodySources,
  entry: RunningAttempt,
): Promise<Pick<KeptBody, "text" | "plain"> | null> {
  const text = await bodies.read(entry.seq);
  const record = entry.inputs === null ? undefined : writer.state.tasks.get(entry.task);
  if (text === null || record === undefined) return text === null ? null : { text, plain: null };
  const body = parseStored(text);
  entry.inputs = await inputs(record, body.needs);
  return { text, plain: { ...body } };
}

const missingBody = (seq: Seq): Error => Object.assign(new Error(damagedReason(seq)), { permanent: true });

/** An attempt cut short because its worker leaves is lost with the worker, at no cost to its task, but for these. */
const countsWhenCutShort = ({ report }: Report): boolean =>
  report.outcome === "done" || report.permanent || report.rateLimited === true;

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === "object" || typeof value === "function") &&
  value !== null &&
  typeof (value as { then?: unknown }).then === "function";

/** What a handler has beside its task. */
export type TaskContext = TaskContextOf<ChildInput>;
/**
 * Runs a task; what it answers is the task's result, what it throws its failure. In a loop it may answer `again(note)`.
 */
export type Handler<Params extends object = AnyParams, Result = unknown, Needed extends object = Inputs> = (
  task: AssignedTask<Params, Needed>,
  context: TaskContext,
) => Result | Again | Promise<Result | Again>;

/** A worker of this process: its handler, how many attempts it runs at once, and what was assigned beyond that. */
export type HandlerWorker = {
  readonly id: WorkerId;
  readonly handler: Handler;
  /** As the log has them; `limit` is how many it runs at once, which may be none. */
  settings: WorkerSettings;
  limit: number;
  active: number;
  /** When it leaves: the reason its handlers get, and the promise that it has left. */
  leaving: { readonly reason: DroverError; readonly left: Promise<void> } | null;
  /** Called when the last of its handlers has ended. */
  onIdle: () => void;
  readonly waiting: Fifo<{ readonly task: TaskId; readonly attempt: number }>;
};

export type RunningAttempt = {
  readonly task: TaskId;
  readonly attempt: number;
  /** The event that its body is stored with. */
  readonly seq: Seq;
  readonly worker: HandlerWorker;
  /** Of a task that needs others: what it sees of them. */
  inputs: Inputs | null;
  /** Of a loop: where it is. */
  round: CurrentRound | null;
  /** What it has left so far. */
  files: readonly FileRef[] | null;
  /** What was asked of somebody, and the answer. */
  approval: ApprovalView | null;
  /** Its handler has ended, or was given up on. */
  isOver: boolean;
  controller: AbortController | null;
  stopped: DroverError | null;
  tokens: number | null;
  /** What it said last of what it used, in detail. */
  usage: UsageTotals | null;
};

const newAttempt = (worker: HandlerWorker, task: TaskId, attempt: number, seq: Seq): RunningAttempt => ({
  task,
  attempt,
  seq,
  worker,
  inputs: null,
  round: null,
  files: null,
  approval: null,
  isOver: false,
  controller: null,
  stopped: null,
  tokens: null,
  usage: null,
});

export function stopAttempt(entry: RunningAttempt, reason: DroverError): void {
  entry.stopped = reason;
  entry.controller?.abort(reason);
}

/** Its worker leaves, and that is why it was stopped. */
const isCutShort = ({ stopped, worker }: RunningAttempt): boolean =>
  stopped !== null && stopped === worker.leaving?.reason;

/** The signal is made when a handler asks for it: most handlers are done before. */
function signalOf(entry: RunningAttempt): AbortSignal {
  if (entry.controller === null) {
    entry.controller = new AbortController();
    if (entry.stopped !== null) entry.controller.abort(entry.stopped);
  }
  return entry.controller.signal;
}

type ContextParts = {
  readonly writer: Writer;
  readonly permits: LocalPermits;
  readonly files: AttemptFiles;
  readonly progress: Map<string, unknown>;
  readonly submitChild: TaskApi["submitChild"];
  readonly tokens: AttemptTokens;
};

async function leave(
  { files }: ContextParts,
  entry: RunningAttempt,
  path: string,
  content: FileContent,
): Promise<FileRef> {
  if (typeof path !== "string" || !isSafePath(path))
    throw badInput("path", path, "a relative path that stays in its directory, with slashes");
  const { task, attempt } = entry;
  const file = { path, ...(await files.put(content, { task, attempt })) };
  const all = [...(entry.files ?? []).filter((other) => other.path !== path), file];
  const fault = files.faultOf(all);
  if (fault !== null)
    throw new DroverError("bad_request", `${path} cannot be left: ${fault.why}`, { details: { path } });
  if (!entry.isOver) entry.files = all;
  return file;
}

/** Made for every attempt and mostly left alone: each of its functions is made when a handler reaches for it. */
class HandlerContext implements TaskContext {
  readonly attempt: number;
  readonly #entry: RunningAttempt;
  readonly #parts: ContextParts;
  constructor(entry: RunningAttempt, parts: ContextParts) {
    this.attempt = entry.attempt;
    this.#entry = entry;
    this.#parts = parts;
  }
  get signal(): AbortSignal {
    return signalOf(this.#entry);
  }
  get progress(): TaskContext["progress"] {
    const [entry, { progress }] = [this.#entry, this.#parts];
    return (value) => {
      if (!entry.isOver) progress.set(entry.task, value);
    };
  }
  get usage(): TaskContext["usage"] {
    const [entry, { writer }] = [this.#entry, this.#parts];
    return (usage) => {
      const tokens = tokensOf(usage);
      if (tokens >= (entry.tokens ?? 0)) entry.usage = detailsOf(usage);
      entry.tokens = Math.max(entry.tokens ?? 0, tokens);
      if (entry.isOver) return;
      notify(writer, { type: "report-usage", task: entry.task, attempt: entry.attempt, tokens: entry.tokens });
    };
  }
  get output(): TaskContext["output"] {
    return (path, content) => leave(this.#parts, this.#entry, path, content);
  }
  get file(): TaskContext["file"] {
    const [{ task }, { files }] = [this.#entry, this.#parts];
    return async function* (hash) {
      yield* (await files.open(hash, { task })).bytes;
    };
  }
  get ask(): Ask {
    return ask;
  }
  get withPermit(): TaskContext["withPermit"] {
    const [entry, { permits }] = [this.#entry, this.#parts];
    const { task, attempt, seq: taskSeq } = entry;
    return (gate, call, options) =>
      permits.withPermit(gate, call, options, { task, attempt, taskSeq, signal: signalOf(entry) });
  }
  get token(): TaskContext["token"] {
    const { task, attempt, isOver } = this.#entry;
    return isOver ? null : this.#parts.tokens.of(task, attempt);
  }
  get submit(): TaskContext["submit"] {
    const [entry, { submitChild }] = [this.#entry, this.#parts];
    const { task, attempt } = entry;
    return async (body) => {
      if (entry.isOver) throw refused({ type: "attempt-stale", task, attempt, current: null });
      return await submitChild(task, attempt, body);
    };
  }
}
