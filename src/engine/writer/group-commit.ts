/**
 * Group commit: applied events gather in a batch while the one before is on its way to the log.
 *
 * One append is in flight at a time, and what gathers meanwhile is the next batch: so the disk sets the size of a
 * batch and never the pace of deciding. An append whose answer was lost is repeated under the same batch id. All
 * callers that wait for the same batch wait for one promise. What was decided as one lies in one batch, however full
 * that is: a crash between two batches leaves all of it or nothing.
 */
import { errorText, type Seq, seq } from "../../core/base/index.ts";
import { type Event, type State, type Task, taskOf } from "../../core/model/index.ts";
import type { Gathering } from "../../log/format/index.ts";
import { createGathering, emptied, gather, gatheredBatch, gatheredBytes } from "../../log/format/index.ts";
import { type AppendResult, type Head, type Log, LogFailure, type SignRule } from "../../log/index.ts";
import { DroverError } from "../base/drover-error.ts";
import type { HeadSigning } from "./head-signing.ts";

const BATCH_EVENTS_MAX = 20_000;
/** As much as the blocks of a batch share with the log's thread: more is copied on the way, which takes room twice. */
const BATCH_BYTES_MAX = 4 * 1024 * 1024;
const REPEATS_MAX = 10;
/** Buffers of batches that are kept for the next: one is on its way while another gathers, and more if many wait. */
const SPARES_MAX = 4;

/** An event that is applied, and its number. */
export type Applied = {
  /** What happened. */
  readonly event: Event;
  /** Its number in the log. */
  readonly seq: Seq;
  /** The task it tells of, as it is now; null if it tells of none that is still kept. */
  readonly task: Task | null;
};
/** Where the log ends after a batch, and how long it took to store it. */
export type Commit = {
  /** Where the log ends now. */
  readonly head: Head;
  /** How long the log took to store the batch, in milliseconds. */
  readonly appendMs: number;
};

type GroupCommit = {
  /** The number of the last event that is durable. */
  committed(): number;
  /** The next so many events lie in one batch. */
  begin(events: number): void;
  /** Adds the event that was just applied. If it `isAwaited`, `onCommitted` is called with it. */
  add(event: Event, cause: Seq | null, payload: string | undefined, isAwaited: boolean): void;
  /** Appends what has gathered, batch by batch, until nothing is left. */
  flush(): Promise<void>;
  /** Resolves when everything added so far is durable; rejects once it has stopped. */
  settled(): Promise<void>;
  /** Nothing more is appended, and every caller that waits is rejected. */
  stop(error: DroverError): void;
};

/** Of an event that was just applied to this state. */
export function appliedOf(state: State, event: Event): Applied {
  const id = taskOf(event);
  return { event, seq: seq(state.seq), task: id === null ? null : (state.tasks.get(id) ?? null) };
}

/** A batch that gathers: its awaited events, its bytes, number and time of its last event, and who waits for it. */
type Batch = {
  readonly awaited: Applied[];
  readonly bytes: Gathering;
  last: number;
  at: number;
  waiter: PromiseWithResolvers<void> | null;
};

