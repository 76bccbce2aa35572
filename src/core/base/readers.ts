/**
 * How unknown values become known ones.
 *
 * A reader takes a value nobody vouches for and the path at which it stood, and either gives it back
 * in its one right form or says, as a refusal, what it should have been. Readers are put together
 * into sections, so that a whole config or a whole task body is read in one pass, and the path in the
 * refusal is the one the caller wrote.
 */
import { isPlainObject } from "./plain-object.ts";
import { badField, type Refusal } from "./refusal.ts";
import { fail, ok, type Result } from "./result.ts";
import { unlessUnreadable } from "./unreadable.ts";

export type Reader<Value> = (value: unknown, field: string) => Result<Value, Refusal>;

/** Steps of a path: in a URL such a name means another path. */
const STEPS: readonly string[] = [".", ".."];
const NO_NAMES = new Set(["", "None", "none", "null", "undefined", "NaN", ...STEPS]);
/** By the code of a letter: whether one of them begins with it. */
const BEGINS_ONE: readonly boolean[] = Array.from({ length: 128 }, (_, code) =>
  [...NO_NAMES].some((name) => name.charCodeAt(0) === code),
);
const BLANK = 32;
const DELETE = 127;
const ID_PATTERN = /^[^\s\p{Cc}]+$/u;
const SPAN_UNITS: Units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZE_UNITS: Units = { B: 1, kB: 1000, KiB: 1024, MB: 1e6, MiB: 1_048_576, GB: 1e9, GiB: 1_073_741_824 };
export const SIZE_PATTERN: string = patternOf(SIZE_UNITS);
/** The longest span anything may last: a thousand years, far below where doubles lose whole milliseconds. */
export const SPAN_MS_MAX = 31_556_952_000_000;

/** Whether it is a plain object: no list, and nothing of a class, such as a map. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  try {
    return isPlainObject(value) && !Array.isArray(value);
  } catch {
    // A proxy that was revoked, or that tells nobody what it is, is nothing to read.
    return false;
  }
}

export function whole(min: number, max: number = Number.MAX_SAFE_INTEGER): Reader<number> {
  const expected = `a whole number from ${min} to ${max}`;
  return (value, field) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max
      ? ok(value === 0 ? 0 : value)
      : fail(badField(field, value, expected));
}

/** A finite number in [min, max], or, with `above`, strictly greater than min. */
export function finite(min: number, max: number, above: boolean = false): Reader<number> {
  const expected = above ? `a number above ${min} and at most ${max}` : `a number from ${min} to ${max}`;
  return (value, field) =>
    typeof value === "number" && Number.isFinite(value) && (above ? value > min : value >= min) && value <= max
      ? ok(value === 0 ? 0 : value)
      : fail(badField(field, value, expected));
}

type Units = Readonly<Record<string, number>>;

function patternOf(units: Units): string {
  return `^([0-9]{1,15})(${Object.keys(units).join("|")})$`;
}

/** Whole numbers from min to max, or text: a count and a unit. */
function measured(units: Units, min: number, max: number, expected: string): Reader<number> {
  const pattern = new RegExp(patternOf(units));
  return (value, field) => {
    let amount: unknown = value;
    if (typeof value === "string") {
      const [, count = "", unit = ""] = pattern.exec(value) ?? [];
      amount = Number(count) * (units[unit] ?? Number.NaN);
    }
    return typeof amount === "number" && Number.isSafeInteger(amount) && amount >= min && amount <= max
      ? ok(amount)
      : fail(badField(field, value, expected));
  };
}

/** A span: whole milliseconds, or text such as `250ms`, `30s`, `5m`, `24h`, `30d`. */
export const span = (minMs: number, maxMs: number = SPAN_MS_MAX): Reader<number> =>
  measured(
    SPAN_UNITS,
    minMs,
    maxMs,
    `a span ${maxMs === SPAN_MS_MAX ? `of at least ${minMs}` : `from ${minMs} to ${maxMs}`} ms: whole milliseconds, ` +
      "or text such as 250ms, 30s, 5m, 24h, 30d",
  );

/** A size: whole bytes, or text such as `512KiB`, `1MiB`, `2MB`. */
export const size = (min: number, max: number): Reader<number> =>
  measured(SIZE_UNITS, min, max, `a size from ${min} to ${max} bytes: whole bytes, or text such as 512KiB, 1MiB, 2MB`);

/** A size in the largest binary unit that divides it. */
export function sizeText(bytes: number): string {
  const unit = ["GiB", "MiB", "KiB"].find((name) => bytes % (SIZE_UNITS[name] as number) === 0) ?? "B";
  return `${bytes / (SIZE_UNITS[unit] as number)}${unit}`;
}

export const flag: Reader<boolean> = (value, field) =>
  typeof value === "boolean" ? ok(value) : fail(badField(field, value, "true or false"));

