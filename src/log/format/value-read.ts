/**
 * Values read back from format 2. `value-write.ts` says how they are written.
 *
 * Nothing is believed: each function looks whether the bytes go on before it reads them, and refuses what is no such
 * value. A replay keeps what it reads, and the same few names come again and again, so a name is made once and
 * handed out many times, as long as nothing else takes its place in a small table; likewise the id of a task, which
 * comes with its submit, its starts and its end.
 */
import type { Seq, TaskId } from "../../core/base/index.ts";
import { ownId } from "../../core/collections/index.ts";
import { corruptAt, type LogFailure } from "../log.ts";
import { HASH_BYTES } from "./chain.ts";
import {
  DOUBLE,
  FALSE,
  LIST,
  LONG_TEXT,
  NULL,
  SHORT_TEXT,
  TRUE,
  WIDE_TEXT,
  WORD_16,
  WORD_32,
  WORD_48,
} from "./value-write.ts";

/** Bytes, how far they have been read, and the number of the event they are. */
export type Source = { readonly bytes: Uint8Array; at: number; readonly seq: Seq };

const WORD_32_SPAN = 0x1_0000_0000;
const DOUBLE_BYTES = 8;
const UNIT_BYTES = 2;
const NAMES_KEPT = 1024;
const KEPT_CHARACTERS_MAX = 64;
const IDS_KEPT = 4096;

const names: string[] = new Array(NAMES_KEPT).fill("");
const ids: TaskId[] = new Array(IDS_KEPT).fill("");
const idNumbers = new Float64Array(IDS_KEPT).fill(-1);
const scratch = Buffer.alloc(Math.max(HASH_BYTES, KEPT_CHARACTERS_MAX));

/** Answers where the next bytes begin, of which so many must be there, and steps behind them. */
function take(from: Source, count: number): number {
  const { at } = from;
  if (count > from.bytes.length - at) throw corruptAt(from.seq, "it is cut off");
  from.at = at + count;
  return at;
}

const noSuch = (from: Source, first: number): LogFailure =>
  corruptAt(from.seq, `byte ${from.at} begins with ${first}, which is no such value`);

export function readByte(from: Source): number {
  const at = take(from, 1);
  return from.bytes[at] as number;
}

export function readNumber(from: Source): number {
  const first = readByte(from);
  return first < WORD_16 ? first : readLonger(from, first);
}

export function readNumberOrNull(from: Source): number | null {
  const first = readByte(from);
  return first < WORD_16 ? first : first === NULL ? null : readLonger(from, first);
}

/** A number whose first byte is not itself. */
function readLonger(from: Source, first: number): number {
  const { bytes } = from;
  if (first === WORD_32) return readCount(from);
  if (first === WORD_16) {
    const at = take(from, 2);
    return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
  }
  if (first === WORD_48) {
    const low = readCount(from);
    const at = take(from, 2);
    return ((bytes[at] as number) | ((bytes[at + 1] as number) << 8)) * WORD_32_SPAN + low;
  }
  if (first !== DOUBLE) throw noSuch(from, first);
  const at = take(from, DOUBLE_BYTES);
  for (let index = 0; index < DOUBLE_BYTES; index++) scratch[index] = bytes[at + index] as number;
  const value = scratch.readDoubleLE(0);
  if (!Number.isFinite(value)) throw noSuch(from, first);
  return value;
}

/** 32 bits. */
function readCount(from: Source): number {
  const { bytes } = from;
  const at = take(from, 4);
  const high = (bytes[at + 2] as number) | ((bytes[at + 3] as number) << 8);
  return (((bytes[at] as number) | ((bytes[at + 1] as number) << 8)) + high * 0x1_0000) >>> 0;
}

export function readText(from: Source): string {
  return readTextBehind(from, readByte(from));
}

/** A text whose first byte has been read. */
function readTextBehind(from: Source, first: number): string {
  if (first === SHORT_TEXT) {
    const length = readByte(from);
    if (length <= KEPT_CHARACTERS_MAX) return readName(from, length);
    return textAt(from, length, "latin1");
  }
  if (first === LONG_TEXT) return textAt(from, readCount(from), "latin1");
  if (first === WIDE_TEXT) return textAt(from, UNIT_BYTES * readCount(from), "utf16le");
  throw noSuch(from, first);
}

function textAt(from: Source, count: number, encoding: "latin1" | "utf16le"): string {
  const at = take(from, count);
  const { buffer, byteOffset } = from.bytes;
  return Buffer.from(buffer, byteOffset + at, count).toString(encoding);
}

/** A short text: the one that was made of the same bytes before, if it is still at hand. */
function readName(from: Source, length: number): string {
  const at = take(from, length);
  const { bytes } = from;
  let mixed = length;
  for (let index = 0; index < length; index++) mixed = (mixed * 31 + (bytes[at + index] as number)) | 0;
  const place = (mixed ^ (mixed >>> 10)) & (NAMES_KEPT - 1);
  const kept = names[place] as string;
  if (isSpelled(kept, bytes, at, length)) return kept;
  for (let index = 0; index < length; index++) scratch[index] = bytes[at + index] as number;
  const name = scratch.toString("latin1", 0, length);
  names[place] = name;
  return name;
}

function isSpelled(text: string, bytes: Uint8Array, at: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = 0; index < length; index++) if (text.charCodeAt(index) !== bytes[at + index]) return false;
  return true;
}

export function readId(from: Source): TaskId {
  const first = readByte(from);
  if (first >= SHORT_TEXT) return readTextBehind(from, first) as TaskId;
  if (first > WORD_48) throw noSuch(from, first);
  const number = first < WORD_16 ? first : readLonger(from, first);
  const place = number & (IDS_KEPT - 1);
  if (idNumbers[place] === number) return ids[place] as TaskId;
  const id = ownId(number);
  idNumbers[place] = number;
  ids[place] = id;
  return id;
}

export function readHash(from: Source): string {
  const at = take(from, HASH_BYTES);
  const { bytes } = from;
  let all = 0;
  for (let index = 0; index < HASH_BYTES; index++) {
    const byte = bytes[at + index] as number;
    all |= byte;
    scratch[index] = byte;
  }
  return all === 0 ? "" : scratch.toString("hex", 0, HASH_BYTES);
}

/** Any value. */
export function readValue(from: Source): unknown {
  const first = readByte(from);
  if (first < WORD_16) return first;
  switch (first) {
    case NULL:
      return null;
    case FALSE:
      return false;
    case TRUE:
      return true;
    case SHORT_TEXT:
    case LONG_TEXT:
    case WIDE_TEXT:
      return readTextBehind(from, first);
    case LIST:
      return readList(from);
    default:
      return readLonger(from, first);
  }
}

function readList(from: Source): string[] {
  const count = readCount(from);
  const texts: string[] = [];
  for (let index = 0; index < count; index++) texts.push(readText(from));
  return texts;
}
