/**
 * How a shape on the wire is written down: once, as a JSON Schema that knows its own words and decides for itself.
 *
 * A schema says three things at once: what is let in (`check`, out of sight), what it should have been when it
 * is not (`expected`, in plain words), and what people read in the OpenAPI document. The limits are those of the core's
 * readers: where JSON Schema cannot say exactly what a reader means (a name counts its length in UTF-16 and is not
 * "None"), the keywords say nearly that for people and the reader itself decides.
 *
 * The TypeScript type of a shape is written from its schema, into generated/. `Fields` makes the compiler compare the
 * two key by key.
 */
import * as core from "../../core/base/index.ts";
import { EXAMPLES } from "./examples.ts";
import { FIELD_WORDS } from "./field-words.ts";

export type Check = (value: unknown) => boolean;
/** A schema of values of this type. Only what is not hidden behind a `~` is published. */
export type Schema<Value = unknown> = {
  readonly "~check": Check;
  readonly "~optional"?: true;
  readonly "~value"?: Value;
};
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

export const notesOf = (schema: Schema): Notes => schema as Notes;

/** The same schema with further notes. A spread would lose what is out of sight. */
export function noted<Kind extends Schema>(schema: Kind, notes: Notes): Kind {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)) as Kind;
  return Object.assign(copy, notes);
}
export const described = <Kind extends Schema>(schema: Kind, description: string, more: Notes = {}): Kind =>
  noted(schema, { ...more, description });
/** A shape with a name of its own, and with the example for it if there is one. */
export function component<Kind extends Schema>(name: string, schema: Kind): Kind {
  const examples = EXAMPLES[name];
  return noted(schema, { component: name, ...(examples === undefined ? {} : { examples }) });
}

/** A field that may be absent, and perhaps its sentence. */
export const optional = <Value>(
  schema: Schema<Value>,
  description?: string,
  more: Notes = {},
): OptionalSchema<Value> => {
  const copy = noted(schema, description === undefined ? more : { ...more, description });
  return Object.defineProperty(copy, "~optional", { value: true }) as OptionalSchema<Value>;
};

function schemaOf<Value>(keywords: object, check: Check): Schema<Value> {
  return Object.defineProperty(keywords, "~check", { value: check, configurable: true }) as Schema<Value>;
}

/** What a reader of the core lets through. */
const lets =
  (reader: core.Reader<unknown>): Check =>
  (value) =>
    reader(value, "").ok;

/** The core's own words for what a reader expects. */
export function expectedBy(reader: core.Reader<unknown>): string {
  const read = reader(undefined, "");
  return read.ok || read.failure.type !== "bad-field" ? "" : read.failure.expected;
}

export function name(lengthMax: number = 256): Schema<string> {
  const limits = { minLength: 1, maxLength: lengthMax, pattern: NAME_PATTERN };
  const keywords = { type: "string", ...limits, expected: expectedBy(core.name(lengthMax)) };
  return schemaOf(keywords, (value) => core.isName(value, lengthMax));
}

export function text(lengthMin: number, lengthMax: number): Schema<string> {
  const limits = { minLength: lengthMin, maxLength: lengthMax };
  const keywords = { type: "string", ...limits, expected: expectedBy(core.text(lengthMin, lengthMax)) };
  return schemaOf(keywords, (value) => core.isText(value, lengthMin, lengthMax));
}

/** Text of this form. */
export const matching = (pattern: string, expected: string): Schema<string> => {
  const form = new RegExp(pattern);
  return schemaOf({ type: "string", pattern, expected }, (value) => typeof value === "string" && form.test(value));
};

export function whole(min: number, max: number = SAFE_MAX): Schema<number> {
  const keywords = { type: "integer", minimum: min, maximum: max, expected: expectedBy(core.whole(min, max)) };
  return schemaOf(
    keywords,
    (value) => Number.isSafeInteger(value) && min <= (value as number) && (value as number) <= max,
  );
}

export function finite(min: number, max: number, above: boolean = false): Schema<number> {
  const reader = core.finite(min, max, above);
  const lower = above ? { exclusiveMinimum: min } : { minimum: min };
  return schemaOf({ type: "number", ...lower, maximum: max, expected: expectedBy(reader) }, lets(reader));
}

export const flag = (): Schema<boolean> =>
  schemaOf({ type: "boolean", expected: "true or false" }, (value) => typeof value === "boolean");
