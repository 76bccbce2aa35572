/**
 * How Drover says no on the wire.
 *
 * Every error has one body: `error` is a sentence for people, `code` is for programs, `retryable` says whether the
 * very same request may succeed later, `details` holds the facts.
 */
import { anyObject, described, flag, namedAnswer, oneOf, optional, type Schema, text } from "../schema/schema.ts";
import { CODE_NAMES, type WireError } from "../wire/codes.ts";

/** The body of every answer that is an error. */
export const wireErrorSchema: Schema<WireError> = namedAnswer<WireError>("Error", {
  error: described(text(1, 10_000), "What is wrong and what would be right, for people."),
  code: described(oneOf(...CODE_NAMES), "What is wrong, for programs."),
  retryable: optional(flag(), "Whether the very same request may succeed later."),
  details: optional(anyObject(), "The facts, such as field, value and expected."),
});
