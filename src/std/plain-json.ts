/**
 * Whether a value is what JSON says it is, and if not, where and why.
 *
 * `JSON.stringify` drops functions, makes null of NaN and text of dates, and fails at a cycle without saying where.
 * Here all of these are faults, named by their path, by the same rules as in the engine's own process. A key whose
 * value is undefined is left out, as JSON does; in a list there is no such thing as leaving out.
 */
import { isPlainObject, THROWS } from "../core/base/plain-object.ts";

/** The largest result of a task, in bytes of JSON. */
export const RESULT_BYTES_MAX: number = 256 * 1024;
export type JsonFault = { readonly field: string; readonly value: string; readonly expected: string };

/** The fields that have a value: an optional field that has none is absent, not undefined. */
export const present = <const Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: NonNullable<Fields[Key]> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as Fields;

/** A body that is JSON already: a client sends it as it is. To the compiler it can be the body itself. */
export class JsonText<Body> {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  asBody(): Body {
    return this as unknown as Body;
  }

  /** For whoever stands in the place of the client. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** How deep a task or a result may be nested. */
const DEPTH_MAX = 64;
const HALF = "holds half of a character (a lone surrogate)";

/** The first fault in the order of the text; null if there is none. `depth` is below 0 for what only wraps tasks. */
export function jsonFault(value: unknown, path: string, depth: number = 0): JsonFault | null {
  return isSound(value, depth) ? null : faultIn(value, { path, depth, above: null });
}

/** Whether it has no fault, without a thought for where one would be: nearly nothing has. A cycle is too deep. */
function isSound(value: unknown, depth: number): boolean {
  if (depth > DEPTH_MAX) return false;
  switch (typeof value) {
    case "string":
      return value.isWellFormed();
    case "number":
      return Number.isFinite(value);
    case "boolean":
      return true;
    case "object":
      return value === null || isSoundObject(value, depth + 1);
    default:
      return false;
  }
}

function isSoundObject(value: object, depth: number): boolean {
  const keys = keysOf(value);
  if (typeof keys === "string") return keys === "list" && isSoundList(value as readonly unknown[], depth);
  try {
    for (const key of keys) {
      const item = (value as Readonly<Record<string, unknown>>)[key];
      if (!key.isWellFormed() || (item !== undefined && !isSound(item, depth))) return false;
    }
    return true;
  } catch {
    return false;
  }
}

function isSoundList(list: readonly unknown[], depth: number): boolean {
  try {
    // By number, since its holes must be seen too.
    for (let index = 0; index < list.length; index++) if (!isSound(list[index], depth)) return false;
    return true;
  } catch {
    return false;
  }
}

/** Where a value stands, and what holds it, up to the outermost. */
type Place = { readonly path: string; readonly depth: number; readonly above: Holder | null };
type Holder = { readonly value: object; readonly place: Place };

function faultIn(value: unknown, place: Place): JsonFault | null {
  if (place.depth > DEPTH_MAX) return fault(place.path, "nested too deep", `at most ${DEPTH_MAX} levels deep`);
  switch (typeof value) {
    case "string":
      return value.isWellFormed() ? null : fault(place.path, `text that ${HALF}`, "well-formed text");
    case "number":
      return Number.isFinite(value) ? null : fault(place.path, String(value), "a finite number");
    case "boolean":
      return null;
    case "object":
      return value === null ? null : faultInObject(value, place);
    default:
      return fault(place.path, kindInWords(value), "JSON");
  }
}

function faultInObject(value: object, place: Place): JsonFault | null {
  const { path } = place;
  const round = cycleOf(value, place);
  if (round !== null) return fault(path, `circular (it is ${round} again)`, "JSON without a cycle");
  const keys = keysOf(value);
  if (keys === "throws") return fault(path, THROWS, "plain data");
  if (keys === "not plain") return fault(path, kindInWords(value), "plain JSON (text for dates, base64 for bytes)");
  const holder: Holder = { value, place };
  // A list by number, since its holes must be seen too.
  const count = keys === "list" ? (value as readonly unknown[]).length : keys.length;
  for (let index = 0; index < count; index++) {
    const key = keys === "list" ? index : (keys[index] as string);
    const found = faultAt(value, key, holder);
    if (found !== null) return found;
  }
  return null;
}

function faultAt(value: object, key: string | number, above: Holder): JsonFault | null {
  const { path, depth } = above.place;
  if (typeof key === "string" && !key.isWellFormed())
    return fault(path, `an object with a key that ${HALF}`, "an object whose keys are well-formed text");
  const inner = typeof key === "number" ? `${path}[${key}]` : `${path}${path === "" ? "" : "."}${key}`;
  let item: unknown;
  try {
    item = (value as Readonly<Record<string | number, unknown>>)[key];
  } catch {
    return fault(inner, THROWS, "plain data");
  }
  if (item === undefined && typeof key === "string") return null;
  return faultIn(item, { path: inner, depth: depth + 1, above });
}

function keysOf(value: object): readonly string[] | "list" | "not plain" | "throws" {
  try {
    if (Array.isArray(value)) return "list";
    return isPlainObject(value) ? Object.keys(value) : "not plain";
  } catch {
    return "throws";
  }
}

/** The path at which this very object stands further up; null if it does not. */
function cycleOf(value: object, { above }: Place): string | null {
  for (let holder = above; holder !== null; holder = holder.place.above)
    if (holder.value === value) return holder.place.path === "" ? "the body" : holder.place.path;
  return null;
}

const fault = (path: string, value: string, expected: string): JsonFault => ({
  field: path === "" ? "(body)" : path,
  value,
  expected,
});

/** What a value is, in words for the caller that handed over the wrong one: its kind, never what it holds. */
export function kindInWords(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "string") return "text";
  if (typeof value === "bigint") return "a BigInt";
  if (typeof value === "number") return Number.isFinite(value) ? "a number" : String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  try {
    if (Array.isArray(value)) return "a list";
    return isPlainObject(value) ? "an object" : classInWords(value);
  } catch {
    return THROWS;
  }
}

const NAME_LENGTH_MAX = 80;

function classInWords(value: object): string {
  const name: unknown = value.constructor?.name;
  if (typeof name !== "string" || name === "" || name === "Object") return "an object of a class";
  return `${/^[AEIO]/.test(name) ? "an" : "a"} ${name.slice(0, NAME_LENGTH_MAX)}`;
}