export const exactly = <Value extends true | number>(value: Value): Schema<Value> =>
  schemaOf(
    { type: value === true ? "boolean" : "integer", const: value, expected: String(value) },
    (given) => given === value,
  );
export const anyNumber = (): Schema<number> => schemaOf({ type: "number", expected: "a number" }, Number.isFinite);

export const oneOf = <Name extends string>(...names: readonly Name[]): Schema<Name> =>
  schemaOf({ type: "string", enum: [...names], expected: expectedBy(core.oneOf(...names)) }, (value) =>
    names.includes(value as Name),
  );

/** An instant as RFC 3339 text. Numbers are not taken: seconds and milliseconds look alike. */
export const instant = (): Schema<string> =>
  schemaOf(
    {
      type: "string",
      format: "date-time",
      examples: ["2026-01-31T12:00:00Z"],
      expected: "an instant as RFC 3339 text, such as 2026-01-31T12:00:00Z",
    },
    isInstant,
  );

function isInstant(value: unknown): boolean {
  if (typeof value !== "string" || core.instantTextFault(value) !== null) return false;
  const at = Date.parse(value);
  return at >= 0 && at <= core.INSTANT_MAX;
}

/** An absolute http or https URL without credentials in it. */
export const webUrl = (): Schema<string> =>
  schemaOf(
    {
      type: "string",
      minLength: 1,
      maxLength: 2048,
      expected: "an http or https URL without a user or password in it",
    },
    isWebUrl,
  );

