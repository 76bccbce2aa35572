/**
 * The payloads that lie beside the events, in blocks.
 *
 * A payload is looked up one at a time, when its task starts, and outlives its event when the log is
 * pruned while the task still waits. One block per batch would read megabytes for one payload; one row
 * per payload would cost an insert each. So the payloads of a batch are cut into blocks of some 16 KiB,
 * each named by the seq of its first entry. Pruning writes a block again with the entries that are kept.
 *
 * An entry is: seq (64-bit float, big endian), length (32 bits), bytes. The chain does not cover it: the
 * event holds the payload's hash, and whoever asks for the payload compares.
 */
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { type Batch, corruptAt, LogFailure, type LogRecord } from "../log.ts";
import { BATCH_BYTES_MAX } from "./batch-row.ts";
import { seqAt } from "./chain.ts";

const BLOCK_BYTES = 16_384;
export const ENTRY_FRAME_BYTES = 12;
export const LENGTH_AT = 8;

export type PayloadBlock = { readonly firstSeq: Seq; readonly bytes: Uint8Array };

export function payloadsSize(records: readonly LogRecord[]): number {
  let size = 0;
  for (const { payload } of records) if (payload !== undefined) size += ENTRY_FRAME_BYTES + payload.length;
  invariant(size <= BATCH_BYTES_MAX, `a batch has at most ${BATCH_BYTES_MAX} bytes beside it, got ${size}`);
  return size;
}

/** Writes every payload of the batch into `target`, which is `besideSize` long. */
export function packPayloads({ firstSeq, records }: Batch, target: Uint8Array): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  let at = 0;
  for (const [index, { payload }] of records.entries()) {
    if (payload === undefined) continue;
    view.setFloat64(at, seqAt(firstSeq, index));
    view.setUint32(at + LENGTH_AT, payload.length);
    target.set(payload, at + ENTRY_FRAME_BYTES);
    at += ENTRY_FRAME_BYTES + payload.length;
  }
}

/** Cuts packed payloads into blocks; an entry is never split. */
export function cutBlocks(packed: Uint8Array): PayloadBlock[] {
  const view = viewOf(packed);
  const blocks: PayloadBlock[] = [];
  for (let start = 0, end = 0; start < packed.length; start = end) {
    do end = endOfEntry(view, end, seq(0));
    while (end - start < BLOCK_BYTES && end < packed.length);
    blocks.push({ firstSeq: seq(view.getFloat64(start)), bytes: packed.subarray(start, end) });
  }
  return blocks;
}

export function findPayload({ firstSeq, bytes }: PayloadBlock, wanted: Seq): Uint8Array | null {
  for (const entry of entries(bytes, firstSeq)) if (entry.seq === wanted) return bytes.subarray(entry.start, entry.end);
  return null;
}

/** The block with only the entries that are kept; null if there are none left. */
export function keepEntries({ firstSeq, bytes }: PayloadBlock, isKept: (seq: Seq) => boolean): PayloadBlock | null {
  const kept: Uint8Array[] = [];
  let first: Seq | null = null;
  for (const { seq, start, end } of entries(bytes, firstSeq)) {
    if (!isKept(seq)) continue;
    first ??= seq;
    kept.push(bytes.subarray(start - ENTRY_FRAME_BYTES, end));
  }
  return first === null ? null : { firstSeq: first, bytes: Buffer.concat(kept) };
}

export function collectPayloads(blocks: readonly PayloadBlock[]): Map<Seq, Uint8Array> {
  const found = new Map<Seq, Uint8Array>();
  for (const { firstSeq, bytes } of blocks) {
    for (const { seq, start, end } of entries(bytes, firstSeq)) found.set(seq, bytes.subarray(start, end));
  }
  return found;
}

/**
 * The same of blocks as a database has them, in their order, as whoever looks for one payload finds it: in the last
 * block that begins at or before it. What cannot be read of one is left out: whoever needs it, misses it.
 */
export function collectStored(blocks: readonly PayloadBlock[]): Map<Seq, Uint8Array> {
  const found = new Map<Seq, Uint8Array>();
  for (const [index, { firstSeq, bytes }] of blocks.entries()) {
    const end = blocks[index + 1]?.firstSeq ?? Number.POSITIVE_INFINITY;
    try {
      for (const entry of entries(bytes, firstSeq)) {
        const isFound = entry.seq >= firstSeq && entry.seq < end && !found.has(entry.seq);
        if (isFound) found.set(entry.seq, bytes.subarray(entry.start, entry.end));
      }
    } catch (error) {
      if (!(error instanceof LogFailure)) throw error;
    }
  }
  return found;
}

/** What is wrong with a block itself, from how it begins; null if nothing is. */
export function blockProblem(firstSeq: Seq, beginning: Uint8Array): string | null {
  if (beginning.length === 0) return `the block of payloads at ${firstSeq} is empty`;
  if (beginning.length < LENGTH_AT) return `the block of payloads at ${firstSeq} is cut off`;
  const found = new DataView(beginning.buffer, beginning.byteOffset).getFloat64(0);
  return found === firstSeq ? null : `the block of payloads at ${firstSeq} begins with that of event ${found}`;
}

type Entry = { readonly seq: Seq; readonly start: number; readonly end: number };

function* entries(bytes: Uint8Array, blockSeq: Seq): Generator<Entry> {
  const view = viewOf(bytes);
  for (let at = 0; at < bytes.length; ) {
    const end = endOfEntry(view, at, blockSeq);
    yield { seq: seq(view.getFloat64(at)), start: at + ENTRY_FRAME_BYTES, end };
    at = end;
  }
}

function endOfEntry(view: DataView, at: number, blockSeq: Seq): number {
  const start = at + ENTRY_FRAME_BYTES;
  const end = start > view.byteLength ? start : start + view.getUint32(at + LENGTH_AT);
  if (end > view.byteLength) throw corruptAt(blockSeq, "the payloads stored from here on are cut off");
  return end;
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);
