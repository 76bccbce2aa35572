/**
 * What is kept of an attempt while its handler runs in this process, and of the worker it runs on.
 */
import type { Seq, TaskId, WorkerId } from "../../core/base/index.ts";
import type { Fifo } from "../../core/collections/index.ts";
import type { WorkerSettings } from "../../core/model/index.ts";
import type { DroverError } from "../writer/drover-error.ts";

/** A worker's handler, how many it runs at once, and what was assigned to it beyond that. */
export type Crew<Handler> = {
  readonly id: WorkerId;
  readonly handler: Handler;
  /** As it is told to others; `limit` is how many it runs at once, which may be none. */
  settings: WorkerSettings;
  limit: number;
  active: number;
  /** When it leaves: what its handlers are told, what to do when the last has ended, and that it has left. */
  leaving: { readonly reason: DroverError; readonly left: Promise<void> } | null;
  onIdle: () => void;
  readonly waiting: Fifo<{ readonly task: TaskId; readonly attempt: number }>;
};

export type Running<Handler> = {
  readonly task: TaskId;
  readonly attempt: number;
  /** The event that its body lies beside. */
  readonly seq: Seq;
  readonly crew: Crew<Handler>;
  /** Its handler has ended, or was given up on. */
  isOver: boolean;
  controller: AbortController | null;
  stopped: DroverError | null;
  tokens: number | null;
};

/** The signal is made when somebody asks for it: most handlers are done before. */
export function signalOf(entry: Pick<Running<unknown>, "controller" | "stopped">): AbortSignal {
  if (entry.controller === null) {
    entry.controller = new AbortController();
    if (entry.stopped !== null) entry.controller.abort(entry.stopped);
  }
  return entry.controller.signal;
}
