/**
 * A map that remembers the last few: the newest entry is at its end, and the oldest go when there are too many.
 *
 * An eighth of them goes at once. To look for the oldest is to pass over all that were deleted before it, which a map
 * keeps for long: done for every entry, that takes longer the more may be kept.
 */
const SHARE = 8;

/** Of what is only ever added: the last so many, or twice as many. Nothing is looked for to make room. */
export class LastOnes<Key, Value> {
  private readonly max: number;
  private recent = new Map<Key, Value>();
  private older = new Map<Key, Value>();

  constructor(max: number) {
    this.max = max;
  }

  get(key: Key): Value | undefined {
    return this.recent.get(key) ?? this.older.get(key);
  }

  set(key: Key, value: Value): void {
    if (this.recent.size >= this.max) {
      this.older = this.recent;
      this.recent = new Map();
    }
    this.recent.set(key, value);
  }
}

export function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  const kept = max - Math.floor(max / SHARE);
  for (const oldest of map.keys()) {
    map.delete(oldest);
    if (map.size <= kept) return;
  }
}
