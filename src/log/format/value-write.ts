/**
 * Values written into bytes as they are, not as text: the words of format 2.
 *
 * What is written for every task is a few numbers, names and a hash. Each function writes one value at a place and
 * answers the place behind it; `value-read.ts` reads them. The first byte of a value says how it goes on:
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
 */

import { numberIn } from "../../core/collections/index.ts";
import { HASH_BYTES } from "./chain.ts";

export const WORD_16 = 0xf0;
export const WORD_32 = 0xf1;
export const WORD_48 = 0xf2;
export const DOUBLE = 0xf3;
export const NULL = 0xf4;
export const FALSE = 0xf5;
export const TRUE = 0xf6;
export const SHORT_TEXT = 0xf7;
export const LONG_TEXT = 0xf8;
export const WIDE_TEXT = 0xf9;
export const LIST = 0xfa;

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
