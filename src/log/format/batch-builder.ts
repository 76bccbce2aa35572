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

import type { SignRule } from "../integrity/signed-head.ts";
import type { Batch, HollowBatch, LogRecord, PackedBatch } from "../log.ts";
import { LENGTH_BYTES, packedSize, packRecords, spansOf } from "./batch-row.ts";
import { type Block, createSharedBlock, emptyBlock, makeRoom, writeText } from "./byte-block.ts";
import { HASH_BYTES } from "./chain.ts";
import { writeEvent } from "./codec.ts";
import { COMPACT } from "./compact-events.ts";
import { fillBlanks } from "./deferred-hashes.ts";
import { besideSize, collectBeside, ENTRY_FRAME_BYTES, LENGTH_AT, packBeside } from "./payload-blocks.ts";

const ROOM_AT_FIRST = 65_536;

export type Gathering = { count: number; readonly records: Block; readonly beside: Block; readonly blanks: number[] };

export const createGathering = (): Gathering => ({
  count: 0,
  records: createSharedBlock(ROOM_AT_FIRST),
  beside: createSharedBlock(ROOM_AT_FIRST),
  blanks: [],
});

/** How many bytes have been gathered. */
export const gatheredBytes = ({ records, beside }: Gathering): number => records.length + beside.length;

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
  const { records, beside, blanks } = into;
  const start = records.length;
  makeRoom(records, LENGTH_BYTES);
  records.length += LENGTH_BYTES;
  const isBlank = payload !== undefined && event.kind === "task-submitted" && event.bodyHash === "";
  writeEvent(records, event, cause);
  // Only what is packed has room for a hash.
  if (isBlank && records.bytes[start + LENGTH_BYTES] !== COMPACT) {
    records.length = start + LENGTH_BYTES;
    writeEvent(records, { ...event, bodyHash: hash("sha256", payload, "hex") }, cause);
  } else if (isBlank) blanks.push(records.length - HASH_BYTES, beside.length);
  records.view.setUint32(start, records.length - start - LENGTH_BYTES);
  into.count++;
  if (payload === undefined) return;
  const entry = beside.length;
  makeRoom(beside, ENTRY_FRAME_BYTES);
  beside.length += ENTRY_FRAME_BYTES;
  writeText(beside, payload);
  beside.view.setFloat64(entry, at);
  beside.view.setUint32(entry + LENGTH_AT, beside.length - entry - ENTRY_FRAME_BYTES);
}

/** What was gathered, as a batch. It lies in the gathering's own bytes: good until that is emptied or added to. */
export function batchOf(
  { count, records, beside, blanks }: Gathering,
  firstSeq: Seq,
  sign: SignRule | null = null,
): Batch {
  const written = ({ bytes, length }: Block): Uint8Array => bytes.subarray(0, length);
  const hollow: HollowBatch = { count, bytes: written(records), beside: written(beside), blanks };
  return {
    firstSeq,
    hollow,
    ...(sign === null ? {} : { sign }),
    get packed() {
      fillBlanks(hollow);
      return hollow;
    },
    get records() {
      fillBlanks(hollow);
      return unpack(firstSeq, hollow);
    },
  };
}

/** Empty again, with the room it keeps. */
export function emptied(gathering: Gathering): Gathering {
  emptyBlock(gathering.records);
  emptyBlock(gathering.beside);
  gathering.count = gathering.blanks.length = 0;
  return gathering;
}

/** A batch as it is stored, but for hashes that may be blank. */
export const hollowOf = (batch: Batch): HollowBatch => batch.hollow ?? { ...packedOf(batch), blanks: [] };

/** A batch as it is stored. */
export function packedOf(batch: Batch): PackedBatch {
  if (batch.packed !== undefined) return batch.packed;
  const bytes = new Uint8Array(packedSize(batch.records));
  packRecords(batch.records, bytes);
  const beside = new Uint8Array(besideSize(batch.records));
  packBeside(batch, beside);
  return { count: batch.records.length, bytes, beside };
}

function unpack(firstSeq: Seq, { count, bytes, beside }: PackedBatch): LogRecord[] {
  const { starts, ends } = spansOf(firstSeq, bytes, count);
  const besides = collectBeside([{ firstSeq, bytes: beside }]);
  return Array.from({ length: count }, (_, index) => {
    const record = bytes.subarray(starts[index], ends[index]);
    const payload = besides.get(seq(firstSeq + index));
    return payload === undefined ? { bytes: record } : { bytes: record, beside: payload };
  });
}
