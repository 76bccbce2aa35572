/**
 * One spelling for each value: JSON with sorted keys.
 *
 * Two bodies that mean the same have the same bytes and so the same hash, whatever order their keys came in;
 * that is how a repeated submit is known to be the same task. What JSON cannot hold (a function, NaN, a
 * cycle) is refused by its path instead of being dropped in silence.
 *
 * Every task and every result is spelled, and hardly any is refused: so the text is put together without a thought
 * for paths, and only when that meets something it cannot spell is the value walked again to say what and where.
 * The two walks must agree on what JSON can hold, and the second goes in the order of the text, so that of two
 * faults the same one is always reported.
 */
import { hash } from "node:crypto";
import { isPlainObject } from "../../core/base/index.ts";
import { badInput, faultOfReading } from "./drover-error.ts";

const DEPTH_MAX = 64;
const KEY_SHOWN_MAX = 100;
const FEW_KEYS = 32;
const KNOWN_KEYS_MAX = 1024;
const KNOWN_KEY_LENGTH_MAX = 64;
/** What is not itself between quotes: quote, backslash, control characters, and all that is not ASCII. */
const TO_ESCAPE = /[^ !#-[\]-~]/;
/** How many texts have been met that are not themselves between quotes. It only grows, whoever spells meanwhile. */
let escapedSoFar = 0;
export const escapedUntilNow = (): number => escapedSoFar;

/** The payload of an event: the text of a value, and what the event says of it. */
export type Payload = { readonly text: string; readonly size: number; readonly hash: string };

export function payloadOf(value: unknown, path: string): Payload {
  const since = escapedSoFar;
  const text = canonical(value, path);
  return { text, size: sizeOf(text, since), hash: hashOfText(text) };
}

/** Of a text that was spelled since then: if nothing had to be escaped it is ASCII, and a character is a byte. */
export const sizeOf = (text: string, since: number): number =>
  escapedSoFar === since ? text.length : Buffer.byteLength(text);

export const hashOfText = (text: string): string => hash("sha256", text, "hex");

export function canonical(value: unknown, path: string): string {
  try {
    const text = spelled(value, 0);
    if (text !== null) return text;
    check(value, path, 0);
  } catch (thrown) {
    throw faultOfReading(thrown, value, path);
  }
  throw badInput(path, value, "a value that does not change while it is read");
}

/** The same step by step, for an object that has very much in it. Until it is done nobody may change the value. */
export function* canonicalSteps(value: unknown, path: string): Generator<unknown, string> {
  try {
    const text = isSpelledInSteps(value) ? yield* objectInSteps(value, 0) : spelled(value, 0);
    if (text !== null) return text;
  } catch (thrown) {
    throw faultOfReading(thrown, value, path);
  }
  return canonical(value, path);
}

/** So deep are the parts that are a step each. */
const STEPS_DEPTH_MAX = 2;
const isSpelledInSteps = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && isPlainObject(value);

function* objectInSteps(value: Readonly<Record<string, unknown>>, depth: number): Generator<unknown, string | null> {
  let text = "";
  for (const name of Object.keys(value).sort()) {
    const item = value[name];
    if (item === undefined) continue;
    const key = spelledKey(name);
    const isLarge = depth + 1 < STEPS_DEPTH_MAX && isSpelledInSteps(item);
    const piece = isLarge ? yield* objectInSteps(item, depth + 1) : spelled(item, depth + 1);
    if (key === null || piece === null) return null;
    text += (text === "" ? key.first : key.next) + piece;
    yield;
  }
  return text === "" ? "{}" : `${text}}`;
}

/** The text of a value that stands so many levels deep in another; null if anything in it cannot be spelled. */
function spelled(value: unknown, depth: number): string | null {
  if (depth > DEPTH_MAX) return null;
  switch (typeof value) {
    case "string":
      return spelledText(value);
    case "number":
      return Number.isFinite(value) ? `${value}` : null;
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? spelledList(value, depth) : spelledObject(value, depth);
    default:
      return null;
  }
}

function spelledText(value: string): string | null {
  if (!TO_ESCAPE.test(value)) return `"${value}"`;
  escapedSoFar++;
  return value.isWellFormed() ? JSON.stringify(value) : null;
}

/** Any text as it stands in JSON. */
export const quoted = (text: string): string => (TO_ESCAPE.test(text) ? JSON.stringify(text) : `"${text}"`);

function spelledList(list: readonly unknown[], depth: number): string | null {
  if (list.length === 0) return "[]";
  let text = "";
  for (let index = 0; index < list.length; index++) {
    const item = spelled(list[index], depth + 1);
    if (item === null) return null;
    text += (index === 0 ? "[" : ",") + item;
  }
  return `${text}]`;
}

function spelledObject(value: object, depth: number): string | null {
  if (!isPlainObject(value)) return null;
  let text: string | null = "";
  for (const name of sorted(Object.keys(value))) {
    const key = spelledKey(name);
    if (key === null) return null;
    const item = (value as Record<string, unknown>)[name];
    if (item === undefined) continue;
    text = withField(text, key, item, depth + 1);
    if (text === null) return null;
  }
  return text === "" ? "{}" : `${text}}`;
}

/** The text of an object up to and with this field, which may be its first; null if the field cannot be spelled. */
export function withField(text: string, key: SpelledKey, value: unknown, depth: number): string | null {
  // Nearly all are of this kind: spelled here, in as few pieces as can be, because someone must put them together.
  if (typeof value === "string" && depth <= DEPTH_MAX && !TO_ESCAPE.test(value))
    return `${text}${text === "" ? key.firstOfText : key.nextOfText}${value}"`;
  const piece = spelled(value, depth);
  return piece === null ? null : `${text}${text === "" ? key.first : key.next}${piece}`;
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

/** A key as it stands in the text: `{"key":` if it is the first, `,"key":` if not; both also with the next quote. */
export type SpelledKey = {
  readonly first: string;
  readonly next: string;
  readonly firstOfText: string;
  readonly nextOfText: string;
};
const knownKeys = new Map<string, SpelledKey>();

/** Plain keys come again and again, so some are remembered; when there are too many, it begins anew. */
export function spelledKey(name: string): SpelledKey | null {
  const known = knownKeys.get(name);
  if (known !== undefined) return known;
  const text = spelledText(name);
  if (text === null) return null;
  const key = { first: `{${text}:`, next: `,${text}:`, firstOfText: `{${text}:"`, nextOfText: `,${text}:"` };
  if (name.length > KNOWN_KEY_LENGTH_MAX || TO_ESCAPE.test(name)) return key;
  if (knownKeys.size >= KNOWN_KEYS_MAX) knownKeys.clear();
  knownKeys.set(name, key);
  return key;
}

/** Throws what is wrong with the value, the first of its faults in the order of the text. */
function check(value: unknown, path: string, depth: number): void {
  if (depth > DEPTH_MAX) throw badInput(path, "…", `at most ${DEPTH_MAX} levels deep, and no cycle`);
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw badInput(path, value, "well-formed text");
      return;
    case "number":
      if (!Number.isFinite(value)) throw badInput(path, value, "a finite number");
      return;
    case "boolean":
      return;
    case "object":
      if (value === null) return;
      // By index, which sees the holes of a sparse list.
      if (!Array.isArray(value)) checkObject(value, path, depth);
      else for (let index = 0; index < value.length; index++) check(value[index], `${path}[${index}]`, depth + 1);
      return;
    default:
      throw badInput(path, value, "JSON: text, a number, true, false, null, a list or an object");
  }
}

/** A key may be as long as a whole body, and what refuses it is not to be. */
const shownKey = (key: string): string =>
  key.length <= KEY_SHOWN_MAX ? key : `${key.slice(0, KEY_SHOWN_MAX).toWellFormed()}…`;

function checkObject(value: object, path: string, depth: number): void {
  if (!isPlainObject(value)) throw badInput(path, value, "plain JSON (text for dates, base64 for bytes)");
  for (const key of sorted(Object.keys(value))) {
    const item = (value as Record<string, unknown>)[key];
    const place = path === "" ? shownKey(key) : `${path}.${shownKey(key)}`;
    if (!key.isWellFormed()) throw badInput(place.toWellFormed(), key, "a key of well-formed text");
    if (item !== undefined) check(item, place, depth + 1);
  }
}
