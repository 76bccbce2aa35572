/**
 * How many tasks a worker asks for beyond its slots, so that those of short tasks are not empty while a sync is on its
 * way.
 *
 * With tasks that take no time all slots are free again long before the answer to their results is there: most of the
 * time nothing runs. So a worker whose tasks turn out to be short fetches as many again ahead, and begins them while
 * the server hears of the ones before. It is short tasks only that this is good for. What waits here behind a long one
 * could run elsewhere, and what is urgent could come before it.
 *
 * - It begins when several syncs have reported tasks for half of the slots or more, all of which ended within moments,
 *   and none that took longer.
 * - It ends with the first that takes longer, be it reported or still here: a slot that a long task has filled gets
 *   free for nobody, and what is fetched for it only waits. The server hears of that at once (`unsaid` of session.ts).
 * - It is asked for only in a sync that has to do with half of the slots or more. Who has less to do has nothing to
 *   fetch, and what comes next may be long.
 * - What was fetched ahead and has not been begun soon is given back (give-back.ts), and then there is a rest. Where
 *   long tasks are mixed with short ones the next stretch would end in the same way, and each costs tasks a detour. A
 *   stretch that was shorter than the rest before it doubles the rest; so at most about half of the time is lost to
 *   rests where give-backs are rare, and nearly nothing is fetched ahead where they are not.
 */

/** A task that was reported so soon after it came is short; of those that waited for a slot, it may be later. */
const SHORT_MS = 10;
const STILL_SHORT_MS = 50;
/** So many syncs with short tasks for half of the slots, and none with one that took longer. */
const SHORT_SYNCS_MIN = 3;
/** What was fetched ahead and not begun for so long is given back. */
const UNBEGUN_MS = 50;
/** After something was given back. */
const REST_MS = { first: 1000, max: 60_000 };

/** How many at most is said from outside; the rest is changed by the functions of this file. */
export type Ahead = {
  /** As many at most; 0 where the server gives nothing ahead. */
  most: number;
  /** How many it may ask for now. */
  count: number;
  /** How many syncs in a row were full of short tasks. */
  shortSyncs: number;
  /** Whether the last sync had to do with half of the slots or more. */
  isFull: boolean;
  /** Nothing is fetched ahead until then, and how long that rest is. */
  restUntil: number;
  restMs: number;
};
/** What a sync that leaves has to do with. */
type Load = {
  readonly slots: number;
  /** When those came whose ends it reports. */
  readonly cameAt: readonly number[];
  /** How many are here, and when the first of them came. */
  readonly held: number;
  readonly heldSince: number;
};

export const nothingAhead = (): Ahead => ({
  most: 0,
  count: 0,
  shortSyncs: 0,
  isFull: false,
  restUntil: Number.NEGATIVE_INFINITY,
  restMs: 0,
});

/** A sync leaves. */
export function judge(ahead: Ahead, { slots, cameAt, held, heldSince }: Load, now: number): void {
  if (ahead.most === 0) return;
  ahead.isFull = (cameAt.length + held) * 2 >= slots;
  if (now >= longAt(heldSince)) return stopFetching(ahead);
  if (cameAt.length === 0) return;
  const first = Math.min(...cameAt);
  if (ahead.count > 0) {
    if (now >= longAt(first)) stopFetching(ahead);
    return;
  }
  if (now - first > SHORT_MS) ahead.shortSyncs = 0;
  // Where there is too little to do for all slots, there is nothing to fetch.
  else if (cameAt.length * 2 >= slots) ahead.shortSyncs++;
  if (ahead.shortSyncs >= SHORT_SYNCS_MIN && now >= ahead.restUntil) ahead.count = ahead.most;
}

/** How many it asks for. */
export const wantedAhead = ({ isFull, count }: Ahead): number => (isFull ? count : 0);

export function stopFetching(ahead: Ahead): void {
  ahead.count = 0;
  ahead.shortSyncs = 0;
}

/** Something waited for a slot in vain. What goes back during a rest was fetched before it. */
export function rest(ahead: Ahead, now: number): void {
  if (now < ahead.restUntil) return;
  const isSoonAgain = now < ahead.restUntil + ahead.restMs;
  ahead.restMs = isSoonAgain ? Math.min(REST_MS.max, 2 * ahead.restMs) : REST_MS.first;
  ahead.restUntil = now + ahead.restMs;
}

/** When what came at this time is short no more. */
export const longAt = (cameAt: number): number => cameAt + STILL_SHORT_MS;
/** When what came at this time, and has no slot yet, is to be given back. */
export const giveBackAt = (cameAt: number): number => cameAt + UNBEGUN_MS;
