/**
 * Bringing the replica up to the journal, once or for as long as this node does not lead.
 *
 * A leader need not follow: what it appends it has. It stops when it has the lead and has read all that was written
 * before, and starts again when it lost the lead, or an append told it that somebody else wrote.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { toHex } from "../format/chain.ts";
import type { Journal, SealedBatch } from "../journal/journal.ts";
import { type Head, LogFailure } from "../log.ts";
import { divergedAt } from "../sqlite/sealed-batches.ts";
import type { StoreThread } from "../sqlite/thread-client.ts";
import type { Tail } from "./tail.ts";

export type Ground = { readonly journal: Journal; readonly thread: StoreThread; readonly tail: Tail };

export type Following = {
  /** Goes on from the end of the replica; nothing if it does so already. */
  start(): void;
  stop(): Promise<void>;
};

/** Takes everything up to the journal's head. Refuses a replica that is not of this history. */
export async function bringUp({ journal, thread, tail }: Ground, signal: AbortSignal): Promise<void> {
  const head = await journal.head();
  checkHistory(tail.head(), head);
  for await (const entry of journal.read(tail.head().seq)) {
    signal.throwIfAborted();
    await takeIn({ thread, tail }, entry);
  }
  tail.raise(head.epoch);
  await tail.flush();
}

function checkHistory(replica: Head, journal: Head): void {
  if (replica.seq > journal.seq) throw aheadOf(replica.seq, journal.seq);
  if (replica.seq === journal.seq && replica.hash !== journal.hash) throw divergedAt(seq(replica.seq));
}

/** `fetchMissing`: takes from another node what the journal has pruned. Rejects with what does not pass. */
export function createFollowing(
  { journal, thread, tail }: Ground,
  closing: AbortSignal,
  fetchMissing: (pruned: LogFailure, signal: AbortSignal) => Promise<void>,
): Following {
  let running: { readonly end: AbortController; readonly ended: Promise<void> } | null = null;

  async function takeAll(signal: AbortSignal): Promise<void> {
    for await (const entry of journal.follow(tail.head().seq, signal)) {
      if (signal.aborted) return;
      await takeIn({ thread, tail }, entry);
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await takeAll(signal).catch((error: unknown) => {
          if (!(error instanceof LogFailure) || error.code !== "pruned") throw error;
          return fetchMissing(error, signal);
        });
      }
    } catch (error) {
      // A journal that is full or out of reach is waited for inside `follow`: what comes out of it does not pass.
      if (!signal.aborted && !closing.aborted) tail.fail(error);
    }
  }
  return {
    start: () => {
      if (running !== null || closing.aborted) return;
      const end = new AbortController();
      running = { end, ended: run(AbortSignal.any([end.signal, closing])) };
    },
    stop: async () => {
      const stopped = running;
      running = null;
      stopped?.end.abort();
      await stopped?.ended;
    },
  };
}

/** Checks a batch of the journal and takes it behind the end of the replica. */
export async function takeIn({ thread, tail }: Pick<Ground, "thread" | "tail">, entry: SealedBatch): Promise<void> {
  const { seq: at, hash } = tail.head();
  if (entry.lastSeq <= at) return;
  if (entry.firstSeq !== at + 1 || toHex(entry.priorHash) !== hash) throw divergedAt(seq(at));
  const shared = { ...entry, bytes: inSharedMemory(entry.bytes), payloads: inSharedMemory(entry.payloads) };
  const hashes = await thread.ask("hashesOf", shared);
  tail.check();
  tail.take({ ...shared, hashes }, null);
  await tail.room();
}

/** Bytes that go to the log's thread more than once need not be copied for each. */
function inSharedMemory(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

const aheadOf = (replica: Seq, journal: Seq): LogFailure =>
  new LogFailure(
    "diverged",
    `the data directory has events up to ${replica}, the journal only up to ${journal}. Nothing was changed. To move ` +
      "a log into a journal, copy it there first; if the journal is the right one, move the data directory away.",
    journal,
  );
