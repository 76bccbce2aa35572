/**
 * The handlers of a pull worker: what runs now, what waits for a slot, what was told to stop.
 *
 * The thread that keeps the connection says what to begin and what to stop; here it is done, and said when it ended. A
 * handler that was told to stop and does not is given up after the kill grace: its slot is free then, and whatever
 * it says later changes nothing. A task is never begun while an earlier attempt of it still runs here, and nothing is
 * begun once the lease is over, even if the thread has had no time to say so. As many are begun in one turn as can be
 * within a millisecond: a handler may keep the event loop for itself, and what was said meanwhile is heard before the
 * next one is begun. How many were begun is written where the thread can read it, before the handler is called.
 */
import type { Client, ClientFiles } from "../../client/index.ts";
import { PassingMap } from "../../core/collections/index.ts";
import type {
  AnyParams,
  AssignedView,
  AttemptRef,
  FileRef,
  Inputs,
  TaskBody,
  TaskContextOf,
  TaskView,
  Usage,
} from "../../protocol/index.ts";
import { ask, attemptToken, type Clock, isSafePath, ringAfter } from "../../std/index.ts";
import { type AttemptStopCause, type FromHandlers, type Handed, keyOf, type Report, type Stop } from "./messages.ts";
import { largerUsage, permanentError, reportOfError, tokensOf, UNREADABLE } from "./outcome.ts";
import type { WorkerPermits } from "./permits.ts";
import type { ProgressReports } from "./progress.ts";
import { type BegunCell, createTurns } from "./turns.ts";

/** A task as it was submitted, and which attempt of it this is. */
export type AssignedTask<Params extends object = AnyParams, Needed extends object = Inputs> = Omit<
  AssignedView<Params, unknown, Needed>,
  "agentId" | "action" | "state"
> & {
  /** The agent that submitted it. */
  readonly agentId: string;
  /** What is to be done. */
  readonly action: string;
};
/** What a handler has beside its task. */
export type TaskContext = TaskContextOf<Omit<TaskBody, "agentId"> & { readonly agentId?: string }>;
/** Runs one attempt; `used` is what it reported meanwhile. */
export type Perform = (
  task: AssignedTask,
  context: TaskContext,
  entry: { readonly used: Usage | null },
) => Promise<Report>;
/** Under which this worker has joined, and what it makes the tokens of its attempts with, if it does. */
export type Identity = { readonly workerId: string; readonly session: string; readonly tokenKey: string | null };

/** Why a handler is told to stop; the reason of its signal. */
export class AttemptStopped extends Error {
  override readonly name: string = "AttemptStopped";
  /** What stops the attempt. */
  readonly why: AttemptStopCause | "closing";
  constructor(why: AttemptStopCause | "closing") {
    super(WORDS[why]);
    this.why = why;
  }
}
const WORDS: Readonly<Record<AttemptStopCause | "closing", string>> = {
  cancelled: "Drover stops this attempt: it was cancelled, ran out of time or budget, or another one counts",
  "lease-lost": "the lease is lost: the server was not reached in time and may give the task to another worker",
  "session-lost": "the server does not know this worker any more and may give the task to another one",
  "not-begun": "the event loop stood still for so long that the task was given to another worker",
  closing: "its worker is closing",
};

type Entry = AttemptRef & {
  readonly key: string;
  readonly given: string | null;
  /** Made when somebody looks: most handlers of short tasks do not. */
  controller: AbortController | null;
  files: Map<string, FileRef> | null;
  used: Usage | null;
  cancelGrace: (() => void) | null;
};
const newEntry = ({ key, taskId, attempt, taskSeq, token }: Waiting): Entry => ({
  taskId,
  attempt,
  taskSeq: taskSeq as number,
  key,
  given: token ?? null,
  controller: null,
  files: null,
  used: null,
  cancelGrace: null,
});

function controllerOf(entry: Entry): AbortController {
  entry.controller ??= new AbortController();
  return entry.controller;
}

