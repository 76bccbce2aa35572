/**
 * The outside world, as the engine sees it: two clocks, the next turn, an alarm, names.
 *
 * Everything the engine does by itself hangs on these, so a simulator that supplies them owns its time completely. The
 * wall clock says what date it is, and may be set. What has elapsed is measured by a clock that cannot be set: spans of
 * time, such as a lease, a rest or an alarm, are counted by it. In real life the next turn is the next turn of the
 * event loop: commands that arrive together are decided together and made durable by one fsync.
 */
import { randomUUID } from "node:crypto";

export type Host = {
  /** The wall clock, in milliseconds since 1970. */
  now(): number;
  /** Whole milliseconds since some beginning; never back, whatever the wall clock does. */
  elapsed(): number;
  /** Runs later, soon, and after the caller is done. */
  defer(turn: () => void): void;
  /** Rings once when so much has elapsed, or soon after; answers how to call it off. */
  ringAt(at: number, ring: () => void, options: { readonly keepAlive: boolean }): () => void;
  /** A name nobody else has, for batches and sessions. */
  newId(): string;
};

/** Longer waits than a timer can hold are cut; the alarm is set again then. */
const TIMER_MS_MAX = 2_000_000_000;
/** How soon an alarm looks again if the clock said nothing sensible. */
const BLIND_MS = 1000;
/** The end of the year 9999: what lies behind it cannot be written as a date. */
const READING_MAX = 253_402_300_799_999;

/** Whether a clock's reading is an instant. */
export const isReading = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= READING_MAX;

/** A clock that is given is the only one there is: it also says what has elapsed, and is believed. */
export function realHost(only?: () => number): Host {
  const elapsed = only === undefined ? () => Math.trunc(performance.now()) : forwardsOf(only);
  const isBlind = (): boolean => only !== undefined && readingOf(only) === null;
  return {
    now: only ?? Date.now,
    elapsed,
    defer: (turn) => {
      setImmediate(turn);
    },
    ringAt: (at, ring, { keepAlive }) => {
      // Never a span that a timer takes for none: an alarm that rings at once, for ever, would leave no time for work.
      const spanMs = isBlind() ? BLIND_MS : Math.min(TIMER_MS_MAX, Math.max(0, Math.ceil(at - elapsed())));
      const timer = setTimeout(ring, spanMs);
      if (!keepAlive) timer.unref();
      return () => clearTimeout(timer);
    },
    newId: randomUUID,
  };
}

/** The same world, whose wall clock gives its last good reading again where it would give none. */
export function withSteadyClock(host: Host): Host {
  let last = host.now();
  const now = (): number => {
    // The writer refuses what is asked meanwhile, and says why.
    last = readingOf(host.now) ?? last;
    return last;
  };
  return { ...host, now };
}

/** A clock without its steps back, and without what is no reading. */
function forwardsOf(clock: () => number): () => number {
  let last = readingOf(clock);
  let elapsed = last ?? 0;
  return () => {
    const reading = readingOf(clock);
    if (reading === null) return elapsed;
    elapsed += Math.max(0, reading - (last ?? reading));
    last = reading;
    return elapsed;
  };
}

/** A clock that throws says as little as one that answers NaN. */
function readingOf(clock: () => number): number | null {
  try {
    const reading: unknown = clock();
    return isReading(reading) ? reading : null;
  } catch {
    return null;
  }
}
