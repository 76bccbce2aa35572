/**
 * Attempts of the last minutes, or of a while ago, put together from the log's own events; the last ones are followed.
 */
import { useEffect, useState } from "preact/hooks";
import type { EventJson, EventKind } from "../../protocol/generated/index.ts";
import { live } from "./live.ts";
import { END_KINDS, endIn } from "./outcomes.ts";
import { followLog } from "./use-call.ts";

export type Bar = {
  readonly key: string;
  readonly task: string;
  readonly attempt: number;
  readonly worker: string;
  readonly from: number;
  /** Null while it runs. */
  readonly until: number | null;
  readonly outcome: string;
};
export type Bars = {
  readonly bars: readonly Bar[];
  /** What is not shown: so much happened that the newest are still to be read, or the oldest are too many. */
  readonly missing: "newest" | "oldest" | null;
  readonly error: Error | null;
  readonly isRead: boolean;
};

const KINDS: readonly EventKind[] = ["task-assigned", ...END_KINDS];
const BARS_MAX = 4000;
/** Of a long log, so many pages are read before what they tell is drawn. */
const PAGES_UNSEEN = 10;

/** Takes events in; answers all bars that ended after an instant. */
function createGathering(): {
  take(events: readonly EventJson[]): void;
  since(from: number): readonly Bar[];
  isFull(): boolean;
} {
  const open = new Map<string, Bar>();
  let ended: Bar[] = [];
  let isFull = false;
  return {
    take(events) {
      for (const event of events) {
        const { payload, at, task } = event;
        if (task === undefined) continue;
        const time = Date.parse(at);
        const running = open.get(task);
        const outcome = endIn(event);
        if (payload.kind === "task-assigned") {
          const { attempt, worker } = payload;
          const bar = {
            key: `${task} ${attempt} ${at}`,
            task,
            attempt,
            worker,
            from: time,
            until: null,
            outcome: "running",
          };
          open.set(task, bar);
        } else if (running !== undefined && outcome !== undefined) {
          open.delete(task);
          ended.push({ ...running, until: time, outcome });
        }
      }
      if (ended.length <= BARS_MAX) return;
      ended = ended.slice(-BARS_MAX);
      isFull = true;
    },
    since: (from) => [...ended.filter(({ until }) => (until ?? 0) >= from), ...open.values()],
    isFull: () => isFull,
  };
}

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
        if (!isOver && pages % PAGES_UNSEEN !== 0) return false;
        const missing = isOver ? (gathering.isFull() ? "oldest" : null) : "newest";
        setFound({ bars: gathering.since(begin()), missing, error: null, isRead: true });
        return isOver;
      },
      failed: (error) => setFound((last) => ({ ...last, error })),
      isPast: until !== null,
    });
  }, [lengthMs, until]);
  return found;
}

const NOTHING: Bars = { bars: [], missing: null, error: null, isRead: false };
