/**
 * A map that remembers the last few: the newest entry is at its end, and the oldest go when there are too many.
 *
 * An eighth of them goes at once. To look for the oldest is to pass over all that were deleted before it, which a map
 * keeps for long: done for every entry, that takes longer the more may be kept.
 */
const SHARE = 8;

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
