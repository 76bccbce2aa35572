/**
 * One spelling for each value: JSON with sorted keys.
 *
 * Two bodies that mean the same have the same bytes and so the same hash, whatever order their keys came in;
 * that is how a repeated submit is known to be the same task. What JSON cannot hold (a function, NaN, a
 * circle) is refused by its path instead of being dropped in silence.
 */
import { badInput } from "./drover-error.ts";

const DEPTH_MAX = 64;

export function canonical(value: unknown, path: string, depth: number = 0): string {
  if (depth > DEPTH_MAX) throw badInput(path, "…", `at most ${DEPTH_MAX} levels deep, and no circle`);
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw badInput(path, value, "well-formed text");
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw badInput(path, value, "a finite number");
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? canonicalList(value, path, depth) : canonicalObject(value, path, depth);
    default:
      throw badInput(path, value, "JSON: text, a number, true, false, null, a list or an object");
  }
}

const canonicalList = (list: readonly unknown[], path: string, depth: number): string =>
  // Array.from sees the holes of a sparse list, which map would pass over.
  `[${Array.from(list, (item, index) => canonical(item, `${path}[${index}]`, depth + 1)).join(",")}]`;

function canonicalObject(value: object, path: string, depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw badInput(path, value, "plain JSON (text for dates, base64 for bytes)");
  }
  const parts: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const item = (value as Record<string, unknown>)[key];
    const place = path === "" ? key : `${path}.${key}`;
    if (!key.isWellFormed()) throw badInput(place.toWellFormed(), key, "a key of well-formed text");
    if (item === undefined) continue;
    parts.push(`${JSON.stringify(key)}:${canonical(item, place, depth + 1)}`);
  }
  return `{${parts.join(",")}}`;
}
