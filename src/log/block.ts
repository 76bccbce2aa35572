/**
 * Bytes that grow as they are written: what a batch is gathered in.
 */

/** The first `length` bytes are written. */
export type Block = { bytes: Buffer; length: number };

export const createBlock = (size: number): Block => ({ bytes: Buffer.allocUnsafe(size), length: 0 });

/** Sees to it that so many bytes more can be written. */
export function makeRoom(block: Block, more: number): void {
  if (block.length + more <= block.bytes.length) return;
  const larger = Buffer.allocUnsafe(Math.max(block.bytes.length * 2, block.length + more));
  block.bytes.copy(larger, 0, 0, block.length);
  block.bytes = larger;
}

const UTF8_BYTES_MAX = 3;
const ASCII_END = 128;
/** Up to here a loop is done before the call that would do it for any text. */
const SHORT_MAX = 128;

export function writeText(block: Block, text: string): void {
  makeRoom(block, text.length * UTF8_BYTES_MAX);
  if (text.length <= SHORT_MAX && writeAscii(block, text)) return;
  block.length += block.bytes.write(text, block.length, "utf8");
}

/** Answers false if it is not ASCII: then nothing counts as written. */
function writeAscii(block: Block, text: string): boolean {
  const { bytes, length } = block;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= ASCII_END) return false;
    bytes[length + index] = code;
  }
  block.length = length + text.length;
  return true;
}
