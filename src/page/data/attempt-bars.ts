/**
 * Attempts of the last minutes, by worker, put together from the log's own events and then followed.
 */
import { useEffect, useState } from "preact/hooks";
import type { EventJson, EventKind } from "../../protocol/generated/index.ts";
import { ask } from "./ask.ts";
import { live } from "./live.ts";
import { lookAtPulses } from "./use-call.ts";

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
  readonly isCut: boolean;
  readonly error: Error | null;
  readonly isRead: boolean;
};

const ENDS: Readonly<Partial<Record<EventKind, string>>> = {
  "task-done": "done",
  "attempt-done": "done",
  "task-failed": "failed",
  "attempt-failed": "failed",
  "attempt-lost": "failed",
  "attempt-stopped": "cancelled",
  "task-cancelled": "cancelled",
  "round-ended": "done",
  "task-parked": "parked",
};
const KINDS = ["task-assigned", ...Object.keys(ENDS)] as EventKind[];
const BARS_MAX = 4000;
const PAGES_MAX = 30;

/** Takes events in; answers all bars that ended after an instant. */
function createGathering(): { take(events: readonly EventJson[]): void; since(from: number): readonly Bar[] } {
  const open = new Map<string, Bar>();
  let ended: Bar[] = [];
  return {
    take(events) {
      for (const { payload, at, kind, task } of events) {
        if (task === undefined) continue;
        const time = Date.parse(at);
        const running = open.get(task);
        const outcome = ENDS[kind];
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
      if (ended.length > BARS_MAX) ended = ended.slice(-BARS_MAX);
    },
    since: (from) => [...ended.filter(({ until }) => (until ?? 0) >= from), ...open.values()],
  };
}

export function useBars(minutes: number): Bars {
  const [found, setFound] = useState<Bars>({ bars: [], isCut: false, error: null, isRead: false });
  useEffect(() => {
    const gathering = createGathering();
    const begin = (): number => Date.now() + live.now().aheadMs - minutes * 60_000;
    // What began before the window and still runs in it is found by a longer look back.
    const since = new Date(begin() - minutes * 60_000).toISOString();
    let after = 0;
    async function read(signal: AbortSignal): Promise<void> {
      let isCut = false;
      for (let page = 0; page < PAGES_MAX; page++) {
        const query = { kind: KINDS, limit: 1000, after, ...(after === 0 ? { since } : {}) };
        const { events, nextAfter } = await ask("events", { query }, signal);
        gathering.take(events);
        after = nextAfter ?? events.at(-1)?.seq ?? after;
        isCut = nextAfter !== undefined;
        if (!isCut) break;
      }
      setFound({ bars: gathering.since(begin()), isCut, error: null, isRead: true });
    }
    return lookAtPulses((signal) =>
      read(signal).catch((error: Error) => {
        if (!signal.aborted) setFound((last) => ({ ...last, error }));
      }),
    );
  }, [minutes]);
  return found;
}
