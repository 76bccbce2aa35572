/**
 * Sets of small whole numbers, one bit each.
 *
 * Shapes are numbered, so "does this project have a queued task whose shape is open?" is a few words
 * ANDed together, whether twelve tasks are queued or a million. A set grows when it must and answers
 * false beyond its end.
 */

export type BitSet = { words: Uint32Array };
/** Numbers, or a bit set, that may be read only. */
export type ReadonlyNumbers = { readonly length: number; readonly [index: number]: number };
export type ReadonlyBitSet = { readonly words: ReadonlyNumbers };

export const bitSet = (): BitSet => ({ words: new Uint32Array(1) });

export const hasBit = (set: ReadonlyBitSet, bit: number): boolean =>
  ((set.words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0;

export function setBit(set: BitSet, bit: number, on: boolean): void {
  const word = bit >>> 5;
  if (word >= set.words.length) {
    if (!on) return;
    const grown = new Uint32Array(Math.max(word + 1, set.words.length * 2));
    grown.set(set.words);
    set.words = grown;
  }
  if (on) set.words[word] = (set.words[word] as number) | (1 << (bit & 31));
  else set.words[word] = (set.words[word] as number) & ~(1 << (bit & 31));
}

/** Whether any number in `set` is in none of the two `closed` sets. */
export function anyOutside(set: ReadonlyBitSet, closed: ReadonlyBitSet, alsoClosed: ReadonlyBitSet): boolean {
  const { words } = set;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as number;
    if (word !== 0 && (word & ~((closed.words[index] ?? 0) | (alsoClosed.words[index] ?? 0))) !== 0) return true;
  }
  return false;
}

/** Puts every number of `mask` into the set, or takes it out. */
export function setAll(set: BitSet, mask: BitSet, on: boolean): void {
  if (on && set.words.length < mask.words.length) {
    const grown = new Uint32Array(mask.words.length);
    grown.set(set.words);
    set.words = grown;
  }
  const { words } = set;
  const length = Math.min(words.length, mask.words.length);
  for (let index = 0; index < length; index++) {
    const bits = mask.words[index] as number;
    words[index] = on ? (words[index] as number) | bits : (words[index] as number) & ~bits;
  }
}

/** The numbers in the set, ascending. */
export function* bitsOf(set: ReadonlyBitSet): Generator<number> {
  for (let index = 0; index < set.words.length; index++) {
    let word = set.words[index] as number;
    while (word !== 0) {
      const lowest = word & -word;
      yield index * 32 + (31 - Math.clz32(lowest));
      word ^= lowest;
    }
  }
}
