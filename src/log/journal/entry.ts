/**
 * A sealed batch as one block of bytes, for journals that keep it so.
 *
 *     1 byte    the version of this layout
 *     4 bytes   the length of the header, big endian
 *     header    JSON: numbers, epoch, id and hashes of the batch, the lengths of what follows
 *     body      the records, then what lies beside them; compressed (zstd) where that pays
 *
 * Compressing is left to the log's thread, which has the batch in hand, or to those of zlib, so that no caller waits
 * for it on the event loop. How large a body is once it is taken apart stands in the header and is a limit: a forged
 * block cannot fill the memory.
 */
import { promisify } from "node:util";
import { constants, zstdCompress, zstdCompressSync, zstdDecompress } from "node:zlib";
import { isCount, isRecord, isSha256, seq } from "../../core/base/index.ts";
import { BATCH_BYTES_MAX } from "../format/batch-row.ts";
import { fromHex, toHex } from "../format/chain.ts";
import { LogFailure } from "../log.ts";
import type { SealedBatch } from "./journal.ts";

const VERSION = 1;
const PREFIX_BYTES = 5;
/** A shorter body is not worth the trip to another thread. */
const COMPRESSED_FROM = 512;
const LEVEL = 1;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

type Header = {
  readonly first: number;
  readonly last: number;
  readonly epoch: number;
  readonly id: string;
  readonly prior: string;
  readonly post: string;
  /** The lengths of records and payloads before they are compressed. */
  readonly bytes: number;
  readonly payloads: number;
  readonly zstd: boolean;
};

export async function packEntry(entry: SealedBatch): Promise<Buffer> {
  if (entry.packed !== undefined) return Buffer.from(entry.packed.buffer, entry.packed.byteOffset, entry.packed.length);
  const raw = bodyOf(entry);
  return blockOf(entry, raw, isShort(raw) ? raw : await compress(raw, { params: LEVEL_PARAMS }));
}

/** The same at once, for a thread that keeps nobody waiting. */
export function packEntryNow(entry: SealedBatch): Buffer {
  const raw = bodyOf(entry);
  return blockOf(entry, raw, isShort(raw) ? raw : zstdCompressSync(raw, { params: LEVEL_PARAMS }));
}

const bodyOf = ({ bytes, payloads }: SealedBatch): Buffer => Buffer.concat([bytes, payloads]);
const isShort = ({ length }: Buffer): boolean => length < COMPRESSED_FROM;

function blockOf(entry: SealedBatch, raw: Buffer, small: Buffer): Buffer {
  const zstd = small.length < raw.length;
  const header: Header = {
    first: entry.firstSeq,
    last: entry.lastSeq,
    epoch: entry.epoch,
    id: entry.batchId,
    prior: toHex(entry.priorHash),
    post: toHex(entry.postHash),
    bytes: entry.bytes.length,
    payloads: entry.payloads.length,
    zstd,
  };
  const text = Buffer.from(JSON.stringify(header), "utf8");
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(VERSION, 0);
  prefix.writeUInt32BE(text.length, 1);
  return Buffer.concat([prefix, text, zstd ? small : raw]);
}

export async function unpackEntry(block: Uint8Array): Promise<SealedBatch> {
  const whole = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const bodyAt = PREFIX_BYTES + (whole.length < PREFIX_BYTES ? 0 : whole.readUInt32BE(1));
  if (bodyAt > whole.length) throw unreadable("it is cut off");
  if (whole.readUInt8(0) !== VERSION) throw newer(whole.readUInt8(0));
  const { first, last, epoch, id, prior, post, bytes, payloads, zstd } = parseHeader(
    whole.toString("utf8", PREFIX_BYTES, bodyAt),
  );
  const body = zstd ? await inflated(whole.subarray(bodyAt), bytes + payloads) : whole.subarray(bodyAt);
  if (body.length !== bytes + payloads) throw unreadable(`its body has ${body.length} bytes, not ${bytes + payloads}`);
  return {
    firstSeq: seq(first),
    lastSeq: seq(last),
    epoch,
    batchId: id,
    priorHash: fromHex(prior),
    postHash: fromHex(post),
    bytes: body.subarray(0, bytes),
    payloads: body.subarray(bytes),
  };
}

const LEVEL_PARAMS = { [constants.ZSTD_c_compressionLevel]: LEVEL };

async function inflated(body: Uint8Array, length: number): Promise<Buffer> {
  try {
    return await decompress(body, { maxOutputLength: Math.max(1, length) });
  } catch (error) {
    throw unreadable(`its body cannot be taken apart: ${(error as Error).message}`);
  }
}

function parseHeader(text: string): Header {
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch {
    throw unreadable("its header is no JSON");
  }
  if (!isRecord(header)) throw unreadable("its header is no object");
  const { first, last, epoch, id, prior, post, bytes, payloads, zstd } = header;
  const isCounted = [first, last, epoch, bytes, payloads].every(isCount);
  if (!isCounted || typeof id !== "string" || !isSha256(prior) || !isSha256(post) || typeof zstd !== "boolean")
    throw unreadable("its header makes no sense");
  const read = header as Header;
  if (read.last < read.first || Math.max(read.bytes, read.payloads) > BATCH_BYTES_MAX)
    throw unreadable("the numbers of its header make no sense");
  return read;
}

const unreadable = (finding: string): LogFailure =>
  new LogFailure("corrupt", `an entry of the journal is damaged: ${finding}. Nothing was repaired.`);

const newer = (version: number): LogFailure =>
  new LogFailure(
    "unsupported-version",
    `an entry of the journal has layout ${version}; this version reads ${VERSION}. Use a newer version of Drover.`,
  );
