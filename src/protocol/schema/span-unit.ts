/**
 * A span that a person wrote has its unit: `timeout: 10` is ten seconds to one person and ten milliseconds to another.
 *
 * Programs give numbers of milliseconds, and the schemas take those. In files, variables and flags a bare number is
 * refused, with both readings of it, and so is a fraction. Zero is zero in every unit.
 */
import { unitAdvice } from "../../std/index.ts";
import { spanText } from "./knobs.ts";
import { SPAN_PATTERN } from "./schema.ts";
import { alternatives, type JsonSchema, schemaUnder } from "./walk.ts";

export const isSpan = (schema: JsonSchema): boolean =>
  alternatives(schema).some(({ pattern }) => pattern === SPAN_PATTERN);

/** A value of a config as people write it. */
export const writtenAs = (value: unknown, schema: JsonSchema | null): unknown =>
  typeof value === "number" && isSpan(schema ?? {}) ? spanText(value) : value;

/** What is wrong with a span that lacks its unit, also one in quotes, or has a fraction; null if nothing is. */
export function unitMissing(field: string, given: unknown): string | null {
  const advice = typeof given === "string" || typeof given === "number" ? unitAdvice(String(given)) : null;
  return advice === null ? null : `${field} is ${String(given)}, which ${advice}`;
}

/** Programs may give numbers of milliseconds; people may not, so the message leaves them out. */
export const forPeople = (message: string): string =>
  message.replace("whole milliseconds, or text such as", "text such as");

/** The first span without a unit in a config. */
export function findUnitless(
  given: unknown,
  schema: JsonSchema,
  path: readonly string[] = [],
): { readonly field: string; readonly message: string } | null {
  const field = path.join(".");
  const message = isSpan(schema) ? unitMissing(field, given) : null;
  if (message !== null) return { field, message };
  if (typeof given !== "object" || given === null || Array.isArray(given)) return null;
  for (const [key, value] of Object.entries(given)) {
    const inner = schemaUnder(schema, key);
    const found = inner === null ? null : findUnitless(value, inner, [...path, key]);
    if (found !== null) return found;
  }
  return null;
}
