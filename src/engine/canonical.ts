/**
 * One spelling for each value: JSON with sorted keys.
 *
 * Two bodies that mean the same have the same bytes and so the same hash, whatever order their keys came in;
 * that is how a repeated submit is known to be the same task. What JSON cannot hold (a function, NaN, a
 * circle) is refused by its path instead of being dropped in silence.
 *
 * The value is checked and its keys are put in order; then one call spells it all. An object cannot hold keys that look
 * like numbers in the order of their text, nor `__proto__` as a key like any other: such a value is spelled by hand.
 */
import { hash } from "node:crypto";
import { badInput } from "./drover-error.ts";

const DEPTH_MAX = 64;
const FEW_KEYS = 32;
const AWKWARD_KEY = /^(\d+|__proto__)$/;

/** What lies beside an event: the text of a value, and what the event says of it. */
export type Payload = { readonly text: string; readonly size: number; readonly hash: string };

export function payloadOf(value: unknown, path: string): Payload {
  const text = canonical(value, path);
  return { text, size: Buffer.byteLength(text), hash: hash("sha256", text, "hex") };
}

export function canonical(value: unknown, path: string): string {
  const found = { isAwkward: false };
  const ordered = inOrder(value, path, 0, found);
  return found.isAwkward ? spelled(value) : JSON.stringify(ordered);
}

type Found = { isAwkward: boolean };

/** The value, checked, with its keys in order; the same object where they are already. */
function inOrder(value: unknown, path: string, depth: number, found: Found): unknown {
  if (depth > DEPTH_MAX) throw badInput(path, "…", `at most ${DEPTH_MAX} levels deep, and no circle`);
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw badInput(path, value, "well-formed text");
      return value;
    case "number":
      if (!Number.isFinite(value)) throw badInput(path, value, "a finite number");
      return value;
    case "boolean":
      return value;
    case "object":
      if (value === null) return null;
      return Array.isArray(value) ? listInOrder(value, path, depth, found) : objectInOrder(value, path, depth, found);
    default:
      throw badInput(path, value, "JSON: text, a number, true, false, null, a list or an object");
  }
}

// Array.from sees the holes of a sparse list, which map would pass over.
const listInOrder = (list: readonly unknown[], path: string, depth: number, found: Found): unknown[] =>
  Array.from(list, (item, index) => inOrder(item, `${path}[${index}]`, depth + 1, found));

function objectInOrder(value: object, path: string, depth: number, found: Found): object {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw badInput(path, value, "plain JSON (text for dates, base64 for bytes)");
  }
  const copy: Record<string, unknown> = {};
  for (const key of sorted(Object.keys(value))) {
    const item = (value as Record<string, unknown>)[key];
    const place = path === "" ? key : `${path}.${key}`;
    if (!key.isWellFormed()) throw badInput(place.toWellFormed(), key, "a key of well-formed text");
    if (item === undefined) continue;
    if (AWKWARD_KEY.test(key)) found.isAwkward = true;
    copy[key] = inOrder(item, place, depth + 1, found);
  }
  return copy;
}

/** In place, each key moved forward to where it belongs: `sort` makes working space even for two. */
function sorted(keys: string[]): string[] {
  if (keys.length > FEW_KEYS) return keys.sort();
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] as string;
    let place = index;
    for (; place > 0 && (keys[place - 1] as string) > key; place--) keys[place] = keys[place - 1] as string;
    keys[place] = key;
  }
  return keys;
}

/** A value that has been checked. */
function spelled(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(spelled).join(",")}]`;
  const fields = value as Record<string, unknown>;
  const keys = Object.keys(fields).filter((key) => fields[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${spelled(fields[key])}`)
    .join(",")}}`;
}
