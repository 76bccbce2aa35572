/**
 * How the core says no.
 *
 * A refusal is data: the caller asked for something that cannot be, and learns which field, which
 * value and what would be right. A broken invariant is a bug of ours: it throws, and nothing but the
 * edge of the process catches it.
 */

/** It went well. */
export type Ok<Value> = {
  /** True. */
  readonly ok: true;
  /** What came of it. */
  readonly value: Value;
};
/** It was refused. */
export type Failed<Failure> = {
  /** False. */
  readonly ok: false;
  /** Why. */
  readonly failure: Failure;
};
/** A value, or why there is none; `ok` tells which. */
export type Result<Value, Failure> = Ok<Value> | Failed<Failure>;

export const ok = <Value>(value: Value): Ok<Value> => ({ ok: true, value });
export const fail = <Failure>(failure: Failure): Failed<Failure> => ({ ok: false, failure });

/** A fault in Drover itself: something that must always hold does not. */
export class BrokenInvariant extends Error {
  override readonly name: string = "BrokenInvariant";
}

export function invariant(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new BrokenInvariant(`this must hold and does not: ${claim}`);
}

export function unreachable(value: never): never {
  throw new BrokenInvariant(`no case for ${JSON.stringify(value)}`);
}
