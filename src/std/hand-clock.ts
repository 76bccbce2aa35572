/**
 * A clock that is turned by hand.
 *
 * Time stands still until somebody turns it; then every alarm on the way rings at its own instant, earliest
 * first and in the order it was set, and what it sets off has come to rest before the next one rings. Turns that
 * are put off run in the order they were put off, each in a turn of the event loop of its own, so that
 * promises settle between them as they do in real life. Nothing here waits for real time.
 *
 * On request time also moves while work is done: with every reading of the clock, and alarms ring a little before
 * their time, as those of a real machine may. Code that reads the clock twice for one decision is found out by that.
 */
import { type Clock, nextTurn } from "./clock.ts";

/** So many turns without coming to rest is a cycle, not work. */
const TURNS_MAX = 1_000_000;

/** What a test does with a clock. */
export type TestClock = {
  /** What time it is. */
  now(): number;
  /** Turns the clock on; every alarm on the way rings at its instant. Resolves when all is at rest again. */
  advance(ms: number): Promise<void>;
  /** Puts the clock to an instant without stopping on the way, or back to one. Resolves when all is at rest. */
  set(ms: number): Promise<void>;
  /** Sets the date, and no time passes. */
  setWall(ms: number): void;
};
export type HandClock = Clock &
  TestClock & {
    /** Resolves when no turn is put off any more. Work that waits for something real is not waited for. */
    settle(): Promise<void>;
    /** Turns the clock on at once: what an alarm sets off has not come to rest when the next one rings. */
    turn(ms: number): void;
    /** In how many milliseconds each alarm rings that is set. */
    alarms(): number[];
  };
type HandClockOptions = {
  readonly at: number;
  readonly isAtRest?: () => Promise<boolean>;
  /** How far each reading moves the clock on, and how early alarms ring. */
  readonly moves?: Moves;
};
export type Moves = { readonly perReadingMs: number; readonly earlyMs: number };
const STILL: Moves = { perReadingMs: 0, earlyMs: 0 };

type Alarm = { readonly at: number; readonly ring: () => void };

export function createHandClock(options: HandClockOptions): HandClock {
  const { moves = STILL, isAtRest } = options;
  const alarms = new Set<Alarm>();
  /** What has elapsed begins where the date does, so that both read alike until that one is set. */
  let elapsed = checkInstant("at", options.at);
  let skew = 0;
  let turns: (() => void)[] = [];

  function reading(shown: number): number {
    elapsed += moves.perReadingMs;
    return shown;
  }

  function runTurns(): void {
    const batch = turns;
    turns = [];
    for (const turn of batch) turn();
  }

  async function settle(): Promise<void> {
    for (let count = 0; count < TURNS_MAX; count++) {
      await nextTurn();
      if (turns.length > 0) continue;
      if ((await isAtRest?.()) !== false && turns.length === 0) return;
    }
    throw new Error(`the clock's users never come to rest: ${TURNS_MAX} turns`);
  }

  /** Rings the first alarm until then, at its own instant. */
  function ringNext(until: number): boolean {
    let next: Alarm | null = null;
    for (const alarm of alarms) if (alarm.at <= until && (next === null || alarm.at < next.at)) next = alarm;
    if (next === null) return false;
    elapsed = Math.max(elapsed, next.at);
    alarms.delete(next);
    next.ring();
    return true;
  }

  async function ringUntil(until: number): Promise<void> {
    do await settle();
    while (ringNext(until));
  }

  return {
    now: () => reading(elapsed + skew),
    elapsed: () => reading(elapsed),
    defer(turn) {
      if (turns.length === 0) setImmediate(runTurns);
      turns.push(turn);
    },
    ringAt(at, ring) {
      const alarm = { at: at - moves.earlyMs, ring };
      alarms.add(alarm);
      return () => void alarms.delete(alarm);
    },
    async advance(ms) {
      const until = elapsed + checkInstant("ms", ms);
      await ringUntil(until);
      elapsed = Math.max(elapsed, until);
      await settle();
    },
    turn(ms) {
      const until = elapsed + checkInstant("ms", ms);
      while (ringNext(until));
      elapsed = Math.max(elapsed, until);
    },
    async set(ms) {
      await settle();
      elapsed += Math.max(0, checkInstant("ms", ms) - elapsed - skew);
      skew = ms - elapsed;
      await ringUntil(elapsed);
    },
    setWall(ms) {
      skew = checkInstant("ms", ms) - elapsed;
    },
    settle,
    alarms: () => [...alarms].map(({ at }) => at - elapsed),
  };
}

function checkInstant(field: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`${field} is ${value}, and must be whole milliseconds from 0`);
  return value;
}
