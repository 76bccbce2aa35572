/**
 * An outside world that is turned by hand.
 *
 * Time stands still until somebody turns it; then every alarm on the way rings at its own instant, earliest
 * first and in the order it was set, and what it sets off has come to rest before the next one rings. Turns the
 * engine puts off run in the order they were put off, each in a turn of the event loop of its own, so that
 * promises settle between them as they do in real life. Nothing here waits for real time.
 *
 * On request time also moves while the engine works: with every reading of the clock, and alarms ring a little before
 * their time, as those of a real machine may. Whoever reads the clock twice for one decision is found out by that.
 */

import { randomUUID } from "node:crypto";
import type { Host } from "../engine/writer/index.ts";

/** So many turns without coming to rest is a cycle, not work. */
const TURNS_MAX = 1_000_000;

export type TestClock = {
  now(): number;
  /** Turns the clock on; every alarm on the way rings at its instant. Resolves when all is at rest again. */
  advance(ms: number): Promise<void>;
  /** Puts the clock to an instant without stopping on the way, or back to one. Resolves when all is at rest. */
  set(ms: number): Promise<void>;
  /** Puts the wall clock to an instant, and no time passes: what somebody does who sets it. */
  setWall(ms: number): void;
};
export type HandHost = {
  readonly host: Host;
  readonly clock: TestClock;
  /** Resolves when no turn is put off any more. Work that waits for something real is not waited for. */
  settle(): Promise<void>;
};

type Alarm = { readonly at: number; readonly ring: () => void };

export type HandHostOptions = {
  readonly at: number;
  /** What names begin with. Names of a former life on the same log must not come back: a batch is known by its name. */
  readonly names?: string;
  readonly isAtRest?: () => Promise<boolean>;
  /** How far each reading moves the clock on, and how early alarms ring. */
  readonly moves?: Moves;
};
export type Moves = { readonly perReadingMs: number; readonly earlyMs: number };
const STILL: Moves = { perReadingMs: 0, earlyMs: 0 };

export function createHandHost(options: HandHostOptions): HandHost {
  const alarms = new Set<Alarm>();
  const { names = randomUUID(), moves = STILL } = options;
  /** What has elapsed begins where the wall clock does, so that both read alike until that one is set. */
  let elapsed = checkInstant("at", options.at);
  let skew = 0;
  const wall = (): number => elapsed + skew;
  let turns: (() => void)[] = [];
  let ids = 0;

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
      if ((await options.isAtRest?.()) !== false && turns.length === 0) return;
    }
    throw new Error(`the engine never comes to rest: ${TURNS_MAX} turns`);
  }

  function nextAlarm(until: number): Alarm | null {
    let next: Alarm | null = null;
    for (const alarm of alarms) if (alarm.at <= until && (next === null || alarm.at < next.at)) next = alarm;
    return next;
  }

  async function ringUntil(until: number, follow: (alarm: Alarm) => void): Promise<void> {
    await settle();
    for (let alarm = nextAlarm(until); alarm !== null; alarm = nextAlarm(until)) {
      follow(alarm);
      alarms.delete(alarm);
      alarm.ring();
      await settle();
    }
  }

  return {
    settle,
    clock: {
      now: wall,
      async advance(ms) {
        const until = elapsed + checkInstant("ms", ms);
        await ringUntil(until, ({ at }) => {
          elapsed = Math.max(elapsed, at);
        });
        elapsed = Math.max(elapsed, until);
        await settle();
      },
      async set(ms) {
        await settle();
        elapsed += Math.max(0, checkInstant("ms", ms) - wall());
        skew = ms - elapsed;
        await ringUntil(elapsed, () => {});
      },
      setWall: (ms) => {
        skew = checkInstant("ms", ms) - elapsed;
      },
    },
    host: {
      now: () => reading(wall()),
      elapsed: () => reading(elapsed),
      defer: (turn) => {
        if (turns.length === 0) setImmediate(runTurns);
        turns.push(turn);
      },
      ringAt: (at, ring) => {
        const alarm = { at: at - moves.earlyMs, ring };
        alarms.add(alarm);
        return () => void alarms.delete(alarm);
      },
      newId: () => `${names}-${++ids}`,
    },
  };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

function checkInstant(field: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`${field} is ${value}, and must be whole milliseconds from 0`);
  return value;
}
