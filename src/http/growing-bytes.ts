/**
 * Bytes that come in pieces, kept in one buffer that doubles.
 *
 * A sender may cut what it sends into pieces of a byte each. A list of them would cost a hundred times what they hold,
 * and a limit in bytes would not bound it; here what is kept is at most twice what has come.
 */
const FIRST_BYTES = 1024;

export type GrowingBytes = {
  /** How much more it holds on to now, in bytes; null if all of it together is more than it may be. */
  add(piece: Buffer): number | null;
  bytes(): Buffer;
};

export function createGrowingBytes(bytesMax: number): GrowingBytes {
  let held = Buffer.alloc(0);
  let size = 0;
  return {
    add(piece) {
      const before = held.length;
      const wanted = size + piece.length;
      if (wanted > bytesMax) return null;
      if (wanted > before) {
        const grown = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(wanted, 2 * before, FIRST_BYTES)));
        held.copy(grown, 0, 0, size);
        held = grown;
      }
      piece.copy(held, size);
      size = wanted;
      return held.length - before;
    },
    bytes: () => held.subarray(0, size),
  };
}
