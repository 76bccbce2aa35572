/**
 * Values in the compact encoding: written into bytes as they are, not as text, and read back.
 *
 * What is written for every task is a few numbers, names and a hash. Each writer puts one value at an offset and
 * answers the offset behind it. The first byte of a value says how it goes on:
 *
 *     00…EF         a whole number below 240: itself
 *     F0 F1 F2      a whole number in 16, 32, 48 bits, low byte first; the shortest that holds it
 *     F3            any other number: a double, low byte first
 *     F4 F5 F6      null, false, true
 *     F7            a text shorter than 256: how many characters, in 8 bits, then a byte for each (Latin-1)
 *     F8            a longer one: the same with 32 bits
 *     F9            a text with other characters: how many units of UTF-16, in 32 bits, then two bytes for each
 *     FA            a list of texts: how many, in 32 bits, then each
 *
 * So text is written in the two forms in which the engine holds it: any string comes back, half a surrogate pair too.
 * Minus zero is zero, as in JSON. There is no form for a number that is not finite, for undefined and for objects;
 * `roomFor` says so, and the caller, who must ask it first, leaves such an event to JSON. Lists hold texts only, so
 * that no bytes, however damaged, take a reader deeper and deeper.
 *
 * A reader believes nothing: it looks whether the bytes go on before it reads them, and refuses what is no such value.
 * A replay keeps what it reads, and the same few names come again and again, so a name is made once and handed out many
 * times, as long as nothing else takes its slot in a small table; likewise the id of a task, which comes with its
 * submit, its starts and its end.
 */
import type { Seq, TaskId } from "../../core/base/index.ts";
import { numberIn, ownId } from "../../core/collections/index.ts";
import { corruptAt, type LogFailure } from "../log.ts";
import { HASH_BYTES } from "./chain.ts";

const WORD_16 = 0xf0;
const WORD_32 = 0xf1;
const WORD_48 = 0xf2;
const DOUBLE = 0xf3;
const NULL = 0xf4;
const FALSE = 0xf5;
const TRUE = 0xf6;
const SHORT_TEXT = 0xf7;
const LONG_TEXT = 0xf8;
const WIDE_TEXT = 0xf9;
const LIST = 0xfa;

const SMALL_END = 0xf0;
const SHORT_END = 0x100;
const LATIN_END = 0x100;
const WORD_16_END = 0x1_0000;
const WORD_32_END = 0x1_0000_0000;
const WORD_48_END = 0x1_0000_0000_0000;
const DOUBLE_BYTES = 8;
const FRAME_BYTES_MAX = 9;
export const CHARACTER_BYTES_MAX = 2;

/** How many bytes a value takes at most; infinite if it has no form. */
export function roomFor(value: unknown): number {
  if (typeof value === "string") return FRAME_BYTES_MAX + CHARACTER_BYTES_MAX * value.length;
  if (value === null || typeof value === "boolean" || Number.isFinite(value)) return FRAME_BYTES_MAX;
  if (!Array.isArray(value)) return Number.POSITIVE_INFINITY;
  let room = FRAME_BYTES_MAX;
  for (const one of value) room += typeof one === "string" ? roomFor(one) : Number.POSITIVE_INFINITY;
  return room;
}

/** Any value that has room. */
export function writeValue(target: Buffer, at: number, value: unknown): number {
  if (typeof value === "number") return writeNumber(target, at, value);
  if (typeof value === "string") return writeText(target, at, value);
  if (Array.isArray(value)) {
    let end = writeCount(target, at, LIST, value.length);
    for (const one of value) end = writeText(target, end, one);
    return end;
  }
  target[at] = value === null ? NULL : value === true ? TRUE : FALSE;
  return at + 1;
}

export function writeNumber(target: Buffer, at: number, value: number): number {
  if (!(value >= 0 && value < WORD_48_END) || Math.floor(value) !== value) return writeDouble(target, at, value);
  if (value < SMALL_END) {
    target[at] = value;
    return at + 1;
  }
  if (value < WORD_16_END) {
    target[at] = WORD_16;
    target[at + 1] = value;
    target[at + 2] = value >>> 8;
    return at + 3;
  }
  if (value < WORD_32_END) return writeCount(target, at, WORD_32, value);
  const high = Math.floor(value / WORD_32_END);
  const end = writeCount(target, at, WORD_48, value);
  target[end] = high;
  target[end + 1] = high >>> 8;
  return end + 2;
}

