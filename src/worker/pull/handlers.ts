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
import { ask, type Clock, isSafePath, ringAfter } from "../../std/index.ts";
import { type AttemptStopCause, type FromHandlers, type Handed, keyOf, type Report, type Stop } from "./messages.ts";
import { largerUsage, permanentError, reportOfError, tokensOf } from "./outcome.ts";
import type { WorkerPermits } from "./permits.ts";
import type { ProgressReports } from "./progress.ts";

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
export type Perform = (task: AssignedTask, context: TaskContext, used: () => Usage | null) => Promise<Report>;

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
  readonly token: string | null;
  /** Made when somebody looks: most handlers of short tasks do not. */
  controller: AbortController | null;
  files: Map<string, FileRef> | null;
  used: Usage | null;
  cancelGrace: (() => void) | null;
};
const newEntry = ({ taskId, attempt, taskSeq, token }: Handed): Entry => ({
  taskId,
  attempt,
  ...(taskSeq === undefined ? {} : { taskSeq }),
  token: token ?? null,
  controller: null,
  files: null,
  used: null,
  cancelGrace: null,
});

function controllerOf(entry: Entry): AbortController {
  entry.controller ??= new AbortController();
  return entry.controller;
}

function tokenOf({ token }: Entry): string {
  if (token === null) throw new Error("this server gives no tokens to attempts: it is an older one");
  return token;
}

type Waiting = Handed & { readonly place: number };

export type Handlers = {
  /** How many handlers run. */
  readonly running: number;
  start(assignments: readonly Handed[]): void;
  stop(stops: readonly Stop[]): void;
  /** Forgets what waits, and tells all that runs to stop. */
  stopAll(cause: AttemptStopCause | "closing"): void;
  /** Resolves when nothing runs any more. */
  idle(): Promise<void>;
};

type HandlerDeps = {
  readonly slots: number;
  readonly killGraceMs: number;
  readonly clock: Clock;
  readonly perform: Perform;
  readonly isLeaseHeld: () => boolean;
  /** So many of those that were handed over have been begun, in their order. */
  readonly setBegun: (count: number) => void;
  readonly post: (message: FromHandlers) => void;
  readonly warn: (message: string) => void;
  readonly reports: ProgressReports;
  readonly permits: WorkerPermits;
  readonly files: ClientFiles;
  /** Under which this worker has joined. */
  readonly session: () => string;
  readonly clientAs: (token: string) => Pick<Client, "submit">;
};

