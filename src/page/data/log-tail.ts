/**
 * The log, read on to its end time after time: each look takes up where the last one ended.
 *
 * Where that was holds for one start of the server only. After another start the log may be a new one, whose events
 * have the same numbers and tell of other things; and of an old one the place may have been pruned meanwhile. Then what
 * was taken is forgotten, and it is read from the beginning.
 */
import type { EventJson, EventPage, EventsQuery, Pulse } from "../../protocol/generated/index.ts";
import type { Refused } from "./ask.ts";

export type LogTail = {
  /** Which events. */
  readonly wanted: Omit<EventsQuery, "after" | "since">;
  /** Where the first look begins. */
  readonly begin: (signal: AbortSignal) => Promise<EventsQuery> | EventsQuery;
  /** All that was taken is of another log, or of another part of it. */
  readonly anew: () => void;
  /** Takes the next events; answers true where no later one is wanted. */
  readonly take: (events: readonly EventJson[], isWhole: boolean) => boolean;
};
type Around = {
  readonly ask: (query: EventsQuery, signal: AbortSignal) => Promise<EventPage>;
  readonly pulse: () => Pick<Pulse, "seq" | "serverId"> | null;
  /** No answer was older than this event; less than the pulse said if a server had not come to that. */
  readonly known: () => number;
};

const PAGE = 1000;

/** Reads to the end; what has failed is taken up again by the next look. */
export function createLogTail(
  { wanted, begin, anew, take }: LogTail,
  { ask, pulse, known }: Around,
): (signal: AbortSignal) => Promise<void> {
  let after: number | null = null;
  let server: string | undefined;
  const forget = (): void => {
    after = null;
    anew();
  };
  async function next(signal: AbortSignal): Promise<EventPage | null> {
    try {
      const from = after === null ? await begin(signal) : { after };
      return await ask({ ...wanted, limit: PAGE, ...from }, signal);
    } catch (error) {
      if (!isPruned(error) || after === 0) throw error;
      // If even the beginning is pruned, the first event that is left is close.
      const isBeginning = after === null;
      forget();
      if (isBeginning) after = 0;
      return null;
    }
  }
  return async (signal) => {
    for (let isOver = false; !isOver; ) {
      const heard = pulse();
      if (server !== undefined && heard !== null && heard.serverId !== server) forget();
      server = heard?.serverId ?? server;
      const page = await next(signal);
      if (page === null) continue;
      const isWhole = page.nextAfter === undefined;
      // What was there before it was asked for has been looked through, and is not read again.
      const head = heard !== null && heard.seq <= known() ? heard.seq : 0;
      after = page.nextAfter ?? Math.max(after ?? 0, head, page.events.at(-1)?.seq ?? 0);
      isOver = take(page.events, isWhole) || isWhole;
    }
  };
}

const isPruned = (error: unknown): boolean => {
  const { status, details } = error as Partial<Refused>;
  return status === 400 && details?.field === "after";
};
