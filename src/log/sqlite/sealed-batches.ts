/**
 * What the log's thread does for a replica: batches are sealed before they go to the journal, checked when they come
 * from it, and stored as they are, with the hashes they have.
 *
 * Sealing and checking hash every event, so they belong in this thread. Storing takes several batches in one
 * transaction: what the journal has is durable already, so a replica may be some milliseconds behind, and pays one
 * fsync for all that came meanwhile.
 */
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { fillDeferredHashes } from "../format/batch-builder.ts";
import { type BatchRow, LENGTH_BYTES, sealBatch, spansOf, unpackRow } from "../format/batch-row.ts";
import { batchLink, chainBatch, equalBytes, hashOf, seqAt, toHex } from "../format/chain.ts";
import { factsOf } from "../format/codec.ts";
import { collectPayloads, cutBlocks } from "../format/payload-blocks.ts";
import { payloadProblem } from "../integrity/kept-list.ts";
import { hashAt } from "../integrity/page.ts";
import { packEntryNow } from "../journal/entry.ts";
import type { SealedBatch } from "../journal/journal.ts";
import { corruptAt, type DeferredHashes, type Head, LogFailure, type SignRule } from "../log.ts";
import type { Database } from "./database.ts";

/** A batch that is to be sealed; the bytes are the caller's own, and left as they are but for blank hashes. */
export type SealInput = {
  readonly firstSeq: Seq;
  readonly epoch: number;
  readonly batchId: string;
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly payloads: Uint8Array;
  readonly deferred: DeferredHashes;
  readonly priorHash: Uint8Array;
};

/** With the hash of every event, which are right: they were computed here, or compared. */
export type HashedBatch = SealedBatch & { readonly hashes: Uint8Array };
export type StoredBatch = HashedBatch & { readonly sign: SignRule | null };

/**
 * Links a batch to what comes before it, and packs it for the journal: a trip to another thread more would cost a busy
 * machine more than the packing. The answer lies in memory of its own, which every thread sees.
 */
export function seal({ payloads, deferred, ...input }: SealInput): HashedBatch {
  fillDeferredHashes({ bytes: input.bytes, payloads, deferred });
  const row = sealBatch({ ...input, bytes: copied(input.bytes) });
  const batch = { ...row, hashes: copied(row.hashes), payloads: copied(payloads) };
  return { ...batch, packed: packEntryNow(batch) };
}

/**
 * The hashes of a batch that came from elsewhere, if it is what was written: its events by the chain, and what lies
 * beside each by the hash in the event.
 */
export function hashesOf(entry: SealedBatch): Uint8Array {
  const hashes = chainedHashes(entry);
  const payloads = collectPayloads([{ firstSeq: entry.firstSeq, bytes: entry.payloads }]);
  const { records } = unpackRow({ ...entry, hashes }, seq(entry.firstSeq - 1), payloads);
  for (const [index, { bytes, payload = null }] of records.entries()) {
    const at = seqAt(entry.firstSeq, index);
    const problem = payloadProblem(at, factsOf(bytes, at).payloadHash, payload);
    if (problem !== null) throw corruptAt(at, problem);
  }
  return hashes;
}

function chainedHashes(entry: SealedBatch): Uint8Array {
  const { firstSeq, lastSeq, priorHash, postHash, bytes } = entry;
  const count = lastSeq - firstSeq + 1;
  if (count < 1 || count * LENGTH_BYTES > bytes.length)
    throw corruptAt(firstSeq, `its batch says ${count} events and has ${bytes.length} bytes`);
  const spans = spansOf(firstSeq, bytes, count);
  if (spans.ends[count - 1] !== bytes.length) throw corruptAt(lastSeq, "bytes follow it that belong to no event");
  // A batch that was copied from a log of format 1 or 2 has no link of its own.
  for (const link of [batchLink(priorHash, entry), priorHash]) {
    const hashes = chainBatch(link, bytes, spans);
    if (equalBytes(hashOf(hashes, count - 1), postHash)) return copied(hashes);
  }
  throw corruptAt(firstSeq, `the batch that begins with it does not match the hash it ends with, ${toHex(postHash)}`);
}

/** Stores batches behind the end of the log. What is there already is passed over, if it is the same. */
export function storeSealed(database: Database, batches: readonly StoredBatch[]): Head {
  let { head } = database.source();
  for (const { sign: _, payloads, ...row } of batches) {
    if (row.lastSeq <= head.seq) {
      checkSame(row, hashAt(database.source(), row.lastSeq));
      continue;
    }
    if (toHex(row.priorHash) !== head.hash) throw divergedAt(seq(head.seq));
    invariant(row.firstSeq === head.seq + 1, `a batch behind event ${head.seq}, not at ${row.firstSeq}`);
    database.putRow(row);
    for (const block of cutBlocks(payloads)) database.putBlock(block);
    const { epoch, batchId, lastSeq } = row;
    head = { seq: lastSeq, hash: toHex(row.postHash), epoch, batchId };
    database.putHead(head);
  }
  return head;
}

/** A pruned event has no hash any more; then the batch behind it shows whether the history is the same. */
function checkSame({ lastSeq, postHash }: BatchRow, found: string | null): void {
  if (found !== null && found !== toHex(postHash)) throw divergedAt(lastSeq);
}

export const divergedAt = (at: Seq): LogFailure =>
  new LogFailure(
    "diverged",
    `the data directory has another history than the journal: their hashes at event ${at} differ. Nothing was ` +
      "changed. If the journal is the right one, move the data directory away: all of it is fetched anew.",
    at,
  );

function copied(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
