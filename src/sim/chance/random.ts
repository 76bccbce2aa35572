/**
 * Chance that can be repeated.
 *
 * The generator is sfc32 (Chris Doty-Humphrey's small fast counter, 32 bits), seeded through twelve
 * discarded steps as its author advises. Whole numbers only, so every machine draws the same.
 */

export type Random = {
  /** A whole number from 0 up to, but not including, `end`. */
  below(end: number): number;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  /** True so many times in a hundred. */
  percent(chance: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
};

const WARM_UP = 12;

export function createRandom(seed: number): Random {
  let a = 0x9e3779b9;
  let b = Math.floor(seed / 0x1_0000_0000) | 0;
  let c = seed | 0;
  let counter = 1;

  function next(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  }

  for (let step = 0; step < WARM_UP; step++) next();
  const below = (end: number): number => next() % end;
  return {
    below,
    between: (low, high) => low + below(high - low + 1),
    percent: (chance) => below(100) < chance,
    pick: <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item,
  };
}