export function isWebUrl(value: unknown): boolean {
  if (typeof value !== "string" || value.length > 2048 || !value.isWellFormed()) return false;
  const url = URL.parse(value);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

/** One of a host and a port alone: what is asked there has the whole path for itself. */
export const webOrigin = (): Schema<string> =>
  schemaOf(
    {
      type: "string",
      minLength: 1,
      maxLength: 2048,
      expected: "an http or https URL of a host and a port alone, without a path, such as http://a.example:4747",
    },
    (value) => isWebUrl(value) && new URL(value as string).href === `${new URL(value as string).origin}/`,
  );

/** A number of one unit, or text with its unit; the reader knows both. */
function measure(reader: core.Reader<number>, min: number, max: number, pattern: string): Schema<number | string> {
  const check = lets(reader);
  const forms = [
    schemaOf({ type: "integer", minimum: min, maximum: max }, check),
    schemaOf({ type: "string", pattern }, check),
  ];
  return schemaOf({ anyOf: forms, expected: expectedBy(reader) }, check);
}

/** How a span with its unit is written. */
export const SPAN_PATTERN = "^[0-9]{1,15}(ms|s|m|h|d)$";
export const span = (minMs: number, maxMs: number = core.SPAN_MS_MAX): Schema<number | string> =>
  measure(core.span(minMs, maxMs), minMs, maxMs, SPAN_PATTERN);
export const size = (min: number, max: number): Schema<number | string> =>
  measure(core.size(min, max), min, max, core.SIZE_PATTERN);

/** A value that is right by one of these. */
export function anyOf<Value>(schemas: readonly Schema<Value>[], expected: string): Schema<Value> {
  const checks = schemas.map((schema) => schema["~check"]);
  return schemaOf({ anyOf: schemas, expected }, (value) => checks.some((check) => check(value)));
}
export const either = <First, Second>(
  first: Schema<First>,
  second: Schema<Second>,
  expected: string,
): Schema<First | Second> => anyOf<First | Second>([first, second], expected);

const NULL: Schema<null> = schemaOf({ type: "null" }, (value) => value === null);
export const nullable = <Value>(schema: Schema<Value>): Schema<Value | null> =>
  either(schema, NULL, `${notesOf(schema).expected ?? "a value"}, or null`);

export function list<Item>(
  item: Schema<Item>,
  { min = 0, max }: { readonly min?: number; readonly max?: number } = {},
): Schema<readonly Item[]> {
  const most = max === undefined ? "" : ` and at most ${max}`;
  const expected = min === 0 && max !== undefined ? `a list of at most ${max}` : `a list of at least ${min}${most}`;
  const limits = { ...(min === 0 ? {} : { minItems: min }), ...(max === undefined ? {} : { maxItems: max }) };
  const { "~check": isItem } = item;
  return schemaOf({ type: "array", items: item, ...limits, expected }, (value) => {
    if (!Array.isArray(value) || value.length < min || (max !== undefined && value.length > max)) return false;
    for (let index = 0; index < value.length; index++) if (!isItem(value[index])) return false;
    return true;
  });
}

type ObjectKeywords = {
  readonly properties?: Readonly<Record<string, Schema>>;
  /** What other fields are; true: anything. */
  readonly additionalProperties?: Schema | boolean;
  /** What their names may be. */
  readonly propertyNames?: Schema;
};

/** A field that has no sentence of its own has that of its name. */
function inWords(key: string, field: Schema): Schema {
  const { [key]: words } = FIELD_WORDS;
  return notesOf(field).description !== undefined || words === undefined ? field : described(field, words);
}

const fieldOf = (schema: Schema): { readonly check: Check; readonly isRequired: boolean } => ({
  check: schema["~check"],
  isRequired: schema["~optional"] !== true,
});

/** An object, by its keywords. A field that is undefined is as good as absent. */
export function objectOf<Shape>(
  { properties: given, additionalProperties, propertyNames }: ObjectKeywords,
  notes: Notes = {},
): Schema<Shape> {
  const schemas = Object.entries(given ?? {}).map(([key, field]) => [key, inWords(key, field)] as const);
  const properties = given && Object.fromEntries(schemas);
  const fields = new Map(schemas.map(([key, schema]) => [key, fieldOf(schema)]));
  const required = [...fields].filter(([, { isRequired }]) => isRequired).map(([key]) => key);
  const others = typeof additionalProperties === "object" ? additionalProperties["~check"] : null;
  const isName = propertyNames?.["~check"];
  const keywords = {
    type: "object",
    ...(required.length === 0 ? {} : { required }),
    ...(properties === undefined ? {} : { properties }),
    ...(additionalProperties === undefined ? {} : { additionalProperties }),
    ...(propertyNames === undefined ? {} : { propertyNames }),
    expected: "an object",
    ...notes,
  };
  return schemaOf(keywords, (value) => {
    if (!core.isRecord(value)) return false;
    let missing = required.length;
    for (const key of Object.keys(value)) {
      if (isName?.(key) === false) return false;
      const field = fields.get(key);
      const isRight = field === undefined ? others : field.check;
      if (isRight === null && additionalProperties === false) return false;
      const inner = value[key];
      if (isRight === null || inner === undefined) continue;
      if (!isRight(inner)) return false;
      if (field?.isRequired === true) missing--;
    }
    return missing === 0;
  });
}

/** What a caller sends: an unknown field is refused, since it is nearly always a misspelt one. */
export const object = <Shape extends object = never>(
  fields: Fields<NoInfer<Shape>>,
  notes: Notes = {},
): Schema<Shape> =>
  objectOf({ properties: fields as Readonly<Record<string, Schema>>, additionalProperties: false }, notes);

/** What Drover answers: open, since an answer may gain fields. */
export const answer = <Shape extends object = never>(
  fields: Fields<NoInfer<Shape>>,
  notes: Notes = {},
): Schema<Shape> => objectOf({ properties: fields as Readonly<Record<string, Schema>> }, notes);

/** The same two with a name of their own. */
export const namedObject = <Shape extends object = never>(
  name: string,
  fields: Fields<NoInfer<Shape>>,
  notes?: Notes,
): Schema<Shape> => component(name, object<Shape>(fields, notes));
export const namedAnswer = <Shape extends object = never>(
  name: string,
  fields: Fields<NoInfer<Shape>>,
): Schema<Shape> => component(name, answer<Shape>(fields));

/** Values by name; what the names may be is the core's `name`, unless another schema says so. */
export const table = <Value>(
  value: Schema<Value>,
  names: Schema<string> = name(),
): Schema<Readonly<Record<string, Value>>> =>
  objectOf({ additionalProperties: value, propertyNames: names }, { expected: "an object of values by name" });

/** Any JSON. It is not looked into; how deep it may be is for the engine to say. */
export const anything = (): Schema<unknown> => schemaOf({ expected: "JSON" }, () => true);
export const anyObject = (): Schema<Readonly<Record<string, unknown>>> => objectOf({ additionalProperties: true });

/** A schema that asks for more than its keywords say. */
export function refined<Value>(
  schema: Schema<Value>,
  more: (value: Value) => boolean,
  expected: string,
): Schema<Value> {
  const { "~check": check } = schema;
  const copy = noted(schema, { expected });
  return Object.defineProperty(copy, "~check", { value: (value: unknown) => check(value) && more(value as Value) });
}
