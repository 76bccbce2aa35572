/**
 * Attempts of the last minutes, or of a while ago, put together from the log's own events; the last ones are followed.
 */
import { useEffect, useState } from "preact/hooks";
import type { EventKind } from "../../protocol/generated/index.ts";
import { type Bar, createGathering } from "./bar-gathering.ts";
import { live } from "./live.ts";
import { END_KINDS } from "./outcomes.ts";
import { followLog } from "./use-call.ts";

export type Bars = {
  readonly bars: readonly Bar[];
  /** What ended up to then is left out, since so much happened; null: nothing is. */
  readonly cutAt: number | null;
  /** Up to where the log is read, while that is not its end: how what runs there goes on is not known yet. */
  readonly readTo: number | null;
  readonly error: Error | null;
  readonly isRead: boolean;
};

const KINDS: readonly EventKind[] = ["task-assigned", ...END_KINDS];
/** After so many pages it is told how far the log is read. */
const PAGES_UNTOLD = 3;

/** Those of a time of such a length: up to now, and then followed, or up to an instant. */
export function useBars(lengthMs: number, until: number | null): Bars {
  const [found, setFound] = useState<Bars>(NOTHING);
  useEffect(() => {
    let gathering = createGathering();
    let pages = 0;
    const begin = (): number => (until ?? Date.now() + live.now().aheadMs) - lengthMs;
    const since = new Date(begin() - lengthMs).toISOString();
    setFound(NOTHING);
    return followLog({
      wanted: { kind: KINDS },
      // What began before the window and still runs in it is found by a longer look back.
      begin: () => ({ since }),
      anew: () => {
        gathering = createGathering();
      },
      take: (events, isWhole) => {
        const own = until === null ? events : events.filter(({ at }) => Date.parse(at) <= until);
        const isOver = isWhole || own.length < events.length;
        gathering.take(own);
        pages += 1;
        // Half of a story is a wrong one: what has ended would still run. So it is drawn when all of it is there.
        if (isOver) {
          pages = 0;
          setFound({
            bars: gathering.since(begin()),
            cutAt: gathering.cutAt(),
            readTo: null,
            error: null,
            isRead: true,
          });
        } else if (pages % PAGES_UNTOLD === 0) setFound((last) => ({ ...last, readTo: gathering.readTo() }));
        return isOver;
      },
      failed: (error) => setFound((last) => ({ ...last, error })),
      isPast: until !== null,
    });
  }, [lengthMs, until]);
  return found;
}

const NOTHING: Bars = { bars: [], cutAt: null, readTo: null, error: null, isRead: false };