export const writeNumberOrNull = (target: Buffer, at: number, value: number | null): number => {
  if (value !== null) return writeNumber(target, at, value);
  target[at] = NULL;
  return at + 1;
};

/** A first byte, and the low 32 bits of a number. */
function writeCount(target: Buffer, at: number, first: number, count: number): number {
  target[at] = first;
  target[at + 1] = count;
  target[at + 2] = count >>> 8;
  target[at + 3] = count >>> 16;
  target[at + 4] = count >>> 24;
  return at + 5;
}

function writeDouble(target: Buffer, at: number, value: number): number {
  target[at] = DOUBLE;
  target.writeDoubleLE(value, at + 1);
  return at + 1 + DOUBLE_BYTES;
}

export function writeText(target: Buffer, at: number, text: string): number {
  const { length } = text;
  if (length >= SHORT_END) return writeLongText(target, at, text);
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code >= LATIN_END) return writeWideText(target, at, text);
    target[at + 2 + index] = code;
  }
  target[at] = SHORT_TEXT;
  target[at + 1] = length;
  return at + 2 + length;
}

function writeLongText(target: Buffer, at: number, text: string): number {
  for (let index = 0; index < text.length; index++)
    if (text.charCodeAt(index) >= LATIN_END) return writeWideText(target, at, text);
  const start = writeCount(target, at, LONG_TEXT, text.length);
  return start + target.write(text, start, "latin1");
}

function writeWideText(target: Buffer, at: number, text: string): number {
  const start = writeCount(target, at, WIDE_TEXT, text.length);
  return start + target.write(text, start, "utf16le");
}

/** The id of a task: its number if Drover made it, otherwise a text. */
export function writeId(target: Buffer, at: number, id: string): number {
  const number = numberIn(id);
  return number < 0 || number >= WORD_48_END ? writeText(target, at, id) : writeNumber(target, at, number);
}

/** Two digits at a time, by the 16 bits they are in memory: the byte they spell, or less than 0. */
const digits = Buffer.from(new ArrayBuffer(2 * HASH_BYTES));
const pairs = new Uint16Array(digits.buffer);
const spelled = new Int16Array(WORD_16_END).fill(-1);
for (let byte = 0; byte < 0x100; byte++) {
  digits.write(byte.toString(16).padStart(2, "0"));
  spelled[pairs[0] as number] = byte;
}

/**
 * The 32 bytes that a hash spells, without a first byte, zeros for one that is empty; less than 0 if it is neither
 * empty nor 64 small hexadecimal digits that are not all zero.
 */
export function writeHash(target: Buffer, at: number, hash: string): number {
  if (hash === "") {
    for (let index = 0; index < HASH_BYTES; index++) target[at + index] = 0;
    return at + HASH_BYTES;
  }
  if (hash.length !== 2 * HASH_BYTES || digits.write(hash) !== 2 * HASH_BYTES) return -1;
  let all = 0;
  for (let index = 0; index < HASH_BYTES; index++) {
    const byte = spelled[pairs[index] as number] as number;
    all |= byte;
    target[at + index] = byte;
  }
  return all <= 0 ? -1 : at + HASH_BYTES;
}

/** Bytes, how far they have been read, and the number of the event they are. */
export type Source = { readonly bytes: Uint8Array; at: number; readonly seq: Seq };

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
    return ((bytes[at] as number) | ((bytes[at + 1] as number) << 8)) * WORD_32_END + low;
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
  if (first === WIDE_TEXT) return textAt(from, CHARACTER_BYTES_MAX * readCount(from), "utf16le");
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
  const slot = (mixed ^ (mixed >>> 10)) & (NAMES_KEPT - 1);
  const kept = names[slot] as string;
  if (isSpelled(kept, bytes, at, length)) return kept;
  for (let index = 0; index < length; index++) scratch[index] = bytes[at + index] as number;
  const name = scratch.toString("latin1", 0, length);
  names[slot] = name;
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
  const slot = number & (IDS_KEPT - 1);
  if (idNumbers[slot] === number) return ids[slot] as TaskId;
  const id = ownId(number);
  idNumbers[slot] = number;
  ids[slot] = id;
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
