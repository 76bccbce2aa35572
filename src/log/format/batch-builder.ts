/**
 * A batch while it is gathered: each event is written once, straight into the block it will be stored in.
 *
 * An array of bytes for each event, and for each payload, would be made only to be copied into such a block, and
 * collecting that garbage takes as long as making it. Whoever wants the records one by one can still have them;
 * they are cut out of the block then.
 */
import { hash } from "node:crypto";
import { type Seq, seq } from "../../core/base/index.ts";
import type { Event } from "../../core/model/index.ts";
import type { Batch, LogRecord, PackedBatch, SignRule, UnhashedBatch } from "../log.ts";
import { LENGTH_BYTES, packedSize, packRecords, spansOf } from "./batch-row.ts";
import { appendText, type Block, createBlock, emptyBlock, makeRoom } from "./byte-block.ts";
import { HASH_BYTES } from "./chain.ts";
import { writeEvent } from "./codec.ts";
import { COMPACT } from "./compact-events.ts";
import { collectPayloads, ENTRY_FRAME_BYTES, LENGTH_AT, packPayloads, payloadsSize } from "./payload-blocks.ts";

const ROOM_AT_FIRST = 65_536;

export type Gathering = {
  count: number;
  readonly records: Block;
  readonly payloads: Block;
  readonly deferred: number[];
};

export const createGathering = (): Gathering => ({
  count: 0,
  records: createBlock(ROOM_AT_FIRST),
  payloads: createBlock(ROOM_AT_FIRST),
  deferred: [],
});

/** How many bytes have been gathered. */
export const gatheredBytes = ({ records, payloads }: Gathering): number => records.length + payloads.length;

/**
 * Adds the event with this number, and the text that lies beside it if there is one. A submit whose bodyHash is empty
 * gets the hash of that text when it is stored.
 */
export function gather(
  into: Gathering,
  at: number,
  event: Event,
  cause: Seq | null,
  payload: string | undefined,
): void {
  const { records, payloads, deferred } = into;
  const start = records.length;
  makeRoom(records, LENGTH_BYTES);
  records.length += LENGTH_BYTES;
  const isDeferred = payload !== undefined && event.kind === "task-submitted" && event.bodyHash === "";
  writeEvent(records, event, cause);
  // Only what is packed has room for a hash.
  if (isDeferred && records.bytes[start + LENGTH_BYTES] !== COMPACT) {
    records.length = start + LENGTH_BYTES;
    writeEvent(records, { ...event, bodyHash: hash("sha256", payload, "hex") }, cause);
  } else if (isDeferred) deferred.push(records.length - HASH_BYTES, payloads.length);
  records.view.setUint32(start, records.length - start - LENGTH_BYTES);
  into.count++;
  if (payload === undefined) return;
  const entry = payloads.length;
  makeRoom(payloads, ENTRY_FRAME_BYTES);
  payloads.length += ENTRY_FRAME_BYTES;
  appendText(payloads, payload);
  payloads.view.setFloat64(entry, at);
  payloads.view.setUint32(entry + LENGTH_AT, payloads.length - entry - ENTRY_FRAME_BYTES);
}

/** What was gathered, as a batch. It lies in the gathering's own bytes: good until that is emptied or added to. */
export function gatheredBatch(
  { count, records, payloads, deferred }: Gathering,
  firstSeq: Seq,
  sign: SignRule | null = null,
): Batch {
  const written = ({ bytes, length }: Block): Uint8Array => bytes.subarray(0, length);
  const unhashed: UnhashedBatch = { count, bytes: written(records), payloads: written(payloads), deferred };
  return {
    firstSeq,
    unhashed,
    ...(sign === null ? {} : { sign }),
    get packed() {
      fillDeferredHashes(unhashed);
      return unhashed;
    },
    get records() {
      fillDeferredHashes(unhashed);
      return unpack(firstSeq, unhashed);
    },
  };
}

/** Empty again, with the room it keeps. */
export function emptied(gathering: Gathering): Gathering {
  emptyBlock(gathering.records);
  emptyBlock(gathering.payloads);
  gathering.count = gathering.deferred.length = 0;
  return gathering;
}

/** A batch as it is stored, but for hashes that may be blank. */
export const unhashedOf = (batch: Batch): UnhashedBatch => batch.unhashed ?? { ...packedOf(batch), deferred: [] };

/** A batch as it is stored. */
export function packedOf(batch: Batch): PackedBatch {
  if (batch.packed !== undefined) return batch.packed;
  const bytes = new Uint8Array(packedSize(batch.records));
  packRecords(batch.records, bytes);
  const payloads = new Uint8Array(payloadsSize(batch.records));
  packPayloads(batch, payloads);
  return { count: batch.records.length, bytes, payloads };
}

function unpack(firstSeq: Seq, { count, bytes, payloads }: PackedBatch): LogRecord[] {
  const { starts, ends } = spansOf(firstSeq, bytes, count);
  const bySeq = collectPayloads([{ firstSeq, bytes: payloads }]);
  return Array.from({ length: count }, (_, index) => {
    const record = bytes.subarray(starts[index], ends[index]);
    const payload = bySeq.get(seq(firstSeq + index));
    return payload === undefined ? { bytes: record } : { bytes: record, payload };
  });
}

/**
 * Writes the hashes that were left blank, in the place where a batch is stored. A submit says the hash of its body, and
 * computing it takes as long as deciding on the task. But no caller waits for the hash of a body whose id Drover chose:
 * it is there for whoever reads the body back. So the engine leaves such a hash blank and goes on, and the thread that
 * stores the batch fills it in, before the chain is linked over it. What is on disk is the same as if the engine had
 * written it. Filling in twice is the same as once, so an append can be repeated. A driver that knows nothing of this
 * is given batches that are whole.
 */
export function fillDeferredHashes({ bytes, payloads, deferred }: Omit<UnhashedBatch, "count">): void {
  if (deferred.length === 0) return;
  const target = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const stored = Buffer.from(payloads.buffer, payloads.byteOffset, payloads.byteLength);
  for (let index = 0; index < deferred.length; index += 2) {
    const entry = deferred[index + 1] as number;
    const start = entry + ENTRY_FRAME_BYTES;
    const payload = stored.subarray(start, start + stored.readUInt32BE(entry + LENGTH_AT));
    target.write(hash("sha256", payload, "binary"), deferred[index] as number, HASH_BYTES, "latin1");
  }
}