export function oneOf<Name extends string>(...names: readonly Name[]): Reader<Name> {
  return (value, field) => {
    const found = names.find((name) => name === value);
    return found === undefined ? fail(badField(field, value, `one of ${names.join(", ")}`)) : ok(found);
  };
}

export function orNull<Value>(reader: Reader<Value>): Reader<Value | null> {
  return (value, field) => (value === null ? ok(null) : reader(value, field));
}

/** ASCII without blanks and control characters: what nearly every name is, known faster than by a pattern. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code <= BLANK || code >= DELETE) return false;
  }
  return true;
}

/** Asked by the first letter, which few names share with them: a look into the set costs more than all the rest. */
const isNoName = (text: string): boolean =>
  text.length === 0 || (BEGINS_ONE[text.charCodeAt(0)] === true && NO_NAMES.has(text));

/** What a name must be, said to someone who gave this. */
export const nameInWords = (expected: string, given: unknown): string =>
  typeof given === "string" && STEPS.includes(given)
    ? `${expected}; "." and ".." are steps in the path of a URL, so no URL could name it`
    : expected;

/** Text that names something: no blanks or control characters, not a word that means nothing, and no step of a path. */
export const isName = (value: unknown, lengthMax: number): value is string =>
  typeof value === "string" &&
  value.length <= lengthMax &&
  !isNoName(value) &&
  (isPlain(value) || (ID_PATTERN.test(value) && value.isWellFormed()));

export function name(lengthMax: number = 256): Reader<string> {
  const expected = `a name of 1 to ${lengthMax} characters without blanks, and not "None" or "null"`;
  return (value, field) =>
    isName(value, lengthMax) ? ok(value) : fail(badField(field, value, nameInWords(expected, value)));
}

export const isText = (value: unknown, lengthMin: number, lengthMax: number): value is string =>
  typeof value === "string" && value.length >= lengthMin && value.length <= lengthMax && value.isWellFormed();

/** A whole number from 0 on, which a double holds exactly. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** A SHA-256 as 64 hex digits in lower case. */
export const SHA256_PATTERN = "^[0-9a-f]{64}$";
const SHA256 = new RegExp(SHA256_PATTERN);
export const isSha256 = (value: unknown): value is string => typeof value === "string" && SHA256.test(value);

export function text(lengthMin: number, lengthMax: number): Reader<string> {
  return (value, field) =>
    isText(value, lengthMin, lengthMax)
      ? ok(value)
      : fail(badField(field, value, `text of ${lengthMin} to ${lengthMax} characters`));
}

/** A list without repeats, sorted, so that equal sets are equal values. */
export function setOf(reader: Reader<string>, countMax: number): Reader<readonly string[]> {
  return (value, field) => {
    if (!Array.isArray(value) || value.length > countMax) {
      return fail(badField(field, value, `a list of at most ${countMax} names`));
    }
    const found = new Set<string>();
    for (const [index, item] of value.entries()) {
      const read = reader(item, `${field}[${index}]`);
      if (!read.ok) return read;
      found.add(read.value);
    }
    return ok([...found].sort());
  };
}

export type Fields<Shape> = { readonly [Key in keyof Shape]: Reader<Shape[Key]> };

const KEYS_SHOWN_MAX = 3;

/** A section in words: what it may hold, so that a caller who gave something else sees what is meant. */
export function sectionInWords(keys: readonly string[]): string {
  if (keys.length === 0) return "an object";
  const shown = keys.slice(0, KEYS_SHOWN_MAX).map((key) => `${key}: …`);
  return `an object such as { ${shown.join(", ")}${keys.length > KEYS_SHOWN_MAX ? ", …" : ""} }`;
}

/** The same for a section whose keys are names that people choose. */
export const NAMED_IN_WORDS = "an object of objects by name, such as { NAME: { … } }";

/**
 * An object read over a base: fields that are absent keep the base's value, unknown fields are
 * refused by name, and so is what throws when it is read.
 */
export function readSection<Shape extends object>(
  fields: Fields<Shape>,
  base: Shape,
  value: unknown,
  path: string,
): Result<Shape, Refusal> {
  if (!isRecord(value))
    return fail(badField(path === "" ? "(body)" : path, value, sectionInWords(Object.keys(fields))));
  return unlessUnreadable(value, path, () => readRecord(fields, base, value, path));
}

function readRecord<Shape extends object>(
  fields: Fields<Shape>,
  base: Shape,
  value: Readonly<Record<string, unknown>>,
  path: string,
): Result<Shape, Refusal> {
  const read: Partial<Shape> = { ...base };
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(fields, key)) {
      return fail({ type: "unknown-field", field: join(path, key), known: Object.keys(fields) });
    }
    if (value[key] === undefined) continue;
    const one = fields[key as keyof Shape](value[key], join(path, key));
    if (!one.ok) return one;
    read[key as keyof Shape] = one.value;
  }
  return ok(read as Shape);
}

export const join = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);

export function section<Shape extends object>(fields: Fields<Shape>, base: Shape): Reader<Shape> {
  return (value, field) => readSection(fields, base, value, field);
}
