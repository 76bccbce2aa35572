/**
 * The outside world of a simulated engine: time that passes only when a run moves it.
 *
 * Two times are kept apart. `elapsed` is how long the world has really existed; timers and alarms hang on
 * it, as a machine's timers hang on its monotonic clock. `now` is what the wall clock shows: elapsed time plus
 * every jump it ever made.
 *
 * Time passes while the engine works. So it may move on with every reading of the clock, mostly by nothing or a
 * millisecond, now and then by a pause; and an alarm may ring a millisecond early, as a real timer does. Code that
 * reads the clock twice for one decision is found out by this. The chance comes from the seed, so a run can be
 * repeated.
 *
 * An engine lives one `Life`. When it crashes its life ends: its deferred turns, alarms and timers are gone, as
 * they are with a process. Turns run in the order they were deferred, timers in the order of their
 * instants and then of their setting. Nothing here sleeps.
 */
import type { Clock } from "../std/index.ts";
import type { Random } from "./chance/random.ts";

/** In a hundred readings: so many move the clock on by a millisecond, and so many by a pause of up to so long. */
const TICKS = 40;
const PAUSES = 2;
const PAUSE_MS_MAX = 30;
/** An engine looks at the clock once a minute, and believes a jump ahead after another. */
const NEWS_MS = 125_000;
/** In a hundred alarms: so many ring a millisecond early. */
const EARLY = 30;

export type Life = {
  readonly clock: Clock;
  /** A name that no other batch or session has. */
  readonly newId: () => string;
  readonly isAlive: () => boolean;
  /** Rings after so long, unless this life has ended by then; answers how to call it off. */
  after(spanMs: number, ring: () => void): () => void;
  /** Whether an alarm is due that has not rung yet. */
  hasLateAlarm(): boolean;
  end(): void;
};
export type SimWorld = {
  elapsed(): number;
  /** What the wall clock shows. */
  now(): number;
  jump(byMs: number): void;
  /** Whether the wall clock jumped so lately that an engine need not have noticed, or not believe it yet. */
  hasJumpedLately(): boolean;
  newLife(): Life;
  /** Rings after so long whatever lives or dies meanwhile: the world outside the engine. */
  after(spanMs: number, ring: () => void): () => void;
  /** Runs what was deferred so far; false if there was nothing. */
  runDeferred(): boolean;
  /** When the next timer rings; null if none is set. */
  nextRing(): number | null;
  /** Moves to that instant and rings everything due then. */
  moveTo(elapsed: number): void;
};

type Timer = {
  readonly at: number;
  readonly order: number;
  readonly ring: () => void;
  readonly isLive: () => boolean;
  /** When an alarm was meant to ring; null for a span. */
  readonly meantFor: number | null;
};

export function createSimWorld(startMs: number, chance: Random): SimWorld {
  const time = { elapsed: 0, skew: startMs, jumpedAt: Number.NEGATIVE_INFINITY };
  const counts = { timers: 0, lives: 0 };
  let deferred: { turn: () => void; isLive: () => boolean }[] = [];
  const timers = new Set<Timer>();
  const now = (): number => time.elapsed + time.skew;

  /** What a clock shows to an engine: reading it takes time. */
  function read(reading: number): number {
    const luck = chance.below(100);
    if (luck < TICKS) time.elapsed++;
    else if (luck < TICKS + PAUSES) time.elapsed += chance.between(2, PAUSE_MS_MAX);
    return reading;
  }

  function set(spanMs: number, timer: Pick<Timer, "ring" | "isLive" | "meantFor">): () => void {
    const entry: Timer = { ...timer, at: time.elapsed + Math.max(0, Math.ceil(spanMs)), order: counts.timers++ };
    timers.add(entry);
    return () => timers.delete(entry);
  }

  function runDeferred(): boolean {
    const turns = deferred;
    deferred = [];
    for (const { turn, isLive } of turns) if (isLive()) turn();
    return turns.length > 0;
  }

  function nextRing(): number | null {
    let next: number | null = null;
    for (const { at, isLive } of timers) if (isLive() && (next === null || at < next)) next = at;
    return next;
  }

  function moveTo(elapsed: number): void {
    time.elapsed = Math.max(time.elapsed, elapsed);
    const due = [...timers].filter(({ at }) => at <= time.elapsed);
    due.sort((left, right) => left.at - right.at || left.order - right.order);
    for (const timer of due) if (timers.delete(timer) && timer.isLive()) timer.ring();
  }

  function newLife(): Life {
    const life = ++counts.lives;
    let names = 0;
    let alive = true;
    const isLive = (): boolean => alive;
    const clock: Clock = {
      now: () => read(now()),
      elapsed: () => read(time.elapsed),
      defer: (turn) => {
        deferred.push({ turn, isLive });
      },
      ringAt: (at, ring) =>
        set(at - read(time.elapsed) - (chance.percent(EARLY) ? 1 : 0), { ring, isLive, meantFor: at }),
    };
    return {
      clock,
      newId: () => `life${life}-${++names}`,
      isAlive: isLive,
      after: (spanMs, ring) => set(spanMs, { ring, isLive, meantFor: null }),
      hasLateAlarm: () =>
        [...timers].some((timer) => timer.isLive === isLive && (timer.meantFor ?? Infinity) <= time.elapsed),
      end: () => {
        alive = false;
        for (const timer of timers) if (timer.isLive === isLive) timers.delete(timer);
      },
    };
  }

  return {
    elapsed: () => time.elapsed,
    now,
    jump: (byMs) => {
      time.skew += byMs;
      time.jumpedAt = time.elapsed;
    },
    hasJumpedLately: () => time.elapsed < time.jumpedAt + NEWS_MS,
    newLife,
    after: (spanMs, ring) => set(spanMs, { ring, isLive: () => true, meantFor: null }),
    runDeferred,
    nextRing,
    moveTo,
  };
}
