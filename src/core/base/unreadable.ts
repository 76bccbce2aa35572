/**
 * What throws when it is read.
 *
 * A program may hand over an object with a getter that throws, or a proxy that answers nothing. Nobody looks out for
 * that while reading: it hardly ever happens, and every look would cost. Only when something has thrown is the value
 * walked once more, to say where that lies. If nothing in it throws then the fault is not the caller's, and whoever
 * asked throws on what was thrown.
 */
import { THROWS } from "./plain-object.ts";
import type { Refusal } from "./refusal.ts";
import { fail, type Result } from "./result.ts";

const DEPTH_MAX = 64;
const OBJECTS_MAX = 100_000;

/** Says of a value what a getter or a proxy keeps from being read, by its path; null if all of it can be. */
export function unreadable(value: unknown, path: string): Refusal | null {
  const field = pathThatThrows(value, path, 0, new Set());
  if (field === null) return null;
  return { type: "bad-field", field: field === "" ? "(body)" : field, value: THROWS, expected: "plain data" };
}

/** Reads what a caller gave: if that itself throws, the answer is the refusal that says where. */
export function unlessUnreadable<Value>(
  given: unknown,
  path: string,
  read: () => Result<Value, Refusal>,
): Result<Value, Refusal> {
  try {
    return read();
  } catch (thrown) {
    const refusal = unreadable(given, path);
    if (refusal === null) throw thrown;
    return fail(refusal);
  }
}

function pathThatThrows(value: unknown, path: string, depth: number, seen: Set<object>): string | null {
  if (typeof value !== "object" || value === null) return null;
  if (depth > DEPTH_MAX || seen.has(value) || seen.size >= OBJECTS_MAX) return null;
  seen.add(value);
  const keys = keysOf(value);
  if (keys === null) return path;
  for (const key of keys) {
    const inner = Array.isArray(value) ? `${path}[${key}]` : `${path}${path === "" ? "" : "."}${key.toWellFormed()}`;
    let item: unknown;
    try {
      item = (value as Record<string, unknown>)[key];
    } catch {
      return inner;
    }
    const found = pathThatThrows(item, inner, depth + 1, seen);
    if (found !== null) return found;
  }
  return null;
}

/** Null if one of the questions that readers ask of an object as a whole makes it throw. */
function keysOf(value: object): readonly string[] | null {
  try {
    Array.isArray(value);
    Object.getPrototypeOf(value);
    Reflect.has(value, "");
    return Object.keys(value);
  } catch {
    return null;
  }
}