/** The one that came with the attempt, or one that is made when somebody asks for it: most handlers do not. */
function tokenOf({ taskId, attempt, taskSeq, given }: Entry, { tokenKey }: Identity): string | null {
  if (given !== null || tokenKey === null || taskSeq === undefined) return given;
  return attemptToken(tokenKey, { taskId, attempt, taskSeq });
}

type Waiting = Handed & { readonly key: string; readonly place: number };

/** Of the express lane: EXPRESS_PRIORITY of the core. */
const URGENT_PRIORITY = -200;
const isUrgent = ({ task }: Handed): boolean => (task.effectivePriority ?? 0) <= URGENT_PRIORITY;

export type Handlers = {
  /** How many handlers run. */
  readonly running: number;
  start(assignments: readonly Handed[]): void;
  /** They were handed over, and cannot be begun: nobody can read them. */
  decline(named: readonly AttemptRef[]): void;
  stop(stops: readonly Stop[]): void;
  /** Those of them that wait for a slot are never begun. */
  giveBack(attempts: readonly AttemptRef[]): void;
  /** Begins nothing from now on, and tells all that runs to stop. */
  stopAll(cause: AttemptStopCause | "closing"): void;
  /** Resolves when nothing runs any more. */
  idle(): Promise<void>;
};

type HandlerDeps = {
  readonly slots: number;
  readonly killGraceMs: number;
  readonly clock: Clock;
  readonly perform: Perform;
  readonly isLeaseHeld: (now: number) => boolean;
  /** Where it is said what was begun, and what may not be. */
  readonly cell: BegunCell;
  readonly post: (message: FromHandlers) => void;
  readonly warn: (message: string) => void;
  readonly reports: ProgressReports;
  readonly permits: WorkerPermits;
  readonly files: ClientFiles;
  readonly identity: () => Identity;
  readonly clientAs: (token: string) => Pick<Client, "submit">;
};

