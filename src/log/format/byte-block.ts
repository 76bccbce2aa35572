/**
 * Bytes that grow as they are written: what a batch is gathered in.
 */

/** Up to here the bytes of a block are shared. More is rare, and the collector does not count what is shared. */
const SHARED_MAX = 4 * 1024 * 1024;

/**
 * The first `length` bytes are written. `view` shows the same bytes, for numbers. What is `shared` can be read by
 * another thread without being copied, and is kept for good; a block that outgrows it goes on elsewhere until it is
 * emptied.
 */
export type Block = { bytes: Buffer; view: DataView; length: number; shared: Buffer };

export function createBlock(size: number): Block {
  const bytes = sharedRoom(size);
  return { bytes, view: viewOf(bytes), length: 0, shared: bytes };
}

const sharedRoom = (size: number): Buffer => Buffer.from(new SharedArrayBuffer(size));
const viewOf = ({ buffer, byteOffset, byteLength }: Buffer): DataView => new DataView(buffer, byteOffset, byteLength);

/** Sees to it that so many bytes more can be written. */
export function makeRoom(block: Block, more: number): void {
  if (block.length + more > block.bytes.length) grow(block, block.length + more);
}

function grow(block: Block, needed: number): void {
  const size = Math.max(block.bytes.length * 2, needed);
  const isShared = size <= SHARED_MAX;
  const larger = isShared ? sharedRoom(size) : Buffer.allocUnsafe(size);
  block.bytes.copy(larger, 0, 0, block.length);
  moveTo(block, larger);
  if (isShared) block.shared = larger;
}

/** Nothing is written any more; the room it keeps is there. */
export function emptyBlock(block: Block): void {
  block.length = 0;
  if (block.bytes !== block.shared) moveTo(block, block.shared);
}

function moveTo(block: Block, bytes: Buffer): void {
  block.bytes = bytes;
  block.view = viewOf(bytes);
}

const UTF8_BYTES_MAX = 3;
const ASCII_END = 128;
/** From here on it is worth counting what a text takes before there is room for it. */
const LONG_MIN = 4096;
/** Up to here a loop is done before the call that would do it for any text. */
const SHORT_MAX = 128;

export function appendText(block: Block, text: string): void {
  // Room for the worst would be three times what a large text takes, and is what the block then keeps.
  makeRoom(block, text.length <= LONG_MIN ? text.length * UTF8_BYTES_MAX : Buffer.byteLength(text));
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
