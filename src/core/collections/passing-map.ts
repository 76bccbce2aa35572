/**
 * A map through which much passes: it holds little at a time, and what it holds is new again and again.
 *
 * A Map makes itself a new table whenever deleted entries have filled the one it has, and the old table points to the
 * new one, with all that lay in it. Once one of them has grown old the next grows old through it, and so on: whatever
 * passes through such a map stays in memory until everything old is collected, and collecting what is young, which
 * should cost nothing, has to carry all of it along. Here a whole new Map takes the place of one through which enough
 * has passed, and to that nothing old points. What is there is carried over, at most once for each that has gone.
 *
 * Nothing may be put in while it is walked over.
 */
const PASSED_MIN = 128;

export class PassingMap<Key, Value> {
  private map = new Map<Key, Value>();
  private passed = 0;

  get size(): number {
    return this.map.size;
  }

  get(key: Key): Value | undefined {
    return this.map.get(key);
  }

  has(key: Key): boolean {
    return this.map.has(key);
  }

  set(key: Key, value: Value): void {
    if (this.passed >= PASSED_MIN && this.passed >= this.map.size) {
      this.map = new Map(this.map);
      this.passed = 0;
    }
    this.map.set(key, value);
  }

  delete(key: Key): boolean {
    const isGone = this.map.delete(key);
    if (isGone) this.passed++;
    return isGone;
  }

  clear(): void {
    this.map = new Map();
    this.passed = 0;
  }

  values(): MapIterator<Value> {
    return this.map.values();
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.map.entries();
  }
}
