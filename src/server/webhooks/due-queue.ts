/**
 * What is due, taken from the engine in order, a bounded number at a time.
 *
 * The engine lists every end that is not settled, oldest first; that list may be long when a receiver is down. It
 * is walked when something was added, what was taken before is passed over, and what does not fit stays where it is,
 * in the engine and the log, until there is room. Where the walk passes over many, it is not begun at every commit.
 *
 * The ends of one task are handed on one after the other: the next when the one before is over.
 */
import type { Clock } from "../../std/index.ts";

/** So many are known here at once; the rest waits in the log. */
const KNOWN_MAX = 50_000;
/** A walk over more than this is a long one, and the next is put off for a moment. */
const WALK_LONG = 1000;
const WALK_PAUSE_MS = 250;

type Ended = {
  readonly taskId: string;
  readonly state: string;
  /** Whom it is sent to; empty where an older log does not say. */
  readonly host: string;
  readonly project: string;
};
export type DueEnd = Ended & { readonly seq: number };
export type DueSource = { pending(): Iterable<DueEnd>; onDue(listener: () => void): () => void };
/** In no log: the end of a task that was rejected. */
export type Unlogged = Ended & { readonly seq: null };
type Due = {
  /** Hands on one that is not in the log, in its task's turn. */
  add(end: Unlogged): void;
  /** One that was handed on is over. */
  over(taskId: string): void;
  known(): number;
  stop(): void;
};

export function createDue(deps: {
  readonly source: DueSource;
  readonly clock: Clock;
  readonly hand: (end: DueEnd | Unlogged) => void;
  readonly knownMax?: number;
}): Due {
  const { source, clock, hand, knownMax = KNOWN_MAX } = deps;
  /** Per task: the one handed on, then those that wait for it. */
  const byTask = new Map<string, (DueEnd | Unlogged)[]>();
  let takenUpTo = -1;
  let known = 0;
  let hasMore = false;
  let walk: { cancel: () => void } | null = null;
  let wasLong = false;
  let isStopped = false;

  function enter(end: DueEnd | Unlogged): void {
    known++;
    const line = byTask.get(end.taskId);
    if (line !== undefined) return void line.push(end);
    byTask.set(end.taskId, [end]);
    hand(end);
  }

  function take(): void {
    walk = null;
    hasMore = false;
    let passed = 0;
    for (const end of source.pending()) {
      if (end.seq <= takenUpTo) {
        passed++;
        continue;
      }
      hasMore = known >= knownMax;
      if (hasMore || isStopped) break;
      takenUpTo = end.seq;
      enter(end);
    }
    wasLong = passed > WALK_LONG;
  }

  /** Soon, and once for however many commits ask for it meanwhile. */
  function takeSoon(): void {
    if (walk !== null || isStopped) return;
    if (wasLong) walk = { cancel: clock.ringAt(clock.elapsed() + WALK_PAUSE_MS, take, { keepAlive: false }) };
    else {
      walk = { cancel: () => {} };
      clock.defer(() => (isStopped ? undefined : take()));
    }
  }

  const unsubscribe = source.onDue(takeSoon);
  takeSoon();
  return {
    add: enter,
    over(taskId) {
      known--;
      const line = byTask.get(taskId);
      line?.shift();
      const next = line?.[0];
      if (next === undefined) byTask.delete(taskId);
      else hand(next);
      if (hasMore && known <= knownMax / 2) takeSoon();
    },
    known: () => known,
    stop() {
      isStopped = true;
      unsubscribe();
      walk?.cancel();
    },
  };
}
