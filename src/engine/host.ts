/**
 * The outside world, as the engine sees it: a clock, the next turn, an alarm, names.
 *
 * Everything the engine does by itself hangs on these four, so a simulator that supplies them owns its time
 * completely. In real life the next turn is the next turn of the event loop: commands that arrive
 * together are decided together and made durable by one fsync.
 */
import { randomUUID } from "node:crypto";

export type Host = {
  now(): number;
  /** Runs later, soon, and after the caller is done. */
  defer(turn: () => void): void;
  /** Rings once at the instant, or soon after; answers how to call it off. */
  setAlarm(at: number, ring: () => void, options: { readonly keepAlive: boolean }): () => void;
  /** A name nobody else has, for batches and sessions. */
  newId(): string;
};

/** Longer waits than a timer can hold are cut; the alarm is set again then. */
const TIMER_MS_MAX = 2_000_000_000;

export function realHost(now: () => number = Date.now): Host {
  return {
    now,
    defer: (turn) => {
      setImmediate(turn);
    },
    setAlarm: (at, ring, { keepAlive }) => {
      const timer = setTimeout(ring, Math.min(TIMER_MS_MAX, Math.max(0, at - now())));
      if (!keepAlive) timer.unref();
      return () => clearTimeout(timer);
    },
    newId: randomUUID,
  };
}