export function createHandlers(deps: HandlerDeps): Handlers {
  const { clock, post, reports } = deps;
  const active = new PassingMap<string, Entry>();
  /** Tasks of which an attempt runs. */
  const busy = new PassingMap<string, true>();
  const waiting = new PassingMap<string, Waiting>();
  const onIdle = new Set<() => void>();
  const turns = createTurns(deps.cell);
  let isServing = false;
  /** Nothing is begun any more: what still comes was under way. */
  let isOver = false;

  function serveSoon(): void {
    if (isServing || waiting.size === 0 || active.size >= deps.slots) return;
    isServing = true;
    clock.defer(() => {
      isServing = false;
      serve();
    });
  }

  /** Begins those that may be, if there are slots, until a millisecond is over. */
  function serve(): void {
    let now = clock.elapsed();
    const since = now;
    for (const handed of waiting.values()) {
      if (active.size >= deps.slots) return;
      if (busy.has(handed.taskId)) continue;
      waiting.delete(handed.key);
      if (deps.isLeaseHeld(now)) void begin(handed);
      else endUnbegun(handed, null);
      now = clock.elapsed();
      if (now !== since) return serveSoon();
    }
  }

  async function begin(handed: Waiting): Promise<void> {
    const { taskId, attempt, place } = handed;
    const turn = turns.begin(place, handed.goesOn === true);
    if (turn === "never") return end(handed, null);
    const entry = newEntry(handed);
    active.set(entry.key, entry);
    busy.set(taskId, true);
    if (turn === "early") post({ type: "began", taskId, attempt });
    let report: Report;
    try {
      const task = assignedTask(handed, deps.identity().workerId);
      report = await deps.perform(task, new HandlerContext(deps, entry, isActive), entry);
    } catch (error) {
      report = reportOfError(error, entry.used, Date.now());
    }
    if (isActive(entry)) letGo(entry, withFiles(entry, report));
  }

  const isActive = (entry: Entry): boolean => active.get(entry.key) === entry;

  function endUnbegun({ taskId, attempt, place }: AttemptRef & { place: number }, report: Report | null): void {
    turns.pass(place);
    end({ taskId, attempt }, report);
  }

  /** The handler has ended, or was given up on: its slot is free, once. */
  function letGo(entry: Entry, report: Report): void {
    entry.cancelGrace?.();
    active.delete(entry.key);
    busy.delete(entry.taskId);
    end(entry, report);
    serveSoon();
    if (active.size === 0) for (const resolve of onIdle) resolve();
  }

  function end({ taskId, attempt }: AttemptRef, report: Report | null): void {
    reports.drop({ taskId, attempt });
    post({ type: "ended", taskId, attempt, report });
  }

  function stopOne(attempt: AttemptRef, cause: AttemptStopCause | "closing"): void {
    const key = keyOf(attempt);
    const entry = active.get(key);
    if (entry === undefined) {
      const handed = waiting.get(key);
      waiting.delete(key);
      if (handed !== undefined) endUnbegun(handed, { outcome: "cancelled" });
      return;
    }
    const { signal } = controllerOf(entry);
    if (signal.aborted) return;
    entry.cancelGrace = ringAfter(clock, deps.killGraceMs, () => giveUp(entry));
    controllerOf(entry).abort(new AttemptStopped(cause));
  }

  function giveUp(entry: Entry): void {
    if (!isActive(entry)) return;
    const { taskId, attempt } = entry;
    deps.warn(`task ${taskId}, attempt ${attempt}, did not stop within ${deps.killGraceMs} ms and is given up`);
    letGo(entry, { outcome: "cancelled", error: `its handler did not stop within ${deps.killGraceMs} ms` });
  }

  return {
    get running() {
      return active.size;
    },
    start(assignments) {
      const given = assignments.map(({ taskId, attempt, taskSeq, task, token, goesOn }): Waiting => {
        const key = keyOf({ taskId, attempt });
        const waiting = { taskId, attempt, taskSeq: taskSeq as number, task, token, key, place: turns.next() };
        return goesOn === true ? { ...waiting, goesOn } : waiting;
      });
      if (isOver) {
        for (const handed of given) endUnbegun(handed, null);
        return;
      }
      for (const { place } of takeOut(waiting, given)) turns.pass(place);
      // What waits is beyond the slots: who is urgent goes before it.
      const hasUrgent = waiting.size > 0 && given.some(isUrgent);
      const all = hasUrgent ? [...waiting.values(), ...given] : given;
      if (hasUrgent) waiting.clear();
      for (const handed of hasUrgent ? all.filter(isUrgent) : []) waiting.set(handed.key, handed);
      for (const handed of all) waiting.set(handed.key, handed);
      serveSoon();
    },
    decline(named) {
      for (const { taskId, attempt } of named) endUnbegun({ taskId, attempt, place: turns.next() }, UNREADABLE);
    },
    stop(stops) {
      for (const { cause, ...attempt } of stops) stopOne(attempt, cause);
    },
    giveBack(attempts) {
      for (const attempt of attempts) {
        const handed = waiting.get(keyOf(attempt));
        if (handed === undefined) continue;
        waiting.delete(handed.key);
        endUnbegun(handed, null);
      }
    },
    stopAll(cause) {
      isOver = true;
      for (const handed of [...waiting.values()]) {
        waiting.delete(handed.key);
        endUnbegun(handed, null);
      }
      for (const entry of [...active.values()]) stopOne(entry, cause);
    },
    idle: () => (active.size === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.add(resolve))),
  };
}

/** Those that went back, and attempts of later tasks of their ids came before that was heard: nobody asks for them. */
function takeOut(waiting: PassingMap<string, Waiting>, given: readonly Waiting[]): Waiting[] {
  const earlier = given.map(({ key }) => waiting.get(key)).filter((one) => one !== undefined);
  for (const { key } of earlier) waiting.delete(key);
  return earlier;
}

/**
 * What a handler has beside its task; what it reports once it is over is not passed on.
 *
 * Made for every attempt and mostly left alone: each of its functions is made when a handler reaches for it. It is a
 * class because of the signal: an object with a getter of its own has a hidden class of its own, which is old from the
 * beginning and keeps all of the attempt in memory until everything old is collected.
 */
