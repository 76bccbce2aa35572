/**
 * How a shape on the wire is written down: once, as a TypeBox schema that knows its own words.
 *
 * A schema says three things from one place: what is let in (TypeBox compiles it), what it should have been when it is
 * not (`expected`, in plain words), and what people read in the OpenAPI document. The limits are those of the core's
 * readers: where JSON Schema cannot say exactly what a reader means (a name counts its length in UTF-16 and is not
 * "None"), the keywords say nearly that for people and the reader itself decides.
 *
 * The TypeScript type of a shape is written out beside its schema, because people read it and declarations are built
 * from it. `Fields` makes the compiler compare the two key by key.
 */

import { type TProperties, type TSchema, type TUnsafe, Type } from "typebox";
import * as core from "../../core/base/index.ts";
import { INSTANT_MAX, instantTextFault } from "../../core/base/index.ts";
import { EXAMPLES } from "./examples.ts";

/** A schema of values of this type; TypeBox's `Static` gives the type back. */
export type Schema<Value = unknown> = TUnsafe<Value>;
export type OptionalSchema<Value> = Schema<Value> & { readonly "~optional": true };

type IsOptional<Shape, Key extends keyof Shape> = Record<never, never> extends Pick<Shape, Key> ? true : false;
/** One schema for each field of a shape, marked `optional` exactly where the field is. */
export type Fields<Shape> = {
  readonly [Key in keyof Shape]-?: IsOptional<Shape, Key> extends true
    ? OptionalSchema<Exclude<Shape[Key], undefined>>
    : Schema<Shape[Key]>;
};

/** What a schema carries beside JSON Schema's own keywords. None of it is published. */
export type Notes = {
  /** What would be right, as the end of the sentence "x is …, and must be …". */
  readonly expected?: string;
  /** The name under which people find it in the OpenAPI document. */
  readonly component?: string;
  /** What the document shows where the check is deliberately looser, as for the items of a batch. */
  readonly shownAs?: Schema;
  /** Its value is never repeated in an error. */
  readonly secret?: boolean;
  /** The unit and form in which a file or a body gives it, for those who read schemas. */
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
};
export const PRIVATE_NOTES: readonly string[] = ["expected", "component", "shownAs", "secret"];

const SAFE_MAX = Number.MAX_SAFE_INTEGER;
/** For people and generators; the core's reader also refuses rarer white space and control characters. */
export const NAME_PATTERN = "^[^ \t\r\n]+$";

export const notesOf = (schema: TSchema): Notes => schema as Notes;

/** The same schema with further notes. TypeBox keeps what it needs out of sight, so a spread would lose it. */
export function noted<Kind extends TSchema>(schema: Kind, notes: Notes): Kind {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)) as Kind;
  return Object.assign(copy, notes);
}
export const described = <Kind extends TSchema>(schema: Kind, description: string, more: Notes = {}): Kind =>
  noted(schema, { ...more, description });
/** A shape with a name of its own, and with the example for it if there is one. */
export function component<Kind extends TSchema>(name: string, schema: Kind): Kind {
  const examples = EXAMPLES[name];
  return noted(schema, { component: name, ...(examples === undefined ? {} : { examples }) });
}

export const optional = <Value>(schema: Schema<Value>): OptionalSchema<Value> =>
  Type.Optional(schema) as unknown as OptionalSchema<Value>;

/** What a reader of the core lets through. */
const lets =
  (reader: core.Reader<unknown>): ((value: unknown) => boolean) =>
  (value) =>
    reader(value, "").ok;

const typed = <Value>(schema: TSchema): Schema<Value> => schema as Schema<Value>;

/** The core's own words for what a reader expects. */
export function expectedBy(reader: core.Reader<unknown>): string {
  const read = reader(undefined, "");
  return read.ok || read.failure.type !== "bad-field" ? "" : read.failure.expected;
}

export function name(lengthMax: number = 256): Schema<string> {
  const reader = core.name(lengthMax);
  const options = { minLength: 1, maxLength: lengthMax, pattern: NAME_PATTERN, expected: expectedBy(reader) };
  return typed(Type.Refine(Type.String(options), lets(reader)));
}

export function text(lengthMin: number, lengthMax: number): Schema<string> {
  const reader = core.text(lengthMin, lengthMax);
  const options = { minLength: lengthMin, maxLength: lengthMax, expected: expectedBy(reader) };
  return typed(Type.Refine(Type.String(options), lets(reader)));
}

export function whole(min: number, max: number = SAFE_MAX): Schema<number> {
  return typed(Type.Integer({ minimum: min, maximum: max, expected: expectedBy(core.whole(min, max)) }));
}