export function createHandlers(deps: HandlerDeps): Handlers {
  const { clock, post, reports } = deps;
  const active = new Map<string, Entry>();
  /** Tasks of which an attempt runs. */
  const busy = new Set<string>();
  const waiting = new Map<string, Waiting>();
  const onIdle = new Set<() => void>();
  const turns = createTurns(deps.setBegun);
  let isServing = false;

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
    const since = clock.elapsed();
    for (const [key, handed] of waiting) {
      if (active.size >= deps.slots) return;
      if (busy.has(handed.taskId)) continue;
      waiting.delete(key);
      if (deps.isLeaseHeld()) void begin(key, handed);
      else endUnbegun(handed, null);
      if (clock.elapsed() !== since) return serveSoon();
    }
  }

  async function begin(key: string, handed: Waiting): Promise<void> {
    const entry = newEntry(handed);
    active.set(key, entry);
    busy.add(handed.taskId);
    if (!turns.take(handed.place)) post({ type: "began", taskId: handed.taskId, attempt: handed.attempt });
    const report = withFiles(entry, await outcomeOf(key, entry, handed.task));
    if (active.get(key) === entry) letGo(key, entry, report);
  }

  function endUnbegun({ taskId, attempt, place }: Waiting, report: Report | null): void {
    turns.take(place);
    end({ taskId, attempt }, report);
  }

  async function outcomeOf(key: string, entry: Entry, task: TaskView): Promise<Report> {
    try {
      const { state: _, ...body } = task as AssignedTask & TaskView;
      return await deps.perform(
        Object.assign(body, { attempt: entry.attempt }),
        new HandlerContext(deps, entry, () => active.get(key) === entry),
        () => entry.used,
      );
    } catch (error) {
      return reportOfError(error, entry.used, Date.now());
    }
  }

  /** The handler has ended, or was given up on: its slot is free, once. */
  function letGo(key: string, entry: Entry, report: Report): void {
    entry.cancelGrace?.();
    active.delete(key);
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
    entry.cancelGrace = ringAfter(clock, deps.killGraceMs, () => giveUp(key, entry));
    controllerOf(entry).abort(new AttemptStopped(cause));
  }

  function giveUp(key: string, entry: Entry): void {
    if (active.get(key) !== entry) return;
    const { taskId, attempt } = entry;
    deps.warn(`task ${taskId}, attempt ${attempt}, did not stop within ${deps.killGraceMs} ms and is given up`);
    letGo(key, entry, { outcome: "cancelled", error: `its handler did not stop within ${deps.killGraceMs} ms` });
  }

  return {
    get running() {
      return active.size;
    },
    start(assignments) {
      for (const handed of assignments) waiting.set(keyOf(handed), { ...handed, place: turns.next() });
      serveSoon();
    },
    stop(stops) {
      for (const { cause, ...attempt } of stops) stopOne(attempt, cause);
    },
    stopAll(cause) {
      for (const handed of [...waiting.values()]) {
        waiting.delete(keyOf(handed));
        endUnbegun(handed, null);
      }
      for (const entry of [...active.values()]) stopOne(entry, cause);
    },
    idle: () => (active.size === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.add(resolve))),
  };
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
  readonly token: string | null;
  readonly ask: TaskContext["ask"] = ask;
  readonly #deps: HandlerDeps;
  readonly #entry: Entry;
  readonly #isActive: () => boolean;
  #client: Pick<Client, "submit"> | null = null;

  constructor(deps: HandlerDeps, entry: Entry, isActive: () => boolean) {
    this.attempt = entry.attempt;
    this.token = entry.token;
    this.#deps = deps;
    this.#entry = entry;
    this.#isActive = isActive;
  }
  get signal(): AbortSignal {
    return controllerOf(this.#entry).signal;
  }
  get progress(): TaskContext["progress"] {
    const [{ reports }, { taskId, attempt }, isActive] = [this.#deps, this.#entry, this.#isActive];
    return (value) => {
      if (isActive()) reports.progress({ taskId, attempt }, value);
    };
  }
  get usage(): TaskContext["usage"] {
    const [{ reports }, entry, isActive] = [this.#deps, this.#entry, this.#isActive];
    const { taskId, attempt } = entry;
    return (usage) => {
      tokensOf(usage);
      entry.used = largerUsage(entry.used, { ...usage });
      if (isActive() && entry.used !== null) reports.usage({ taskId, attempt }, entry.used);
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
      this.#client ??= this.#deps.clientAs(tokenOf(this.#entry));
      return await this.#client.submit(body as TaskBody);
    };
  }
}

/** As whom it asks: a worker that joins anew has a new session, and its old attempts are stopped. */
const filesOf = (deps: HandlerDeps, entry: Entry) => {
  const { taskId, attempt } = entry;
  const session = deps.session();
  return { task: taskId, attempt, signal: controllerOf(entry).signal, ...(session === "" ? {} : { session }) };
};

/** Which of those that were handed over have been begun, or will never be: nearly always they are in their order. */
function createTurns(setBegun: (count: number) => void): { next(): number; take(place: number): boolean } {
  /** Begun before one that came earlier. */
  const early = new Set<number>();
  let handedOver = 0;
  let begun = 0;
  return {
    next: () => ++handedOver,
    /** Whether the count says it. */
    take(place) {
      early.add(place);
      while (early.delete(begun + 1)) begun++;
      setBegun(begun);
      return place <= begun;
    },
  };
}

/** What an attempt has left is part of how it ended. */
function withFiles({ files }: Entry, report: Report): Report {
  const hasEnded = report.outcome === "done" || report.outcome === "failed";
  return files === null || !hasEnded ? report : { ...report, files: [...files.values()] };
}
