/**
 * The only validator of the wire: in goes an unknown value, out comes it typed, or one refusal.
 *
 * A schema's check says yes or no. Only when it says no is the value walked a second time, along the
 * schema, down to the first thing that is wrong: the field by its path, what stood there (short), and what would be
 * right in plain words. An unknown field is named with those that are known. Fields are taken in the order in which
 * they were written, so the answer is the same one a person finds reading from the top.
 *
 * Nothing here throws, whatever it is given.
 */
import {
  badField,
  brokenness,
  fail,
  instantInWords,
  isRecord,
  join,
  nameInWords,
  nearest,
  ok,
  type Refusal,
  type Result,
  unreadable,
} from "../../core/base/index.ts";
import { type Check, NAME_PATTERN, notesOf, type Schema } from "./schema.ts";

const KEY_SHOWN_MAX = 80;
const ROOT = "(body)";
const PLAIN = "plain JSON";

/** The keywords along which a value is walked. */
type Walked = {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly propertyNames?: Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
};

export const checkOf = (schema: Schema): Check => schema["~check"];

/** The value as what the schema says, or the first thing that is wrong with it. `at` is the path it stood at. */
export function readShape<Value>(schema: Schema<Value>, value: unknown, at: string = ""): Result<Value, Refusal> {
  try {
    return checkOf(schema)(value) ? ok(value as Value) : fail(refusalOf(schema, value, at));
  } catch {
    // Only what is no JSON at all can get here, such as an object whose getter throws.
    const refusal = unreadable(value, at);
    return fail(refusal ?? { type: "bad-field", field: at === "" ? ROOT : at, value: "unreadable", expected: PLAIN });
  }
}

/** A body that its schema has let through. The engine takes it as it is. */
export class Checked<Body> {
  readonly body: Body;

  constructor(body: Body) {
    this.body = body;
  }
}
/** Says that a body was checked. To the compiler it is still the body, so it can be given wherever one is taken. */
export const checked = <Body>(body: Body): Body => new Checked(body) as unknown as Body;

function refusalOf(schema: Schema, value: unknown, at: string): Refusal {
  const walked = schema as Walked;
  if (walked.anyOf !== undefined) {
    const fitting = walked.anyOf.filter((one) => isOfKind(one as Walked, value));
    const [only] = fitting;
    return fitting.length === 1 && only !== undefined && !checkOf(only)(value)
      ? refusalOf(only, value, at)
      : badLeaf(schema, value, at);
  }
  if (walked.type === "object" && isRecord(value))
    return objectRefusal(schema, value, at) ?? badLeaf(schema, value, at);
  if (walked.type === "array" && Array.isArray(value))
    return listRefusal(walked, value, at) ?? badLeaf(schema, value, at);
  return badLeaf(schema, value, at);
}

const isOfKind = ({ type }: Walked, value: unknown): boolean =>
  (type === "object" && isRecord(value)) || (type === "array" && Array.isArray(value));

function objectRefusal(schema: Schema, value: Record<string, unknown>, at: string): Refusal | null {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema as Walked;
  for (const key of Object.keys(value)) {
    const field = join(at, clipped(key));
    const inner = Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    if (inner === false) return { type: "unknown-field", field, known: Object.keys(properties) };
    if (propertyNames !== undefined && !checkOf(propertyNames)(key)) return badLeaf(propertyNames, key, field);
    if (typeof inner !== "object") continue;
    if (value[key] === undefined) continue;
    if (!checkOf(inner)(value[key])) return refusalOf(inner, value[key], field);
  }
  const missing = required.find((key) => !Object.hasOwn(value, key) || value[key] === undefined);
  const wanted = missing === undefined ? undefined : properties[missing];
  return missing === undefined || wanted === undefined ? null : badLeaf(wanted, undefined, join(at, missing));
}

function listRefusal({ items, minItems = 0, maxItems }: Walked, value: readonly unknown[], at: string): Refusal | null {
  if (value.length < minItems || (maxItems !== undefined && value.length > maxItems) || items === undefined)
    return null;
  const index = Array.from(value).findIndex((item) => !checkOf(items)(item));
  return index < 0 ? null : refusalOf(items, value[index], `${at}[${index}]`);
}

function badLeaf(schema: Schema, value: unknown, at: string): Refusal {
  const { expected: said = "of another kind", secret = false } = notesOf(schema);
  const expected = wordsFor(schema, said, value);
  const field = at === "" ? ROOT : at;
  // A value that is absent or null tells nothing.
  if (value !== undefined && value !== null && holdsSecret(schema)) {
    const hidden = `hidden, since it ${secret ? "is" : "may be"} a secret${brokenness(value)}`;
    return { type: "bad-field", field, value: hidden, expected };
  }
  return badField(field, value, expected);
}

/** Whether it is a secret, or has one below: what stands in the place of a section may be what belongs into it. */
function holdsSecret(schema: Schema): boolean {
  const { properties = {}, items, anyOf = [] } = schema as Walked;
  if (notesOf(schema).secret === true) return true;
  return [...Object.values(properties), ...(items === undefined ? [] : [items]), ...anyOf].some(holdsSecret);
}

/** The words of the schema, and what they do not tell of text that looks right. */
function wordsFor(schema: Schema, said: string, value: unknown): string {
  const { format, pattern, anyOf = [], enum: choices = [] } = schema as Walked;
  const meant =
    typeof value === "string"
      ? nearest(
          value,
          choices.filter((one) => typeof one === "string"),
        )
      : null;
  if (meant !== null) return `${said} (did you mean ${meant}?)`;
  if (format === "date-time") return instantInWords(said, value);
  if (pattern === NAME_PATTERN) return nameInWords(said, value);
  return anyOf.reduce<string>((words, one) => wordsFor(one, words, value), said);
}

const clipped = (key: string): string => (key.length <= KEY_SHOWN_MAX ? key : `${key.slice(0, KEY_SHOWN_MAX)}…`);

/** Query parameters as a server finds them: text, or a list of texts where one was given more than once. */
export type RawQuery = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A query is text; numbers, flags and lists (`a,b`, or given twice) become what the schema says they are. */
export function readQuery<Value>(schema: Schema<Value>, query: RawQuery): Result<Value, Refusal> {
  const { properties = {} } = schema as Walked;
  const read: [string, unknown][] = [];
  for (const key of Object.keys(query)) {
    const inner = Object.hasOwn(properties, key) ? (properties[key] as Walked) : undefined;
    read.push([key, inner === undefined ? query[key] : fromText(inner, query[key])]);
  }
  return readShape(schema, Object.fromEntries(read));
}

function fromText({ type }: Walked, given: string | readonly string[] | undefined): unknown {
  if (type === "array") return given === undefined ? undefined : [given].flat().flatMap((part) => part.split(","));
  if (typeof given !== "string") return given;
  if (type === "integer") return /^-?\d{1,16}$/.test(given) ? Number(given) : given;
  if (type === "boolean") return given === "true" ? true : given === "false" ? false : given;
  return given;
}
