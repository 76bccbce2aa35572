/**
 * A schema as the world sees it: plain JSON Schema 2020-12, without the notes that are only for us.
 *
 * Where a schema has a name of its own, the publisher may put a reference instead of it, so that people find each
 * shape once.
 */
import { notesOf, PRIVATE_NOTES, type Schema, SPAN_PATTERN } from "./schema.ts";

export type Published = Record<string, unknown>;
/** Gives the reference under which a named schema is found. */
export type RefTo = (name: string, schema: Schema) => string;

const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function published(schema: Schema, refTo: RefTo | null = null): Published {
  const { component, shownAs } = notesOf(schema);
  if (shownAs !== undefined) return published(shownAs, refTo);
  return component !== undefined && refTo !== null
    ? { $ref: refTo(component, schema) }
    : publishedInFull(schema, refTo);
}

/**
 * The schema itself, also where it has a name. Where references are made it is for generators of clients. Those take a
 * field with a `default` as one that is always there, which a caller would then have to send: so words say it.
 */
export function publishedInFull(schema: Schema, refTo: RefTo | null): Published {
  const shown: Published = {};
  for (const [key, value] of Object.entries(schema)) {
    if (!PRIVATE_NOTES.includes(key)) shown[key] = part(key, value, refTo);
  }
  if (refTo === null || shown.default === undefined) return shown;
  const { default: value, description, ...rest } = shown;
  const words = `Default: ${typeof value === "string" ? value : JSON.stringify(value)}.`;
  return { ...rest, description: description === undefined ? words : `${description} ${words}` };
}

function part(key: string, value: unknown, refTo: RefTo | null): unknown {
  switch (key) {
    case "properties":
      return Object.fromEntries(
        Object.entries(value as object).map(([name, inner]) => [name, published(inner as Schema, refTo)]),
      );
    case "items":
    case "propertyNames":
    case "additionalProperties":
      return isSchema(value) ? published(value, refTo) : value;
    case "anyOf":
      return (value as Schema[]).map((inner) => published(inner, refTo));
    default:
      return value;
  }
}

/** The same for a file, where a span is written with its unit, and only zero may do without. */
export function withUnits(shown: Published): Published {
  return Object.fromEntries(Object.entries(shown).map(([key, value]) => [key, partWithUnits(key, value)]));
}

function partWithUnits(key: string, value: unknown): unknown {
  if (Array.isArray(value)) {
    const isSpan = key === "anyOf" && value.some((one) => one?.pattern === SPAN_PATTERN);
    return value.map((one) => (isSpan && one?.type === "integer" ? { const: 0 } : partWithUnits("", one)));
  }
  return isSchema(value) ? withUnits(value as unknown as Published) : value;
}
