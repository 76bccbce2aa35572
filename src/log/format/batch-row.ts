/**
 * A batch as it is stored: one row, sealed into the chain when written and checked when read.
 *
 * One row per batch instead of one per event is what makes the log fast: a thousand events cost one
 * insert. The records lie in one block, each behind its length (32 bits, big endian), exactly as the
 * appending side packed them, so that nothing is taken apart on the way to the disk. The post hashes lie
 * in a second block, 32 bytes each: they let a reader start in the middle of a batch, and let the check
 * name the very event that was changed.
 *
 * Every driver that stores blocks uses this format. The chain covers the records, and the epoch and id of the batch.
 */
import { invariant, type Seq } from "../../core/base/index.ts";
import { type Batch, corruptAt, type LogRecord, type ReadBatch } from "../log.ts";
import { batchLink, chainBatch, equalBytes, HASH_BYTES, hashOf, type Spans, seqAt } from "./chain.ts";

/**
 * What is stored: 1 held every event as JSON, 2 may hold compact ones (`compact-events.ts`), 3 has signed heads and
 * links over batches. All are read: a batch without a link of its own is one of 1 or 2.
 */
export const FORMAT = 3;
export const OLDEST_FORMAT = 1;
export const BATCH_RECORDS_MAX = 65_536;
export const BATCH_BYTES_MAX: number = 256 * 1024 * 1024;
const BATCH_ID_CHARACTERS_MAX = 256;
export const LENGTH_BYTES = 4;

export type BatchRow = {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly epoch: number;
  readonly batchId: string;
  readonly priorHash: Uint8Array;
  readonly postHash: Uint8Array;
  /** The records, each behind its length. */
  readonly bytes: Uint8Array;
  /** The post hash of every record. */
  readonly hashes: Uint8Array;
};

/** Throws what no correct caller asks for; each limit names itself. */
export function checkAppend(after: Seq, epoch: number, batch: Batch, batchId: string): void {
  checkSeq(after);
  invariant(Number.isSafeInteger(epoch) && epoch >= 0, `an epoch is a whole number from 0, got ${epoch}`);
  invariant(typeof batchId === "string" && batchId !== "", "a batch has an id that is not empty");
  invariant(batchId.length <= BATCH_ID_CHARACTERS_MAX, `a batch id has at most ${BATCH_ID_CHARACTERS_MAX} characters`);
  const length = (batch.unhashed ?? batch.packed)?.count ?? batch.records.length;
  invariant(length > 0, "a batch has at least one record");
  invariant(length <= BATCH_RECORDS_MAX, `a batch has at most ${BATCH_RECORDS_MAX} records, got ${length}`);
  invariant(
    batch.firstSeq === after + 1,
    `a batch behind event ${after} begins at ${after + 1}, got ${batch.firstSeq}`,
  );
}

export function checkSeq(value: Seq): void {
  invariant(Number.isSafeInteger(value) && value >= 0, `a seq is a whole number from 0, got ${value}`);
}

export function packedSize(records: readonly LogRecord[]): number {
  let size = LENGTH_BYTES * records.length;
  for (const { bytes } of records) size += bytes.length;
  invariant(size <= BATCH_BYTES_MAX, `a batch has at most ${BATCH_BYTES_MAX} bytes, got ${size}`);
  return size;
}

/** Writes the records into the beginning of `target`, which is at least `packedSize` long. */
export function packRecords(records: readonly LogRecord[], target: Uint8Array): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  let at = 0;
  for (const { bytes } of records) {
    view.setUint32(at, bytes.length);
    target.set(bytes, at + LENGTH_BYTES);
    at += LENGTH_BYTES + bytes.length;
  }
}

type Unsealed = Pick<BatchRow, "firstSeq" | "epoch" | "batchId" | "priorHash" | "bytes"> & {
  readonly count: number;
};

/** Links a packed batch to what came before. */
export function sealBatch({ count, ...row }: Unsealed): BatchRow {
  const hashes = chainBatch(batchLink(row.priorHash, row), row.bytes, spansOf(row.firstSeq, row.bytes, count));
  return {
    ...row,
    lastSeq: seqAt(row.firstSeq, count - 1),
    postHash: Uint8Array.from(hashOf(hashes, count - 1)),
    hashes,
  };
}

