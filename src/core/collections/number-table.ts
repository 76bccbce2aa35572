/**
 * A map from numbers that are given out in order, such as those of events, to things that come and go.
 *
 * What was put in about the same time is asked for about the same time, and goes about the same time. A Map scatters
 * such keys over a table of megabytes, so that nearly every look-up waits for memory; and as entries are deleted it
 * gives itself new tables, each of which may keep alive what lay in the one before. Here neighbours lie side by side:
 * 32 numbers share a block, which holds only those of them that are there, so few and scattered keys cost little too.
 *
 * A key is a whole number from 0. Blocks stand in the order in which they were opened: keys put in in ascending order
 * come out in ascending order. Nothing may be put in or taken out while the values are walked over.
 */
const BLOCK_SPAN = 32;

/** `mask` says which of its numbers are there; their values follow each other in `items`. */
type Block<Value> = { mask: number; readonly items: Value[] };

export class NumberTable<Value> {
  private readonly blocks = new Map<number, Block<Value>>();
  /** The block asked for last: the next key mostly lies there too. */
  private lastKey = -1;
  private last: Block<Value> | undefined = undefined;
  private count = 0;

  get size(): number {
    return this.count;
  }

  get(key: number): Value | undefined {
    const block = this.find(Math.floor(key / BLOCK_SPAN));
    if (block === undefined) return undefined;
    const bit = 1 << (key % BLOCK_SPAN);
    return (block.mask & bit) === 0 ? undefined : block.items[slotOf(block.mask, bit)];
  }

  set(key: number, value: Value): void {
    const at = Math.floor(key / BLOCK_SPAN);
    const block = this.find(at) ?? this.open(at);
    const bit = 1 << (key % BLOCK_SPAN);
    const slot = slotOf(block.mask, bit);
    const { items } = block;
    if ((block.mask & bit) === 0) {
      this.count++;
      block.mask |= bit;
      for (let index = items.length; index > slot; index--) items[index] = items[index - 1] as Value;
    }
    items[slot] = value;
  }

  /** What was there, which it is no longer. */
  take(key: number): Value | undefined {
    const at = Math.floor(key / BLOCK_SPAN);
    const block = this.find(at);
    const bit = 1 << (key % BLOCK_SPAN);
    if (block === undefined || (block.mask & bit) === 0) return undefined;
    const { items } = block;
    const slot = slotOf(block.mask, bit);
    const value = items[slot];
    for (let index = slot + 1; index < items.length; index++) items[index - 1] = items[index] as Value;
    items.pop();
    block.mask &= ~bit;
    this.count--;
    if (block.mask === 0) this.drop(at);
    return value;
  }

  *values(): Generator<Value> {
    for (const { items } of this.blocks.values()) yield* items;
  }

  /** The same values, each given to `visit`: several times as fast, for walks over hundreds of thousands. */
  each(visit: (value: Value) => void): void {
    for (const { items } of this.blocks.values())
      for (let index = 0; index < items.length; index++) visit(items[index] as Value);
  }

  private find(at: number): Block<Value> | undefined {
    if (at !== this.lastKey) {
      this.lastKey = at;
      this.last = this.blocks.get(at);
    }
    return this.last;
  }

  private open(at: number): Block<Value> {
    const block: Block<Value> = { mask: 0, items: [] };
    this.blocks.set(at, block);
    this.last = block;
    return block;
  }

  private drop(at: number): void {
    this.blocks.delete(at);
    this.last = undefined;
  }
}

/** How many numbers of the block stand before this one. */
function slotOf(mask: number, bit: number): number {
  let rest = mask & (bit - 1);
  rest -= (rest >>> 1) & 0x55555555;
  rest = (rest & 0x33333333) + ((rest >>> 2) & 0x33333333);
  return Math.imul((rest + (rest >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
