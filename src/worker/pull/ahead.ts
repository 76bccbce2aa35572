/**
 * How many tasks a worker asks for beyond its slots, so that those of short tasks are not empty while a sync is on its
 * way.
 *
 * With tasks that take no time all slots are free again long before the answer to their results is there: most of the
 * time nothing runs. So a worker whose tasks turn out to be short fetches as many again ahead, and begins them while
 * the server hears of the ones before. It is short tasks only that this is good for. What waits here behind a long one
 * could run elsewhere, and what is urgent could come before it. So it begins when several syncs have reported tasks for
 * half of the slots or more, all of which ended within moments, and none that took longer; it ends with the first that
 * does, and what was fetched ahead and has not been begun soon is given back (give-back.ts).
 */

/** A task that was reported so soon after it came is short; of those that waited for a slot, it may be later. */
const SHORT_MS = 10;
const STILL_SHORT_MS = 50;
/** So many syncs with short tasks for half of the slots, and none with one that took longer. */
const SHORT_SYNCS_MIN = 3;
/** What was fetched ahead and not begun for so long is given back. */
const UNBEGUN_MS = 50;

/** How many at most is said from outside; the rest is changed by the functions of this file. */
export type Ahead = {
  /** As many at most; 0 where the server gives nothing ahead. */
  most: number;
  /** How many it asks for now. */
  count: number;
  /** How many syncs in a row were full of short tasks. */
  shortSyncs: number;
};

export const nothingAhead = (): Ahead => ({ most: 0, count: 0, shortSyncs: 0 });

/** A sync leaves with the ends of tasks that came at these times. */
export function judge(ahead: Ahead, slots: number, cameAt: readonly number[], now: number): void {
  if (ahead.most === 0 || cameAt.length === 0) return;
  const longestMs = now - Math.min(...cameAt);
  if (ahead.count > 0) {
    if (longestMs > STILL_SHORT_MS) stopFetching(ahead);
    return;
  }
  if (longestMs > SHORT_MS) ahead.shortSyncs = 0;
  // Where there is too little to do for all slots, there is nothing to fetch.
  else if (cameAt.length * 2 >= slots) ahead.shortSyncs++;
  if (ahead.shortSyncs >= SHORT_SYNCS_MIN) ahead.count = ahead.most;
}

export function stopFetching(ahead: Ahead): void {
  ahead.count = 0;
  ahead.shortSyncs = 0;
}

/** When what came at this time, and has no slot yet, is to be given back. */
export const giveBackAt = (cameAt: number): number => cameAt + UNBEGUN_MS;
