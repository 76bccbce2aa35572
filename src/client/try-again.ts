/**
 * When a call is made again, and after what rest.
 *
 * Rests double, up to a bound, and are spread so that callers that failed together do not come back together. Where
 * the server says how long to wait, that counts, unless it is longer than anybody waits for: then the caller is told.
 */
import { setTimeout as elapse } from "node:timers/promises";

export type Rest = (ms: number, signal?: AbortSignal) => Promise<void>;

const FIRST_MS = 200;
const LONGEST_MS = 10_000;
const ASKED_LONGEST_MS = 60_000;

/** The rest before try number `tries` + 1; null: longer than it makes sense to wait. */
export function restAfter(tries: number, askedMs: number | undefined, chance: number): number | null {
  const own = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries - 1, 20)) * (0.5 + chance / 2);
  if (askedMs === undefined) return Math.round(own);
  return askedMs > ASKED_LONGEST_MS ? null : Math.round(Math.max(own, askedMs));
}

export const restFor: Rest = async (ms, signal) => {
  await elapse(ms, undefined, signal === undefined ? {} : { signal });
};