export function finite(min: number, max: number, above: boolean = false): Schema<number> {
  const lower = above ? { exclusiveMinimum: min } : { minimum: min };
  return typed(Type.Number({ ...lower, maximum: max, expected: expectedBy(core.finite(min, max, above)) }));
}

export const flag = (): Schema<boolean> => typed(Type.Boolean({ expected: "true or false" }));
export const onlyTrue = (): Schema<true> => typed(Type.Unsafe({ type: "boolean", const: true, expected: "true" }));

export const oneOf = <Name extends string>(...names: readonly Name[]): Schema<Name> =>
  typed(Type.Unsafe({ type: "string", enum: [...names], expected: expectedBy(core.oneOf(...names)) }));

/** An instant as RFC 3339 text. Numbers are not taken: seconds and milliseconds look alike. */
export const instant = (): Schema<string> =>
  typed(
    Type.Refine(
      Type.Unsafe<string>({
        type: "string",
        format: "date-time",
        examples: ["2026-01-31T12:00:00Z"],
        expected: "an instant as RFC 3339 text, such as 2026-01-31T12:00:00Z",
      }),
      isInstant,
    ),
  );

function isInstant(value: string): boolean {
  if (instantTextFault(value) !== null) return false;
  const at = Date.parse(value);
  return at >= 0 && at <= INSTANT_MAX;
}

/** An absolute http or https URL without credentials in it. */
export const webUrl = (): Schema<string> =>
  typed(
    Type.Refine(
      Type.String({ minLength: 1, maxLength: 2048, expected: "an http or https URL without a user or password in it" }),
      isWebUrl,
    ),
  );

export function isWebUrl(value: string): boolean {
  if (value.length > 2048 || !value.isWellFormed()) return false;
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

export const span = (minMs: number): Schema<number | string> => {
  const reader = core.span(minMs);
  const forms = [Type.Integer({ minimum: minMs, maximum: core.SPAN_MS_MAX }), Type.String({ pattern: SPAN_PATTERN })];
  return typed(Type.Refine(Type.Union(forms, { expected: expectedBy(reader) }), lets(reader)));
};
/** How a span with its unit is written. */
export const SPAN_PATTERN = "^[0-9]{1,15}(ms|s|m|h|d)$";

export function nullable<Value>(schema: Schema<Value>): Schema<Value | null> {
  return typed(Type.Union([schema, Type.Null()], { expected: `${notesOf(schema).expected ?? "a value"}, or null` }));
}

export function list<Item>(
  item: Schema<Item>,
  { min = 0, max }: { readonly min?: number; readonly max?: number } = {},
): Schema<readonly Item[]> {
  const most = max === undefined ? "" : ` and at most ${max}`;
  const expected = min === 0 && max !== undefined ? `a list of at most ${max}` : `a list of at least ${min}${most}`;
  const limits = { ...(min === 0 ? {} : { minItems: min }), ...(max === undefined ? {} : { maxItems: max }) };
  return typed(Type.Array(item, { ...limits, expected }));
}

/** Names given to values; what the names may be is the core's `name`. */
export const table = <Value>(value: Schema<Value>): Schema<Readonly<Record<string, Value>>> =>
  typed(
    Type.Unsafe({
      type: "object",
      additionalProperties: value,
      propertyNames: name(),
      expected: "an object of values by name",
    }),
  );

/** Any JSON. It is not looked into; how deep it may be is for the engine to say. */
export const anything = (): Schema<unknown> => typed(Type.Unsafe({ expected: "JSON" }));
export const anyObject = (): Schema<Readonly<Record<string, unknown>>> =>
  typed(Type.Unsafe({ type: "object", additionalProperties: true, expected: "an object" }));

/** What somebody sends: a field nobody knows is refused, since it is nearly always a misspelt one. */
export const object = <Shape extends object>(fields: Fields<Shape>, notes: Notes = {}): Schema<Shape> =>
  typed(Type.Object(fields as TProperties, { additionalProperties: false, expected: "an object", ...notes }));

/** What Drover answers: open, since an answer may gain fields. */
export const answer = <Shape extends object>(fields: Fields<Shape>, notes: Notes = {}): Schema<Shape> =>
  typed(Type.Object(fields as TProperties, { expected: "an object", ...notes }));

export const either = <First, Second>(
  first: Schema<First>,
  second: Schema<Second>,
  expected: string,
): Schema<First | Second> => typed(Type.Union([first, second], { expected }));

export const refined = <Value>(
  schema: Schema<Value>,
  check: (value: Value) => boolean,
  expected: string,
): Schema<Value> => noted(typed<Value>(Type.Refine(schema, (value) => check(value as Value))), { expected });
