/**
 * What the small public functions throw when they are handed something that cannot be.
 *
 * Inside Drover a refusal is data. Functions people embed on their own (`planRound`, `score`, …) answer with
 * plain values, so there a refusal is thrown, with the same data in it: which field, which value, what would be
 * right.
 */
import { type Refusal, sentence } from "./refusal.ts";
import type { Result } from "./result.ts";

/** Thrown by the functions that stand alone when a value cannot be. */
export class InputError extends Error {
  override readonly name: string = "InputError";
  /** What was wrong, as data. */
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(sentence(refusal));
    this.refusal = refusal;
  }
}

/** The value that was read, or the refusal thrown. */
export function orThrow<Value>(read: Result<Value, Refusal>): Value {
  if (!read.ok) throw new InputError(read.failure);
  return read.value;
}
