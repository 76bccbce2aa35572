/**
 * The one clock: what date it is, how much time has passed, alarms, and the next turn.
 *
 * Nothing in Drover reads the time but through a clock that it is given, so a test or a simulator that supplies one
 * owns its time completely (hand-clock.ts). The date may be set while the program runs. What has elapsed is measured
 * by a clock that cannot be set: spans of time, such as a lease, a rest or a time-out, are counted by it.
 */

export type Clock = {
  /** The date, in milliseconds since 1970. */
  now(): number;
  /** Whole milliseconds since some beginning, which is the same in all threads; never back, whatever the date does. */
  elapsed(): number;
  /** Milliseconds and parts of them, of any beginning: how long work takes. Absent where time stands still then. */
  stopwatch?(): number;
  /** Runs later, soon, and after the caller is done. */
  defer(turn: () => void): void;
  /** Rings once when so much has elapsed, or soon after; answers how to call it off. A span of weeks may be cut. */
  ringAt(at: number, ring: () => void, options?: AlarmOptions): CancelAlarm;
};
/** Whether the process stays alive until it has rung: by default it does. */
type AlarmOptions = { readonly keepAlive?: boolean };
/** Calls an alarm off. Where a process can be kept alive, it also says anew whether this alarm does so. */
export type CancelAlarm = { (): void; keepAlive?(isKept: boolean): void };
type Alarms = Pick<Clock, "elapsed" | "ringAt">;

/** A timer that is set for longer would ring at once. */
const TIMER_MS_MAX = 2_000_000_000;
/** How soon an alarm rings if the clock said nothing sensible. */
const BLIND_MS = 1000;
const NANOSECONDS_PER_MS = 1e6;
/** The end of the year 9999: what lies behind it cannot be written as a date. */
const READING_MAX = 253_402_300_799_999;

// It is loaded with its first reading, which takes half a millisecond.
performance.now();
/** How long the machine had been up when the clock of this thread began: the same beginning for every thread. */
const beganAt = Number(process.hrtime.bigint()) / NANOSECONDS_PER_MS - performance.now();

/** The clock of this machine. */
export const realClock: Clock = {
  now: Date.now,
  elapsed: () => Math.trunc(beganAt + performance.now()),
  stopwatch: () => performance.now(),
  defer: (turn) => void setImmediate(turn),
  ringAt: (at, ring, options) => startTimer(at - realClock.elapsed(), ring, options),
};

/** A clock of which only the date is given: it also says what has elapsed, and is believed. */
export function clockFrom(now: () => number): Clock {
  const elapsed = forwardsOf(now);
  const spanTo = (at: number): number => (readingOf(now) === null ? BLIND_MS : at - elapsed());
  return {
    now,
    elapsed,
    stopwatch: () => performance.now(),
    defer: realClock.defer,
    ringAt: (at, ring, options) => startTimer(spanTo(at), ring, options),
  };
}

/** The same clock, which gives its last good date again where it would give none. */
export function withSteadyDate(clock: Clock): Clock {
  let last = clock.now();
  const now = (): number => {
    last = readingOf(clock.now) ?? last;
    return last;
  };
  return { ...clock, now };
}

/** Rings once after so long. */
export function ringAfter(clock: Alarms, ms: number, ring: () => void, options?: AlarmOptions): CancelAlarm {
  return clock.ringAt(clock.elapsed() + ms, ring, options);
}

/** The answer, if it comes in time; else it rejects with what `late` makes. */
export function answerWithin<Answer>(
  clock: Alarms,
  ms: number,
  answer: Promise<Answer>,
  late: () => Error,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const cancel = ringAfter(clock, ms, () => reject(late()));
    answer.then(resolve, reject).finally(cancel);
  });
}

/** Resolves after so long, or when the signal ends it. */
export function restFor(
  clock: Alarms,
  ms: number,
  { signal, ...options }: AlarmOptions & { readonly signal?: AbortSignal } = {},
): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const cancel = ringAfter(clock, ms, done, options);
    function done(): void {
      signal?.removeEventListener("abort", done);
      cancel();
      resolve();
    }
    signal?.addEventListener("abort", done);
  });
}

/** Rings again and again. */
export function ringEvery(clock: Alarms, ms: number, ring: () => void, options?: AlarmOptions): () => void {
  const again = (): void => {
    cancel = ringAfter(clock, ms, again, options);
    ring();
  };
  let cancel = ringAfter(clock, ms, again, options);
  return () => cancel();
}

/** All other work has a turn of the event loop first. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Whether a clock's reading is a date. */
export const isReading = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= READING_MAX;

function startTimer(spanMs: number, ring: () => void, { keepAlive = true }: AlarmOptions = {}): CancelAlarm {
  const timer = setTimeout(ring, Math.min(TIMER_MS_MAX, Math.max(0, Math.ceil(spanMs))));
  if (!keepAlive) timer.unref();
  const cancel: CancelAlarm = () => clearTimeout(timer);
  cancel.keepAlive = (isKept) => void (isKept ? timer.ref() : timer.unref());
  return cancel;
}

/** A clock without its steps back, and without what is no reading. */
function forwardsOf(now: () => number): () => number {
  let last = readingOf(now);
  let elapsed = last ?? 0;
  return () => {
    const reading = readingOf(now);
    if (reading === null) return elapsed;
    elapsed += Math.max(0, reading - (last ?? reading));
    last = reading;
    return elapsed;
  };
}

/** A clock that throws says as little as one that answers NaN. */
function readingOf(now: () => number): number | null {
  try {
    const reading: unknown = now();
    return isReading(reading) ? reading : null;
  } catch {
    return null;
  }
}

const SHOWN_MAX = 256;
/** Each in the one place that its last digits have. */
const shownAt: number[] = new Array(SHOWN_MAX).fill(Number.NaN);
const shownText: string[] = new Array(SHOWN_MAX).fill("");

/** An instant as people read it, by RFC 3339. The last ones are remembered: tasks of one turn share their instants. */
export function isoTime(at: number): string {
  const place = at & (SHOWN_MAX - 1);
  if (shownAt[place] !== at) {
    shownText[place] = new Date(at).toISOString();
    shownAt[place] = at;
  }
  return shownText[place] as string;
}
