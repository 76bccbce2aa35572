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

export function writeText(block: Block, text: string): void {
  makeRoom(block, text.length * UTF8_BYTES_MAX);
  block.length += block.bytes.write(text, block.length, "utf8");
}
