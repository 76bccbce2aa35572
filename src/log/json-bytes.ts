/**
 * JSON written straight into bytes.
 *
 * What is written for every task is short, mostly ASCII and known in shape; making a string of it first, and bytes of
 * the string, takes longer than writing it. Each function writes one value at a place and answers the place behind
 * it. They write exactly what `JSON.stringify` would: whatever is not plain ASCII is left to it. The caller sees to
 * it that there is room: three bytes for each character, and some.
 */

const QUOTE = 34;
const BACKSLASH = 92;
const FIRST_PLAIN = 32;
const LAST_PLAIN = 126;
const ZERO = 48;
const HALF_DIGITS = 9;
const HALF_SPAN = 1_000_000_000;

/** Text that is JSON already, all of it ASCII. */
export function writeAscii(target: Buffer, at: number, text: string): number {
  for (let index = 0; index < text.length; index++) target[at + index] = text.charCodeAt(index);
  return at + text.length;
}

/** Text that is JSON already, whatever it holds. */
export const writeAny = (target: Buffer, at: number, text: string): number => at + target.write(text, at, "utf8");

export function writeString(target: Buffer, at: number, text: string): number {
  const start = at + 1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < FIRST_PLAIN || code > LAST_PLAIN || code === QUOTE || code === BACKSLASH)
      return writeAny(target, at, JSON.stringify(text));
    target[start + index] = code;
  }
  target[at] = QUOTE;
  target[start + text.length] = QUOTE;
  return start + text.length + 1;
}

export function writeNumber(target: Buffer, at: number, value: number): number {
  if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER) || Math.floor(value) !== value)
    return writeAscii(target, at, Number.isFinite(value) ? `${value}` : "null");
  if (value < HALF_SPAN) return writeDigits(target, at, value, digitsIn(value));
  // In two halves, each small enough for whole arithmetic: an instant has thirteen digits.
  const high = Math.floor(value / HALF_SPAN);
  const middle = high < HALF_SPAN ? writeDigits(target, at, high, digitsIn(high)) : writeNumber(target, at, high);
  return writeDigits(target, middle, value - high * HALF_SPAN, HALF_DIGITS);
}

function digitsIn(value: number): number {
  let count = 1;
  for (let limit = 10; limit <= value; limit *= 10) count++;
  return count;
}

/** The last so many digits of a whole number below `HALF_SPAN`. */
function writeDigits(target: Buffer, at: number, value: number, count: number): number {
  let rest = value | 0;
  for (let place = at + count - 1; place >= at; place--) {
    const tens = (rest / 10) | 0;
    target[place] = ZERO + rest - tens * 10;
    rest = tens;
  }
  return at + count;
}

export const writeNumberOrNull = (target: Buffer, at: number, value: number | null): number =>
  value === null ? writeAscii(target, at, "null") : writeNumber(target, at, value);
export const writeStringOrNull = (target: Buffer, at: number, value: string | null): number =>
  value === null ? writeAscii(target, at, "null") : writeString(target, at, value);
export const writeFlag = (target: Buffer, at: number, value: boolean): number =>
  writeAscii(target, at, value ? "true" : "false");
