/**
 * The date by which a node counts log time: its own machine's, unless that is the odd one out.
 *
 * Log time never goes back and follows the clock of whoever leads, so one leader whose clock is far ahead would take
 * the log along, and all that is due by then would be due at once. A node hears what the clocks of the others show; if
 * most of all that are up, its own counted, agree on another date, it goes by theirs: its own clock, moved by as much.
 * The move is kept where nobody can say better, when too few are left to make a majority, and given up when this
 * machine's clock is set, since it was measured before, or when a majority has its date again.
 *
 * Two nodes have no majority, and a node that has heard nobody yet has its own clock alone: then it is believed.
 */
import type { Clock } from "../../std/index.ts";

/** Clocks that differ by no more agree: so much is lost between what one shows and what another hears of it. */
export const APART_MS = 5000;

export type AgreedClock = {
  /** This node's clock, with that date. */
  readonly clock: Clock;
  /** Whether it goes by the others'. */
  isMoved(): boolean;
  /**
   * Takes by how much those of the others are ahead of this node's own, as far as that is sure, and of how many more
   * that are up it is not: those stand for no date, and a majority is one of all.
   */
  judge(aheadMs: readonly number[], unsure: number): void;
};

export function createAgreedClock(own: Clock, onChange: () => void): AgreedClock {
  /** By how much, and how far the date was from what had elapsed when it was measured. */
  let move: { readonly byMs: number; readonly offset: number } | null = null;
  const offsetNow = (date: number): number => date - own.elapsed();

  function now(): number {
    const date = own.now();
    if (move === null) return date;
    if (Math.abs(offsetNow(date) - move.offset) > APART_MS) move = null;
    return move === null ? date : date + move.byMs;
  }

  return {
    clock: { ...own, now },
    isMoved: () => move !== null,
    judge(aheadMs, unsure) {
      const byMs = aheadMs.length === 0 ? null : majorityIn([0, ...aheadMs], unsure);
      if (byMs === null) return;
      const before = move?.byMs ?? 0;
      // What is measured a little differently each time is no other date.
      const next = Math.abs(byMs) <= APART_MS ? 0 : Math.abs(byMs - before) <= APART_MS ? before : byMs;
      move = next === 0 ? null : { byMs: next, offset: offsetNow(own.now()) };
      if (next !== before) onChange();
    },
  };
}

/** What more than half of all, these and those of whom it is not known, are near; null if there is no such. */
function majorityIn(known: readonly number[], unknown: number): number | null {
  const middle = known.toSorted((left, right) => left - right)[Math.floor(known.length / 2)] as number;
  const near = known.filter((each) => Math.abs(each - middle) <= APART_MS);
  return near.length * 2 > known.length + unknown ? middle : null;
}
