/**
 * A map that remembers the last few: the newest entry is at its end, and the oldest goes when there are too many.
 */
export function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > max) map.delete(map.keys().next().value as Key);
}