/** Throws `corrupt` at the first event that is not what was written there, or not where it was written. */
export function checkRow(row: BatchRow, expectedFirst: Seq, expectedPrior: Uint8Array): void {
  if (row.firstSeq !== expectedFirst) {
    throw corruptAt(expectedFirst, `it is missing; the next batch that was found begins at ${row.firstSeq}`);
  }
  if (!equalBytes(row.priorHash, expectedPrior)) {
    throw corruptAt(row.firstSeq, "it is not linked to the event before it");
  }
  const count = row.lastSeq - row.firstSeq + 1;
  if (count < 1 || row.hashes.length !== count * HASH_BYTES) {
    throw corruptAt(row.firstSeq, `its batch says ${count} events and holds ${row.hashes.length / HASH_BYTES} hashes`);
  }
  const spans = spansOf(row.firstSeq, row.bytes, count);
  const hashes = chainBatch(batchLink(row.priorHash, row), row.bytes, spans);
  if (!equalBytes(hashes, row.hashes)) {
    const older = chainBatch(row.priorHash, row.bytes, spans);
    // Either way it breaks; in the right one at the event that was changed, in the other from the first on.
    const at = Math.max(firstDifference(hashes, row.hashes), firstDifference(older, row.hashes));
    if (!equalBytes(older, row.hashes)) throw corruptAt(seqAt(row.firstSeq, at), "its bytes do not match its hash");
  }
  if (spans.ends[count - 1] !== row.bytes.length)
    throw corruptAt(row.lastSeq, "bytes follow it that belong to no event");
  if (!equalBytes(row.postHash, hashOf(row.hashes, count - 1))) {
    throw corruptAt(row.lastSeq, "its batch ends with another hash");
  }
}

/** The row as its reader sees it, without the events up to `after`. Nothing is copied. */
export function unpackRow(row: BatchRow, after: Seq, payloads?: ReadonlyMap<Seq, Uint8Array>): ReadBatch {
  const skipped = Math.max(0, after - row.firstSeq + 1);
  const count = row.lastSeq - row.firstSeq + 1;
  const { starts, ends } = spansOf(row.firstSeq, row.bytes, count);
  const records: LogRecord[] = [];
  const hashes: Uint8Array[] = [];
  for (let index = skipped; index < count; index++) {
    const bytes = row.bytes.subarray(starts[index], ends[index]);
    const payload = payloads?.get(seqAt(row.firstSeq, index));
    records.push(payload === undefined ? { bytes } : { bytes, payload });
    hashes.push(hashOf(row.hashes, index));
  }
  const priorHash = skipped === 0 ? row.priorHash : hashOf(row.hashes, skipped - 1);
  const { epoch, batchId } = row;
  return { firstSeq: seqAt(row.firstSeq, skipped), epoch, batchId, priorHash, hashes, records };
}

/** One event's bytes out of a row, checked against its own hash. */
export function recordBytes(row: BatchRow, wanted: Seq): Uint8Array {
  const count = row.lastSeq - row.firstSeq + 1;
  const index = wanted - row.firstSeq;
  const { starts, ends } = knownSpans(row, count);
  const priors = index === 0 ? [batchLink(row.priorHash, row), row.priorHash] : [hashOf(row.hashes, index - 1)];
  const spans = { starts: starts.subarray(index, index + 1), ends: ends.subarray(index, index + 1) };
  if (!priors.some((prior) => equalBytes(chainBatch(prior, row.bytes, spans), hashOf(row.hashes, index)))) {
    throw corruptAt(wanted, "its bytes do not match its hash");
  }
  return row.bytes.subarray(starts[index], ends[index]);
}

/** Where the events of rows that were looked into lie: whoever wants one event mostly wants others of that row. */
const spansByRow = new WeakMap<BatchRow, Spans>();

function knownSpans(row: BatchRow, count: number): Spans {
  const known = spansByRow.get(row) ?? spansOf(row.firstSeq, row.bytes, count);
  spansByRow.set(row, known);
  return known;
}

export function spansOf(first: Seq, bytes: Uint8Array, count: number): Spans {
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (let index = 0; index < count; index++) {
    if (at + LENGTH_BYTES > bytes.length) throw corruptAt(seqAt(first, index), "its batch is cut off before it");
    const start = at + LENGTH_BYTES;
    at = start + view.getUint32(at);
    if (at > bytes.length) throw corruptAt(seqAt(first, index), "its length reaches past the end of its batch");
    starts[index] = start;
    ends[index] = at;
  }
  return { starts, ends };
}

function firstDifference(left: Uint8Array, right: Uint8Array): number {
  const at = left.findIndex((byte, index) => byte !== right[index]);
  return Math.floor(at / HASH_BYTES);
}
