/**
 * What the schema of drover.yml knows: which names may stand where, and what kind of value belongs there.
 *
 * The layers below a file (variables, flags) have only text, and a person who misspells a name deserves the right one.
 * Both need to walk the schema by path. It is plain JSON Schema, the same that editors get, so nothing here knows
 * a single knob by name, and a knob that is added there can be set from everywhere at once.
 */

export type JsonSchema = {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly [key: string]: unknown;
};

export type Path = readonly string[];

/** The schemas a value may follow, unions taken apart. */
export function alternatives(schema: JsonSchema): JsonSchema[] {
  const parts = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  return parts === undefined ? [schema] : parts.flatMap(alternatives);
}

const isSection = (schema: JsonSchema): boolean =>
  schema.properties !== undefined || schema.patternProperties !== undefined || schema.type === "object";

/** The fixed names that may stand in an object here; none if only free names may. `$schema` is for editors, no knob. */
export function knownKeys(schema: JsonSchema): string[] {
  const keys = alternatives(schema).flatMap((one) => Object.keys(one.properties ?? {}));
  return [...new Set(keys)].filter((key) => !key.startsWith("$"));
}

/** The schema of whatever a person may name freely here: a project, a gate, a type; null if every name is fixed. */
export function openSchema(schema: JsonSchema): JsonSchema | null {
  for (const one of alternatives(schema)) {
    const [open] = Object.values(one.patternProperties ?? {});
    if (open !== undefined) return open;
    if (typeof one.additionalProperties === "object") return one.additionalProperties;
  }
  return null;
}

/** The schema below one name; null if the name may not stand here. */
export function schemaUnder(schema: JsonSchema, key: string): JsonSchema | null {
  for (const { properties } of alternatives(schema)) {
    if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key] ?? null;
  }
  return openSchema(schema);
}

export function schemaAt(schema: JsonSchema, path: Path): JsonSchema | null {
  let found: JsonSchema | null = schema;
  for (const key of path) found = found === null ? null : schemaUnder(found, key);
  return found;
}

/** Whether a schema is of an object with values below it, and not of one value. */
export const holdsFields = (schema: JsonSchema): boolean => alternatives(schema).some(isSection);

/** How to write what was given as a list and must be names with values; nothing to say of anything else. */
export function mapAdvice(name: string, given: unknown, schema: JsonSchema): string {
  if (!Array.isArray(given) || !holdsFields(schema) || takesText(schema) || kindsOf(schema).has("array")) return "";
  const [first] = given as readonly unknown[];
  const named = typeof first === "object" && first !== null ? (first as Readonly<Record<string, unknown>>) : {};
  const own = [named.name, named.id, first].find((one) => typeof one === "string" && PLAIN_KEY.test(one));
  // Where only known names may stand, what was given is none of them, and may be a secret.
  const key = (openSchema(schema) === null ? null : own) ?? knownKeys(schema)[0] ?? "NAME";
  return `; it is no list, but names with values: ${name}: { ${String(key)}: … }`;
}

/** How to write what was given as names with values and must be a list; null of anything else. */
export function listForm(name: string, given: unknown, schema: JsonSchema): string | null {
  const isMap = typeof given === "object" && given !== null && !Array.isArray(given);
  const list = alternatives(schema).find(({ type }) => type === "array");
  if (!isMap || list === undefined || holdsFields(schema)) return null;
  const [key] = knownKeys(list.items ?? {});
  return `a list: ${name}: [${key === undefined ? "…" : `{ ${key}: …, … }`}]`;
}

export const takesNull = (schema: JsonSchema): boolean => kindsOf(schema).has("null");
export const takesText = (schema: JsonSchema): boolean => kindsOf(schema).has("string");

/** The JSON kinds a value may have here; `integer` counts as `number`. */
export function kindsOf(schema: JsonSchema): Set<string> {
  const kinds = new Set<string>();
  for (const { type, const: only, enum: listed } of alternatives(schema)) {
    for (const one of typeof type === "string" ? [type] : (type ?? [])) kinds.add(one === "integer" ? "number" : one);
    if (only !== undefined) kinds.add(kindOf(only));
    for (const one of listed ?? []) kinds.add(kindOf(one));
  }
  return kinds;
}

export function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The path of every knob with a fixed name, in the order of the schema. */
export function* knobs(schema: JsonSchema, path: Path = []): Generator<Path> {
  if (!holdsFields(schema)) yield path;
  else for (const key of knownKeys(schema)) yield* knobs(schemaUnder(schema, key) ?? {}, [...path, key]);
}

const PLAIN_KEY = /^[^\s."'[\]=]+$/;

/** `scheduler.perType.code`; a name that has a dot or a blank in it is quoted. */
export function shownPath(path: Path): string {
  return path.map((key) => (PLAIN_KEY.test(key) ? key : JSON.stringify(key))).join(".");
}

const SEGMENT = /(?:"((?:[^"\\]|\\.)*)"|([^\s."'[\]=]+))(?:\.|$)/y;

/** The path that is written so; null if it is not one. */
export function parsePath(text: string): Path | null {
  const path: string[] = [];
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < text.length) {
    const [, quoted, bare] = SEGMENT.exec(text) ?? [];
    if (quoted === undefined && bare === undefined) return null;
    path.push(bare ?? String(JSON.parse(`"${quoted}"`)));
  }
  return path.length === 0 || text.endsWith(".") ? null : path;
}