export function createGroupCommit(deps: {
  readonly state: State;
  readonly log: Log;
  readonly epoch: number;
  /** A name that no other batch has. */
  readonly newId: () => string;
  readonly signing: HeadSigning;
  /** A batch that has so many events is full. */
  readonly batchMax?: number;
  /** After so many tries without an answer: rests, and says whether to try once more. By default ten tries follow. */
  readonly mayRepeat?: (tries: number) => Promise<boolean>;
  readonly onCommitted: (batch: readonly Applied[], commit: Commit) => void;
  readonly onFailed: (error: DroverError) => void;
}): GroupCommit {
  const { state, log, epoch, newId, signing, batchMax = BATCH_EVENTS_MAX, onCommitted } = deps;
  const { mayRepeat = async (tries) => tries < REPEATS_MAX } = deps;
  /** Batches in the sequence in which they go to the log; the last one is gathering. */
  const batches: Batch[] = [];
  /** The one on its way. */
  let sent: Batch | null = null;
  const spares: Gathering[] = [];
  let committed: number = state.seq;
  /** The number of the last event of what lies in one batch. */
  let together = 0;
  let isAppending = false;
  let stopped: DroverError | null = null;

  function begin(events: number): void {
    const last = batches[batches.length - 1];
    const isFull = last !== undefined && (last.bytes.count >= batchMax || gatheredBytes(last.bytes) >= BATCH_BYTES_MAX);
    if (isFull && state.seq >= together) batches.push(newBatch());
    together = Math.max(together, state.seq + events);
  }

  function add(event: Event, cause: Seq | null, payload: string | undefined, isAwaited: boolean): void {
    if (batches.length === 0) batches.push(newBatch());
    const batch = batches[batches.length - 1] as Batch;
    gather(batch.bytes, state.seq, event, cause, payload);
    batch.last = state.seq;
    batch.at = event.at;
    if (isAwaited) batch.awaited.push(appliedOf(state, event));
  }

  const newBatch = (): Batch => ({
    awaited: [],
    bytes: spares.pop() ?? createGathering(),
    last: state.seq,
    at: 0,
    waiter: null,
  });

  async function flush(): Promise<void> {
    if (isAppending) return;
    isAppending = true;
    try {
      while (batches.length > 0 && stopped === null) {
        sent = batches.shift() as Batch;
        const { awaited, bytes, last, at } = sent;
        const startedAt = performance.now();
        const head = await appendForSure(bytes, signing.dueWith(at));
        // It was stopped meanwhile: whoever waited has been told so, and nothing may follow from it.
        if (stopped !== null) return;
        if (spares.length < SPARES_MAX) spares.push(emptied(bytes));
        committed = last;
        onCommitted(awaited, { head, appendMs: performance.now() - startedAt });
        sent.waiter?.resolve();
        sent = null;
      }
    } catch (error) {
      deps.onFailed(stopOf(error));
    } finally {
      isAppending = false;
    }
  }

  async function appendForSure(bytes: Gathering, sign: SignRule | null): Promise<Head> {
    const firstSeq = seq(committed + 1);
    const batch = gatheredBatch(bytes, firstSeq, sign);
    const batchId = newId();
    for (let tries = 1; ; tries++) {
      const answer = await log.append(seq(committed), epoch, batch, batchId).catch(asUnknown);
      if (answer.type === "appended") return answer.head;
      if (answer.type === "conflict") throw deposed(answer.head);
      if (stopped === null && (await mayRepeat(tries))) continue;
      throw new DroverError(
        "log_failed",
        `the log did not say whether it stored event ${firstSeq}, asked ${tries} times: ${answer.cause}`,
      );
    }
  }

  function settled(): Promise<void> {
    if (stopped !== null) return Promise.reject(stopped);
    if (state.seq <= committed) return Promise.resolve();
    // The last event lies in the last batch, however many are before it.
    const batch = (batches.at(-1) ?? sent) as Batch;
    batch.waiter ??= Promise.withResolvers<void>();
    return batch.waiter.promise;
  }

  function stop(error: DroverError): void {
    stopped = error;
    signing.stop();
    sent?.waiter?.reject(error);
    for (const { waiter } of batches.splice(0)) waiter?.reject(error);
  }

  return { committed: () => committed, begin, add, flush, settled, stop };
}

/** A journal that is out of reach may have got the batch. */
function asUnknown(error: unknown): AppendResult {
  if (error instanceof LogFailure && error.code === "unreachable") return { type: "unknown", cause: error.message };
  throw error;
}

const deposed = ({ epoch, seq: last }: Head): DroverError =>
  new DroverError("deposed", `another writer owns this log (epoch ${epoch}, event ${last}); try again`);

/** What an engine stops with, of what its log has thrown. */
export function stopOf(error: unknown): DroverError {
  if (error instanceof DroverError) return error;
  if (error instanceof LogFailure)
    return new DroverError("log_failed", error.message, { details: { log: error.code }, cause: error });
  return new DroverError("log_failed", `the log failed: ${errorText(error)}`, { cause: error });
}

/**
 * Listeners that get every commit: metrics, logs, spans. A listener gets the events as they are in memory, together
 * with how long the log took and where it now ends; the log is not read a second time for it. What was applied before
 * the first listener came may be missing in the first batch, and the hash of a body that the log's thread fills in
 * (log/format/batch-builder.ts) is not there yet. A listener that throws is a bug of its program, and must not stop
 * the writer: what it throws is a warning.
 */
export type CommitListener = (batch: readonly Applied[], commit: Commit) => void;
type CommitWatch = {
  /** Whether there is a listener. */
  isHeard(): boolean;
  /** Answers how to stop listening. */
  watch(listener: CommitListener): () => void;
  onCommitted: CommitListener;
};

export function createCommitWatch(onWarning: (message: string) => void): CommitWatch {
  const listeners = new Set<CommitListener>();
  return {
    isHeard: () => listeners.size > 0,
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    onCommitted(batch, commit) {
      for (const listener of listeners) {
        try {
          listener(batch, commit);
        } catch (error) {
          onWarning(`a listener to commits failed: ${String(error)}`);
        }
      }
    },
  };
}
