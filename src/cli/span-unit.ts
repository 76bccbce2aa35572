/**
 * A span that somebody wrote has its unit: `timeout: 10` is ten seconds to one person and ten milliseconds to another.
 *
 * Programs give numbers of milliseconds, and the schemas take those. In files, variables and flags a bare number is
 * refused, with both readings of it. Zero is zero in every unit.
 */
import { SPAN_PATTERN } from "../protocol/index.ts";
import { alternatives, type JsonSchema, schemaUnder } from "./config-knobs.ts";

export const isSpan = (schema: JsonSchema): boolean =>
  alternatives(schema).some(({ pattern }) => pattern === SPAN_PATTERN);

/** What is wrong with a number in the place of a span, also one in quotes; null if nothing is. */
export function unitMissing(field: string, given: unknown): string | null {
  const value = typeof given === "string" && /^\d+(\.\d+)?$/.test(given) ? Number(given) : given;
  if (typeof value !== "number" || value === 0) return null;
  // A span has no fraction.
  const say = Number.isInteger(value) ? `${value}s or ${value}ms` : `${Math.round(value * 1000)}ms`;
  return `${field} is ${value}, which has no unit: say ${say}`;
}

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
