/**
 * A value of an older log or snapshot, with the defaults where it lacks what was added since.
 */
import { isRecord } from "../base/readers.ts";

/** Tables by name: an entry that is not there was taken out. */
const TABLES: ReadonlySet<string> = new Set(["perType", "base", "named"]);

/** What is absent, at any depth, has its default. */
export function filled<Value>(given: Value | undefined, base: Value): Value {
  if (given === undefined || !isRecord(given) || !isRecord(base)) return given === undefined ? base : given;
  const full: Record<string, unknown> = { ...given };
  for (const [key, value] of Object.entries(base)) {
    if (full[key] === undefined) full[key] = value;
    else if (!TABLES.has(key)) full[key] = filled(full[key], value);
  }
  return full as Value;
}

export function allFilled<Item>(named: Readonly<Record<string, Item>>, base: Item): Record<string, Item> {
  return Object.fromEntries(Object.entries(named).map(([id, item]) => [id, filled(item, base)]));
}
