/**
 * The outside world of a simulated engine: time that passes only when told to.
 *
 * Two times are kept apart. `elapsed` is how long the world has really existed; timers and alarms hang on
 * it, as a machine's timers hang on its monotonic clock. `now` is what the wall clock shows: elapsed time plus
 * every jump it ever made. So an alarm set for an instant rings after the span it was set for, early or late by
 * the jumps in between, exactly as `setTimeout` behaves when somebody moves the clock.
 *
 * Time passes while the engine works. So it may move on with every reading of the clock, mostly by nothing or a
 * millisecond, now and then by a pause; and an alarm may ring a millisecond early, as a real timer does. Whoever reads
 * the clock twice for one decision is found out by this. The chance comes from the seed, so a run can be repeated.
 *
 * An engine lives one `Life`. When it crashes its life ends: its deferred turns, alarms and timers are gone, as
 * they are with a process. Turns run in the order they were deferred, timers in the order of their
 * instants and then of their setting. Nothing here sleeps.
 */
import type { Host } from "../engine/host.ts";
import type { Random } from "./random.ts";

/** In a hundred readings: so many move the clock on by a millisecond, and so many by a pause of up to so long. */
const TICKS = 40;
const PAUSES = 2;
const PAUSE_MS_MAX = 30;
/** In a hundred alarms: so many ring a millisecond early. */
const EARLY = 30;

export type Life = {
  readonly host: Host;
  readonly isAlive: () => boolean;
  /** Rings after so long, unless this life has ended by then; answers how to call it off. */
  after(spanMs: number, ring: () => void): () => void;
  /** The earliest alarm that the wall clock has passed and that has not rung yet, as after a jump. */
  hasLateAlarm(): boolean;
  end(): void;
};
export type SimWorld = {
  elapsed(): number;
  /** What the wall clock shows. */
  now(): number;
  jump(byMs: number): void;
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
  /** The instant an alarm was set for; null for a span. */
  readonly instant: number | null;
};

export function createSimWorld(startMs: number, chance: Random): SimWorld {
  const time = { elapsed: 0, skew: startMs };
  const counts = { timers: 0, lives: 0 };
  let deferred: { turn: () => void; isLive: () => boolean }[] = [];
  const timers = new Set<Timer>();
  const now = (): number => time.elapsed + time.skew;

  /** What the wall clock shows to an engine: reading it takes time. */
  function read(): number {
    const reading = now();
    const luck = chance.below(100);
    if (luck < TICKS) time.elapsed++;
    else if (luck < TICKS + PAUSES) time.elapsed += chance.between(2, PAUSE_MS_MAX);
    return reading;
  }

  function set(spanMs: number, timer: Pick<Timer, "ring" | "isLive" | "instant">): () => void {
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
    const host: Host = {
      now: read,
      defer: (turn) => {
        deferred.push({ turn, isLive });
      },
      setAlarm: (at, ring) => set(at - read() - (chance.percent(EARLY) ? 1 : 0), { ring, isLive, instant: at }),
      newId: () => `life${life}-${++names}`,
    };
    return {
      host,
      isAlive: isLive,
      after: (spanMs, ring) => set(spanMs, { ring, isLive, instant: null }),
      hasLateAlarm: () => [...timers].some((timer) => timer.isLive === isLive && (timer.instant ?? Infinity) <= now()),
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
    },
    newLife,
    after: (spanMs, ring) => set(spanMs, { ring, isLive: () => true, instant: null }),
    runDeferred,
    nextRing,
    moveTo,
  };
}
