/**
 * The end of a shared log: what the journal has committed as far as this node knows, on its way into the replica.
 *
 * Batches come in the sequence of the chain, from this node's own appends or from the journal. Each is known at once;
 * the replica gets it a few milliseconds later together with what came meanwhile, in one transaction. That is bounded:
 * whoever brings more waits. Whoever reads the replica has it brought up first. The last few batches stay in memory,
 * for followers that keep up.
 */
import { invariant, type Seq } from "../../core/base/index.ts";
import { type CancelAlarm, type Clock, ringAfter } from "../../std/index.ts";
import { toHex } from "../format/chain.ts";
import type { Head, LogFailure, SignRule } from "../log.ts";
import type { HashedBatch, StoredBatch } from "../sqlite/sealed-batches.ts";
import type { StoreThread } from "../sqlite/thread-client.ts";

/** How long a batch waits for others to be stored with. */
const STORE_AFTER_MS = 50;
/** What waits to be stored may take so much memory; then it is stored, and waited for. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
/** What is kept for followers that keep up. */
const RECENT_BYTES_MAX = 8 * 1024 * 1024;

export type Tail = {
  /** Where the log ends as far as this node knows. */
  head(): Head;
  /** The last event that the replica has on disk. */
  stored(): Seq;
  /** Takes what the journal has committed behind the head. */
  take(batch: HashedBatch, sign: SignRule | null): void;
  /** A higher epoch is known. */
  raise(epoch: number): void;
  /** Resolves when not too much waits to be stored. */
  room(): Promise<void>;
  /** Resolves when the replica has everything taken so far. */
  flush(): Promise<void>;
  /** The batches behind an event that are still in memory; null if some of them are not. */
  behind(after: Seq): readonly HashedBatch[] | null;
  /** Resolves when the head moves, or something ends it. */
  moved(signal: AbortSignal): Promise<void>;
  /** Nothing more is taken, and everybody who asks is told why. */
  fail(error: unknown): void;
  /** Throws if it failed. */
  check(): void;
};

type TailInput = { readonly thread: StoreThread; readonly clock: Clock; readonly head: Head };

export function createTail({ thread, clock, head: start }: TailInput): Tail {
  const waiting: StoredBatch[] = [];
  const recent: HashedBatch[] = [];
  const onMoved = new Set<() => void>();
  let head = start;
  let stored: Seq = start.seq;
  let waitingBytes = 0;
  /** What is being stored. */
  let underWay = 0;
  let recentBytes = 0;
  let cancelStore: CancelAlarm | null = null;
  let lastStore: Promise<void> = Promise.resolve();
  let failure: { readonly error: unknown } | null = null;

  function take(batch: HashedBatch, sign: SignRule | null): void {
    if (batch.lastSeq <= head.seq) return; // It came by the other way already.
    invariant(batch.firstSeq === head.seq + 1, `the batch behind event ${head.seq} begins at ${batch.firstSeq}`);
    const { lastSeq: seq, epoch, batchId, postHash } = batch;
    head = { seq, hash: toHex(postHash), epoch: Math.max(epoch, head.epoch), batchId };
    waiting.push({ ...batch, sign });
    waitingBytes += sizeOf(batch);
    keepRecent(batch);
    if (waitingBytes > WAITING_BYTES_MAX) storeUnasked();
    else cancelStore ??= ringAfter(clock, STORE_AFTER_MS, storeUnasked, { keepAlive: false });
    ring();
  }

  /** Nobody waits for it: who asks next hears of a failure, this one or one that was before. */
  function storeUnasked(): void {
    if (failure === null) void store().catch(() => {});
  }

  function keepRecent(batch: HashedBatch): void {
    recent.push(batch);
    recentBytes += sizeOf(batch);
    while (recentBytes > RECENT_BYTES_MAX && recent.length > 1) recentBytes -= sizeOf(recent.shift() as HashedBatch);
  }

  function store(): Promise<void> {
    cancelStore?.();
    cancelStore = null;
    check();
    const batches = waiting.splice(0);
    const bytes = waitingBytes;
    waitingBytes = 0;
    if (batches.length > 0) lastStore = storeBatches(batches, bytes, lastStore);
    return lastStore;
  }
  async function storeBatches(batches: readonly StoredBatch[], bytes: number, before: Promise<void>): Promise<void> {
    underWay += bytes;
    try {
      await before;
      stored = (await thread.ask("store", batches)).seq;
    } catch (error) {
      fail(error);
      throw error;
    } finally {
      underWay -= bytes;
    }
  }

  function fail(error: unknown): void {
    failure ??= { error };
    cancelStore?.();
    ring();
  }
  function check(): void {
    if (failure !== null) throw failure.error as LogFailure;
  }
  function ring(): void {
    for (const wake of [...onMoved]) wake();
  }
  function moved(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        onMoved.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      onMoved.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }
  return {
    head: () => head,
    stored: () => stored,
    take,
    raise: (epoch) => {
      head = { ...head, epoch: Math.max(epoch, head.epoch) };
    },
    room: async () => {
      if (waitingBytes + underWay > WAITING_BYTES_MAX) await store();
    },
    flush: async () => store(),
    behind: (after) => {
      if (after >= head.seq) return [];
      if (recent[0] === undefined || recent[0].firstSeq > after + 1) return null;
      return recent.filter(({ lastSeq }) => lastSeq > after);
    },
    moved,
    fail,
    check,
  };
}

const sizeOf = ({ bytes, payloads, hashes }: HashedBatch): number => bytes.length + payloads.length + hashes.length;
