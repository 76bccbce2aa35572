/**
 * An attempt while its handler runs in this process: what is kept of it, and the context that the handler gets.
 */

import type { Seq, TaskId, WorkerId } from "../../core/base/index.ts";
import type { Fifo } from "../../core/collections/index.ts";
import type { WorkerSettings } from "../../core/model/index.ts";
import type { AnyParams, Usage } from "../../protocol/index.ts";
import { type HeldPermit, type LocalPermits, type PermitOptions, tokensOf } from "../permits/local-permits.ts";
import type { AssignedTask } from "../tasks/task-body.ts";
import type { DroverError } from "../writer/drover-error.ts";
import { notify, type Writer } from "../writer/writer.ts";

/** What a handler has beside its task. */
export type TaskContext = {
  /** Fires when the attempt must stop: cancelled, timed out, past its deadline, out of budget. */
  readonly signal: AbortSignal;
  /** The number of the attempt. */
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
/** Runs a task; what it answers is the task's result, what it throws its failure. */
export type Handler<Params extends object = AnyParams, Result = unknown> = (
  task: AssignedTask<Params>,
  context: TaskContext,
) => Result | Promise<Result>;

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
  /** Its handler has ended, or was given up on. */
  isOver: boolean;
  controller: AbortController | null;
  stopped: DroverError | null;
  tokens: number | null;
};

export const newAttempt = (worker: HandlerWorker, task: TaskId, attempt: number, seq: Seq): RunningAttempt => ({
  task,
  attempt,
  seq,
  worker,
  isOver: false,
  controller: null,
  stopped: null,
  tokens: null,
});

export function stopAttempt(entry: RunningAttempt, reason: DroverError): void {
  entry.stopped = reason;
  entry.controller?.abort(reason);
}

/** Its worker leaves, and that is why it was stopped. */
export const isCutShort = ({ stopped, worker }: RunningAttempt): boolean =>
  stopped !== null && stopped === worker.leaving?.reason;

/** The signal is made when a handler asks for it: most handlers are done before. */
function signalOf(entry: RunningAttempt): AbortSignal {
  if (entry.controller === null) {
    entry.controller = new AbortController();
    if (entry.stopped !== null) entry.controller.abort(entry.stopped);
  }
  return entry.controller.signal;
}

export type ContextParts = {
  readonly writer: Writer;
  readonly permits: LocalPermits;
  readonly progress: Map<string, unknown>;
};

/** Made for every attempt and mostly left alone: each of its functions is made when a handler reaches for it. */
export class HandlerContext implements TaskContext {
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
      entry.tokens = Math.max(entry.tokens ?? 0, tokensOf(usage));
      notify(writer, { type: "report-usage", task: entry.task, attempt: entry.attempt, tokens: entry.tokens });
    };
  }
  get withPermit(): TaskContext["withPermit"] {
    const [entry, { permits }] = [this.#entry, this.#parts];
    const { task, attempt } = entry;
    return (gate, call, options) => permits.withPermit(gate, call, options, { task, attempt, signal: signalOf(entry) });
  }
}
