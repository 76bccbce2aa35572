/**
 * How a handler says that a round of its task's loop was not enough.
 *
 * It is an answer, not an error: the round ended as it should, and its note is what the next one is to see. On the wire
 * and in the answer of a push worker it is the same object.
 */

/** What a handler answers for another round of its loop. */
export type Again = {
  /** The mark by which it is known from a result. */
  readonly again: true;
  /** What the next round is to see, at most 4096 characters. */
  readonly note?: string;
};

/** Another round of the loop, and what it is to see. */
export const again = (note?: string): Again => (note === undefined ? { again: true } : { again: true, note });

/** Whether an answer asks for another round. What has anything else in it is a result. */
export function isAgain(value: unknown): value is Again {
  if (typeof value !== "object" || value === null || (value as Partial<Again>).again !== true) return false;
  const { again: _, note, ...rest } = value as Again;
  return Object.keys(rest).length === 0 && (note === undefined || typeof note === "string");
}
