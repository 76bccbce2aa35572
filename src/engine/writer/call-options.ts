/**
 * The options of a call, read at the door like a body: what is unknown or wrong is refused by name.
 *
 * A misspelt option that is ignored in silence is worse than one that is refused, and a value of the wrong kind
 * must not get as far as a promise that never settles.
 */

import { badField, type Fields, fail, isRecord, ok, type Reader, readSection } from "../../core/base/index.ts";
import { badInput, refused } from "./drover-error.ts";

export const abortSignal: Reader<AbortSignal> = (value, field) =>
  value instanceof AbortSignal ? ok(value) : fail(badField(field, value, "an AbortSignal"));

/** The options as given, checked; absent ones are none. */
export function readOptions<Options extends object>(fields: Fields<Required<Options>>, given: unknown): Options {
  if (given === undefined) return {} as Options;
  if (!isRecord(given)) throw badInput("options", given, "an object");
  const read = readSection<Options>(fields as unknown as Fields<Options>, {} as Options, given, "options");
  if (!read.ok) throw refused(read.failure);
  return read.value;
}