class HandlerContext implements TaskContext {
  readonly attempt: number;
  readonly ask: TaskContext["ask"] = ask;
  readonly #deps: HandlerDeps;
  readonly #entry: Entry;
  readonly #isActive: (entry: Entry) => boolean;
  #client: Pick<Client, "submit"> | null = null;

  constructor(deps: HandlerDeps, entry: Entry, isActive: (entry: Entry) => boolean) {
    this.attempt = entry.attempt;
    this.#deps = deps;
    this.#entry = entry;
    this.#isActive = isActive;
  }
  get token(): string | null {
    return tokenOf(this.#entry, this.#deps.identity());
  }
  get signal(): AbortSignal {
    return controllerOf(this.#entry).signal;
  }
  get progress(): TaskContext["progress"] {
    const [{ reports }, entry, isActive] = [this.#deps, this.#entry, this.#isActive];
    const { taskId, attempt } = entry;
    return (value) => {
      if (isActive(entry)) reports.progress({ taskId, attempt }, value);
    };
  }
  get usage(): TaskContext["usage"] {
    const [{ reports }, entry, isActive] = [this.#deps, this.#entry, this.#isActive];
    const { taskId, attempt } = entry;
    return (usage) => {
      tokensOf(usage);
      entry.used = largerUsage(entry.used, { ...usage });
      if (isActive(entry) && entry.used !== null) reports.usage({ taskId, attempt }, entry.used);
    };
  }
  get output(): TaskContext["output"] {
    const [deps, entry] = [this.#deps, this.#entry];
    return async (path, content) => {
      if (typeof path !== "string" || !isSafePath(path))
        throw permanentError("path must be a relative path that stays in its directory, with slashes");
      // Of what ended well the files are kept, though it is told to stop by then.
      const { signal: _, ...attemptOf } = filesOf(deps, entry);
      const file = { path, ...(await deps.files.put(content, attemptOf)) };
      entry.files ??= new Map();
      entry.files.set(path, file);
      return file;
    };
  }
  get file(): TaskContext["file"] {
    const [deps, entry] = [this.#deps, this.#entry];
    return (hash) => deps.files.open(hash, filesOf(deps, entry));
  }
  get withPermit(): TaskContext["withPermit"] {
    const [{ permits }, entry] = [this.#deps, this.#entry];
    return (gate, call, options) =>
      permits.withPermit(gate, call, options, { ...entry, signal: controllerOf(entry).signal });
  }
  get submit(): TaskContext["submit"] {
    return async (body) => {
      // One for all: it knows who leads, and what is submitted at the same time travels together.
      this.#client ??= this.#deps.clientAs(tokenIn(this));
      return await this.#client.submit(body as TaskBody);
    };
  }
}

function tokenIn({ token }: TaskContext): string {
  if (token === null) throw new Error("this server gives no tokens to attempts: it is an older one");
  return token;
}

/** As its handler sees it. It was read for this attempt alone, so it may be added to. */
export function assignedTask({ taskId, attempt, task }: Handed, worker: string): AssignedTask {
  if ("state" in task) {
    const { state: _, ...shown } = task as AssignedTask & TaskView;
    return Object.assign(shown, { attempt });
  }
  const lean = task as { -readonly [Field in keyof AssignedTask]?: AssignedTask[Field] };
  lean.taskId = taskId;
  lean.attempt = attempt;
  lean.worker = worker;
  if (lean.createdAt !== undefined) lean.runnableAt ??= lean.createdAt;
  lean.depth ??= 0;
  lean.effectivePriority ??= 0;
  return lean as AssignedTask;
}

/** As whom it asks: a worker that joins anew has a new session, and its old attempts are stopped. */
const filesOf = (deps: HandlerDeps, entry: Entry) => {
  const { taskId, attempt } = entry;
  const { session } = deps.identity();
  return { task: taskId, attempt, signal: controllerOf(entry).signal, ...(session === "" ? {} : { session }) };
};

/** What an attempt has left is part of how it ended. */
function withFiles({ files }: Entry, report: Report): Report {
  const hasEnded = report.outcome === "done" || report.outcome === "failed";
  return files === null || !hasEnded ? report : { ...report, files: [...files.values()] };
}
