/**
 * How the core says no.
 *
 * A refusal is data: the caller asked for something that cannot be, and learns which field, which
 * value and what would be right. A broken invariant is a bug of ours: it throws, and nothing but the
 * edge of the process catches it.
 */

export type Ok<Value> = { readonly ok: true; readonly value: Value };
export type Failed<Failure> = { readonly ok: false; readonly failure: Failure };
export type Result<Value, Failure> = Ok<Value> | Failed<Failure>;

export const ok = <Value>(value: Value): Ok<Value> => ({ ok: true, value });
export const fail = <Failure>(failure: Failure): Failed<Failure> => ({ ok: false, failure });

export class BrokenInvariant extends Error {
  override readonly name: string = "BrokenInvariant";
}

export function invariant(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new BrokenInvariant(`this must hold and does not: ${claim}`);
}

export function unreachable(value: never): never {
  throw new BrokenInvariant(`no case for ${JSON.stringify(value)}`);
}
