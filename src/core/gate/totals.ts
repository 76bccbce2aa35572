/**
 * What a gate has done in all, and what follows from it for one that waits.
 *
 * Counted by the verbs of gate.ts, so that every host of a gate counts alike. `scheduled` is what was admitted,
 * whichever way; `completed` what was given back, except permits that ran out; `rateLimited` every call that met a
 * window or a block when it asked, and every 429 that was reported. A call that is put back after its 429 was counted
 * with that. Waiting and service are sums of milliseconds; the peaks are the most that waited, and were out, at once.
 */

export type GateTotals = {
  /** Calls that were let out. */
  scheduled: number;
  /** Calls that came back; those whose permit ran out are not counted. */
  completed: number;
  /** Calls that met a window or a block when they asked, and 429s reported. */
  rateLimited: number;
  /** The waits of all that were let out. */
  waitMs: number;
  /** The time all that came back were out. */
  serviceMs: number;
  /** The most that ever waited at once. */
  peakQueued: number;
  /** The most that were ever out at once. */
  peakRunning: number;
};

const SERVICE_MS_UNTIL_KNOWN = 30_000;

export const newTotals = (): GateTotals => ({
  scheduled: 0,
  completed: 0,
  rateLimited: 0,
  waitMs: 0,
  serviceMs: 0,
  peakQueued: 0,
  peakRunning: 0,
});

/** How long one at this position waits if calls go on to take what they took so far. */
export function estimatedWait({ completed, serviceMs }: GateTotals, position: number, maxConcurrent: number): number {
  const meanMs = completed === 0 ? SERVICE_MS_UNTIL_KNOWN : Math.floor(serviceMs / completed);
  return Math.floor((position * meanMs) / maxConcurrent);
}
