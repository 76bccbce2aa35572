/**
 * Single records, read many at a time.
 *
 * Where more tasks wait than bodies fit into memory, each start reads one record, and those that start together lie
 * close to each other: in a few batches and a few blocks. So what was read last stays here, opened, up to a bound in
 * bytes; a record costs what it costs to find it there, and not what it costs to read and open the thousands beside it.
 * Nothing that is stored ever changes but by pruning, which forgets all of it.
 */
import type { Seq } from "../../core/base/index.ts";
import { type BatchRow, checkSeq, recordBytes } from "../format/batch-row.ts";
import { collectStored, findPayload } from "../format/payload-blocks.ts";
import { corruptAt, type LogRecord } from "../log.ts";
import type { Database } from "./database.ts";

const OPENED_BYTES_MAX: number = 32 * 1024 * 1024;
const OPENED_MAX = 64;

/**
 * Records in one block of bytes, which can be moved between threads. Of each, `ends` has two numbers: where its event
 * ends, and where its payload does, which begins there; -1 for what there is none of.
 */
export type PackedRecords = {
  readonly bytes: Uint8Array;
  readonly ends: Int32Array;
  /** Of payloads that have outlived their events. */
  readonly payloadHashes: readonly (string | null)[];
};

type RecordReader = {
  /** All of them, or throws if one cannot be read. */
  records(wanted: readonly Seq[]): PackedRecords;
  /** What was read may be there no more. */
  forget(): void;
};

type Payloads = ReadonlyMap<Seq, Uint8Array>;

export function createRecordReader(database: Database): RecordReader {
  const rows = createOpened<BatchRow>();
  const blocks = createOpened<Payloads>();

  function rowWith(wanted: Seq): BatchRow | null {
    const known = rows.find(({ firstSeq, lastSeq }) => firstSeq <= wanted && wanted <= lastSeq);
    if (known !== null) return known;
    const row = database.rowWith(wanted);
    if (row !== null) rows.add(row, row.bytes.length + row.hashes.length);
    return row;
  }

  function payloadOf(wanted: Seq): Uint8Array | null {
    const known = blocks.find((payloads) => payloads.has(wanted));
    if (known !== null) return known.get(wanted) ?? null;
    const block = database.blockBefore(wanted);
    if (block === null) return null;
    const payloads = collectStored([block]);
    blocks.add(payloads, block.bytes.length);
    // One that is not there may be one that could not be read, which is not the same.
    return payloads.get(wanted) ?? findPayload(block, wanted);
  }

  function record(wanted: Seq): LogRecord | null {
    checkSeq(wanted);
    const payload = payloadOf(wanted);
    const row = rowWith(wanted);
    if (row === null && payload === null) return null;
    const bytes = row === null ? new Uint8Array(0) : recordBytes(row, wanted);
    if (payload === null) return { bytes };
    const hash = row === null ? database.keptHash(database.keptList()?.run ?? 0, wanted) : null;
    if (row === null && hash === null && database.isOfFormat3) {
      throw corruptAt(wanted, "its payload is there, but neither the event nor a signed hash of it");
    }
    return { bytes, payload, ...(hash === null ? {} : { payloadHash: hash }) };
  }

  return {
    records: (wanted) => packed(wanted.map(record)),
    forget() {
      rows.clear();
      blocks.clear();
    },
  };
}

/** What was opened last, the newest at the end. */
function createOpened<Value>() {
  let kept: { readonly value: Value; readonly size: number }[] = [];
  let size = 0;
  return {
    find(isIt: (value: Value) => boolean): Value | null {
      const at = kept.findLastIndex(({ value }) => isIt(value));
      if (at < 0) return null;
      const [found] = kept.splice(at, 1) as [(typeof kept)[number]];
      kept.push(found);
      return found.value;
    },
    add(value: Value, bytes: number): void {
      kept.push({ value, size: bytes });
      size += bytes;
      while (kept.length > OPENED_MAX || (size > OPENED_BYTES_MAX && kept.length > 1)) size -= kept.shift()?.size ?? 0;
    },
    clear(): void {
      kept = [];
      size = 0;
    },
  };
}

function packed(records: readonly (LogRecord | null)[]): PackedRecords {
  const ends = new Int32Array(records.length * 2).fill(-1);
  let size = 0;
  for (const [index, record] of records.entries()) {
    if (record === null) continue;
    ends[index * 2] = size += record.bytes.length;
    if (record.payload !== undefined) ends[index * 2 + 1] = size += record.payload.length;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const record of records) {
    if (record === null) continue;
    bytes.set(record.bytes, at);
    at += record.bytes.length;
    if (record.payload !== undefined) bytes.set(record.payload, at);
    at += record.payload?.length ?? 0;
  }
  return { bytes, ends, payloadHashes: records.map((record) => record?.payloadHash ?? null) };
}
