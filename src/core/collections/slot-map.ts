/**
 * A map from ids to things that come and go quickly, kind to the garbage collector.
 *
 * V8 gives a Map a new table each time it has filled up with deleted entries, and lets the old table point to the new
 * one. Once a full collection has moved a table into the old generation, that table, dead soon after, keeps its
 * successor alive, that one the next, and so on until the next full collection: every value that ever passed through
 * the map survives, and is copied, although nothing else holds it. With a thousand waiting calls this was more than a
 * third of all time spent.
 *
 * So the Map here holds numbers, and the values lie in an array under those numbers; a number is used again when its
 * value has left. Dead tables then keep alive nothing but keys. In all else this behaves as a Map, including the order
 * of insertion.
 */

export type ReadonlySlotMap<Value> = Pick<SlotMap<Value>, "size" | "has" | "get" | "first" | "keys" | "values">;

export class SlotMap<Value> {
  private readonly slots = new Map<string, number>();
  private readonly items: (Value | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.slots.size;
  }

  has(key: string): boolean {
    return this.slots.has(key);
  }

  get(key: string): Value | undefined {
    const slot = this.slots.get(key);
    return slot === undefined ? undefined : this.items[slot];
  }

  /** A key that is known keeps its position in the order. */
  set(key: string, value: Value): void {
    const known = this.slots.get(key);
    if (known !== undefined) {
      this.items[known] = value;
      return;
    }
    this.add(key, value);
  }

  /** For a key that is not there, at the cost of one look-up. */
  add(key: string, value: Value): void {
    const slot = this.free.pop() ?? this.items.length;
    this.items[slot] = value;
    this.slots.set(key, slot);
  }

  delete(key: string): boolean {
    return this.take(key) !== undefined;
  }

  /** Deletes, and hands out what was there. */
  take(key: string): Value | undefined {
    const slot = this.slots.get(key);
    if (slot === undefined) return undefined;
    const value = this.items[slot];
    this.slots.delete(key);
    this.items[slot] = undefined;
    this.free.push(slot);
    return value;
  }

  /** What was put in first of all that is there. */
  first(): Value | undefined {
    for (const slot of this.slots.values()) return this.items[slot];
    return undefined;
  }

  keys(): IterableIterator<string> {
    return this.slots.keys();
  }

  *values(): IterableIterator<Value> {
    for (const slot of this.slots.values()) yield this.items[slot] as Value;
  }
}
