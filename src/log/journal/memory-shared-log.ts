/**
 * A log that several nodes share, in memory: a journal in memory, and a replica of this node's own.
 *
 * For simulators and tests. What `shared/` does for a directory is done here in one thread and without a disk, so a run
 * is the same each time. An append whose answer was lost is `unknown`: the caller repeats it.
 */
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { sealBatch } from "../format/batch-row.ts";
import { toHex } from "../format/chain.ts";
import type { AppendResult, Lead, Log, ReadBatch } from "../log.ts";
import { closedFailure } from "../log.ts";
import { createMemoryLog, createMemoryStore, keep, type MemoryStore, planned } from "../memory/memory-log.ts";
import type { Journal, SealedBatch } from "./journal.ts";
import { prunableSeq } from "./prunable.ts";

export type MemorySharedLog = Log & {
  readonly journal: Journal;
  follow(after: Seq, signal: AbortSignal): AsyncIterable<ReadBatch>;
  stored(): Seq;
  pruneJournal(self: string): Promise<void>;
};

type SharedInput = {
  /** Closed with the log. */
  readonly journal: Journal;
  /** The replica: what a node has on its disk. */
  readonly store?: MemoryStore;
};

/** Opens the replica and brings it up to the journal. */
export async function openMemorySharedLog({
  journal,
  store = createMemoryStore(),
}: SharedInput): Promise<MemorySharedLog> {
  const replica = createMemoryLog({ store });
  const closing = new AbortController();
  const onTaken = new Set<() => void>();

  function take(entry: SealedBatch): void {
    takeInto(store, entry);
    for (const wake of [...onTaken]) wake();
  }

  async function append(...call: Parameters<Log["append"]>): Promise<AppendResult> {
    if (closing.signal.aborted) throw closedFailure();
    const plan = planned(store, call);
    if (plan.type !== "store") return plan;
    const entry: SealedBatch = { ...plan.row, payloads: plan.payloads };
    const answer = await journal.append(entry);
    if (answer.type === "appended") take(entry);
    return answer;
  }

  async function bringUp(): Promise<void> {
    for await (const entry of journal.read(store.head.seq)) take(entry);
  }

  async function keepUp(): Promise<void> {
    for await (const entry of journal.follow(store.head.seq, closing.signal)) take(entry);
  }

  async function* follow(after: Seq, signal: AbortSignal): AsyncGenerator<ReadBatch> {
    const ends = AbortSignal.any([signal, closing.signal]);
    for (let at = after; !ends.aborted; ) {
      for await (const batch of replica.read(at, { payloads: false })) {
        if (ends.aborted) break;
        yield batch;
        at = seq(batch.firstSeq + batch.records.length - 1);
      }
      if (at >= store.head.seq) await nextTaken(ends);
    }
    if (!signal.aborted) throw closedFailure();
  }

  function nextTaken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        onTaken.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      onTaken.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }

  async function acquireLead(...call: Parameters<Log["acquireLead"]>): Promise<Lead> {
    const lead = await journal.acquireLead(...call);
    try {
      await bringUp();
    } catch (error) {
      await lead.release();
      throw error;
    }
    store.head = { ...store.head, epoch: lead.epoch };
    return lead;
  }

  async function close(): Promise<void> {
    closing.abort();
    await journal.close();
    await replica.close();
  }

  await bringUp();
  // It ends with the journal's handle, or with this log.
  keepUp().catch(() => {});
  return {
    ...replica,
    journal,
    append,
    follow,
    stored: () => store.head.seq,
    pruneJournal: async (self) => {
      const [{ nodes }, health] = [await journal.nodes(), await journal.describe()];
      const before = prunableSeq({ nodes, self, stored: store.head.seq, journal: health });
      if (before > health.base.seq) await journal.prune(before);
    },
    acquireLead,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Takes a batch of the journal behind the end of a replica, which may have it already. */
export function takeInto(store: MemoryStore, entry: SealedBatch): void {
  const { head } = store;
  const { firstSeq, lastSeq, batchId, payloads } = entry;
  if (lastSeq <= head.seq) return;
  const isLinked = firstSeq === head.seq + 1 && toHex(entry.priorHash) === head.hash;
  invariant(isLinked, `what the journal has behind event ${head.seq} is not linked to it`);
  const row = sealBatch({ ...entry, count: lastSeq - firstSeq + 1 });
  const hash = toHex(row.postHash);
  invariant(hash === toHex(entry.postHash), `the batch at event ${firstSeq} is not what it says`);
  keep(store, { row, payloads, head: { seq: lastSeq, hash, epoch: Math.max(entry.epoch, head.epoch), batchId } });
}
