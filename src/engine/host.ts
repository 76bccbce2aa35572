/**
 * The outside world, as the engine sees it: a clock, the next turn, an alarm, names.
 *
 * Everything the engine does by itself hangs on these four, so a simulator that supplies them owns its time
 * completely. In real life the next turn is the next turn of the event loop: commands that arrive
 * together are decided together and made durable by one fsync.
 */
import { randomUUID } from "node:crypto";
import { isReading } from "./log-clock.ts";

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
/** How soon an alarm looks again if the clock said nothing sensible. */
const BLIND_MS = 1000;

export function realHost(now: () => number = Date.now): Host {
  return {
    now,
    defer: (turn) => {
      setImmediate(turn);
    },
    setAlarm: (at, ring, { keepAlive }) => {
      const timer = setTimeout(ring, spanUntil(at, now));
      if (!keepAlive) timer.unref();
      return () => clearTimeout(timer);
    },
    newId: randomUUID,
  };
}

/** The same world, whose clock gives its last good reading again where it would give none. */
export function withSteadyClock(host: Host): Host {
  let last = host.now();
  const now = (): number => {
    try {
      const reading: unknown = host.now();
      if (isReading(reading)) last = reading;
    } catch {
      // The writer refuses what is asked meanwhile, and says why.
    }
    return last;
  };
  return { ...host, now };
}

/** Never a span that a timer takes for none: an alarm that rings at once, for ever, would leave no time for work. */
function spanUntil(at: number, now: () => number): number {
  try {
    const reading: unknown = now();
    if (isReading(reading) && Number.isFinite(at)) return Math.min(TIMER_MS_MAX, Math.max(0, at - reading));
  } catch {
    // A clock that throws says as little as one that answers NaN.
  }
  return BLIND_MS;
}
