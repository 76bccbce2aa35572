/**
 * What callers give, read: bodies by their schemas, options field by field. What is unknown or wrong is refused by its
 * name.
 *
 * A misspelt option that is ignored in silence is worse than one that is refused, and a value of the wrong kind
 * must not get as far as a promise that never settles.
 */
import { badField, type Fields, fail, isRecord, ok, type Reader, readSection } from "../../core/base/index.ts";
import { Checked, readShape, type Schema } from "../../protocol/schema/index.ts";
import { accepted, badInput, reading } from "./drover-error.ts";

export const abortSignal: Reader<AbortSignal> = (value, field) =>
  value instanceof AbortSignal ? ok(value) : fail(badField(field, value, "an AbortSignal"));

/** A body as its schema has it, by the words of the schema. What the server has checked is not read again. */
export function readBody<Body>(schema: Schema<Body>, given: unknown, at: string = ""): Body {
  if (given instanceof Checked) return given.body as Body;
  // The fields are taken out once: what is checked is what is used.
  const own = isRecord(given) ? reading(given, at, () => ({ ...given })) : given;
  return accepted(readShape(schema, own, at));
}

/** The options as given, checked; absent ones are none. */
export function readOptions<Options extends object>(fields: Fields<Required<Options>>, given: unknown): Options {
  if (given === undefined) return {} as Options;
  if (!isRecord(given)) throw badInput("options", given, "an object");
  return accepted(readSection<Options>(fields as unknown as Fields<Options>, {} as Options, given, "options"));
}
