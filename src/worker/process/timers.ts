/**
 * The clock and the timers of the exec worker, so that a test can turn them by hand.
 *
 * Everything that waits by rule (the ladder, the idle and the start timeout) hangs on these; only what waits for
 * the kernel (a killed process to be gone, a pipe to be closed) uses real time.
 */

export type ExecHost = {
  /** The wall clock: for dates. */
  now(): number;
  /** Milliseconds since some beginning; never set: for spans of time, such as a silence. */
  elapsed(): number;
  /** Rings once after the span; answers how to call it off. */
  setTimer(spanMs: number, ring: () => void): () => void;
};

/** Longer spans than a timer can hold ring early rather than at once. */
const TIMER_MS_MAX = 2_000_000_000;

export const realExecHost: ExecHost = {
  now: () => Date.now(),
  elapsed: () => Math.trunc(performance.now()),
  setTimer: (spanMs, ring) => {
    const timer = setTimeout(ring, Math.min(TIMER_MS_MAX, Math.max(0, spanMs)));
    return () => clearTimeout(timer);
  },
};
