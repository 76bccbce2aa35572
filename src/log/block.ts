/**
 * Bytes that grow as they are written: what a batch is gathered in.
 */

/**
 * The first `length` bytes are written. `view` shows the same bytes, for numbers. What is shared can be read by another
 * thread without being copied.
 */
export type Block = { bytes: Buffer; view: DataView; length: number; readonly isShared: boolean };

export const createBlock = (size: number): Block => blockOf(Buffer.allocUnsafe(size), false);
export const createSharedBlock = (size: number): Block => blockOf(sharedRoom(size), true);

const sharedRoom = (size: number): Buffer => Buffer.from(new SharedArrayBuffer(size));
const viewOf = ({ buffer, byteOffset, byteLength }: Buffer): DataView => new DataView(buffer, byteOffset, byteLength);
const blockOf = (bytes: Buffer, isShared: boolean): Block => ({ bytes, view: viewOf(bytes), length: 0, isShared });

/** Sees to it that so many bytes more can be written. */
export function makeRoom(block: Block, more: number): void {
  if (block.length + more <= block.bytes.length) return;
  const size = Math.max(block.bytes.length * 2, block.length + more);
  const larger = block.isShared ? sharedRoom(size) : Buffer.allocUnsafe(size);
  block.bytes.copy(larger, 0, 0, block.length);
  block.bytes = larger;
  block.view = viewOf(larger);
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
