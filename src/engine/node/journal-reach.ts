/**
 * Whether the journal answers this node, and since when it does not: for those who wait, and would like to know why.
 */
import { passes } from "../../log/journal/index.ts";
import type { Clock } from "../../std/index.ts";

/** A journal that does not answer. */
export type JournalAway = { readonly forMs: number; readonly why: string };

export type JournalReach = {
  answered(): void;
  /** What asking it has failed with; what is no failure of the journal's does not count. */
  failed(error: unknown): void;
  /** Null if it answers, as far as is known. */
  away(): JournalAway | null;
};

export function createJournalReach(clock: Clock): JournalReach {
  let since: { readonly at: number; readonly why: string } | null = null;
  return {
    answered() {
      since = null;
    },
    failed(error) {
      if (passes(error) && error.code === "unreachable")
        since = { at: since?.at ?? clock.elapsed(), why: error.message };
    },
    away: () => (since === null ? null : { forMs: clock.elapsed() - since.at, why: since.why }),
  };
}

/** A sentence, for people. */
export const awayText = ({ forMs, why }: JournalAway): string =>
  `the journal has been out of reach for ${Math.round(forMs / 1000)} s: ${why.replace(/\.$/, "")}.`;
