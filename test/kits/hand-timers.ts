/**
 * The server's timers, turned by hand.
 */
import type { Timers } from "../../src/std/timers.ts";

export type HandTimers = Timers & {
  /** Rings everything that is due within the span, in order. */
  advance(ms: number): void;
  /** How many are set. */
  count(): number;
};

export function handTimers(): HandTimers {
  type Entry = { at: number; readonly ring: () => void; readonly everyMs: number | null };
  const entries = new Set<Entry>();
  let now = 1_767_225_600_000;
  const add = (entry: Entry): (() => void) => {
    entries.add(entry);
    return () => void entries.delete(entry);
  };
  return {
    now: () => now,
    after: (ms, ring) => add({ at: now + ms, ring, everyMs: null }),
    every: (ms, ring) => add({ at: now + ms, ring, everyMs: ms }),
    advance(ms) {
      const end = now + ms;
      for (;;) {
        const [next] = [...entries].filter(({ at }) => at <= end).sort((left, right) => left.at - right.at);
        if (next === undefined) break;
        now = next.at;
        if (next.everyMs === null) entries.delete(next);
        else next.at += next.everyMs;
        next.ring();
      }
      now = end;
    },
    count: () => entries.size,
  };
}
