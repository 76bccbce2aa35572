/**
 * Log time: never back, never still, and never far from the truth for long.
 *
 * The instants in the log must not go back, and every deadline and every rest hangs on them; but a wall clock may be
 * set, by hand, by a time server, by a machine that wakes up. So how much time has passed is measured by a clock that
 * cannot be set, and the wall clock is only followed:
 *
 * - It agrees with what passed, or is ahead by no more than `maxJump`: log time is what it says.
 * - It is behind: log time goes on at half the pace of what passes, until the two meet. Standing still would hold up
 *   every timer for as long as the clock was wrong, and going on as before would never come back to the truth.
 * - It is ahead by more: it is doubted, and log time goes on by what passes. One that has stayed there for a minute is
 *   believed: the machine slept, or was wrong before. One that comes back to its senses has done no harm.
 *
 * So log time is never ahead of what some believed reading and the time passed since would give. At the beginning there
 * is no past to compare with: the wall clock is believed, unless the log ends later. A node of a cluster has one log
 * clock for all its lives, and so a past to compare with when it takes the lead. What others wrote meanwhile counts;
 * what it has shown meanwhile does not: a clock that was wrong and is right again leaves nothing behind in the log.
 *
 * A reading that is no instant at all (NaN, undefined, text) never becomes time: one such number in the log would
 * make it unreadable for ever. `now` refuses it, so the caller gets an error; `nowOrLast` shows the last good time, for
 * what must go on whatever the clock says.
 */
import { type Instant, instant } from "../../core/base/index.ts";
import type { MutableState } from "../../core/model/index.ts";
import { type Clock, isReading } from "../../std/index.ts";
import { badInput } from "../base/drover-error.ts";

/** Half the pace: how many milliseconds pass for one of log time while the wall clock is behind. */
const SLOWLY = 2;
/** So long a wall clock must stay where it has jumped to. */
const BELIEVED_AFTER_MS = 60_000;
/** The two clocks cannot be read at one instant: so much may pass in between. */
const BLINK_MS = 50;
/** Readings of one and the same millisecond in a row: a busy engine has hundreds, and need not look at both clocks. */
const SAME_MAX = 16;
/** No alarm is further away than this: a wall clock that was set meanwhile is noticed then. */
const LOOK_MS = 60_000;

export type LogClock = {
  /** Refuses a reading that is no instant. */
  now(): Instant;
  /** The last good time if the reading is no instant. */
  nowOrLast(): Instant;
  /** How far log time was ahead of the wall clock at the last reading; below zero while that one is doubted. */
  aheadMs(): number;
  /** When, by what has elapsed, to look at the clock for this instant: log time may be there by then. */
  alarmFor(at: Instant): number;
  /** From now on what it shows is written. What it has shown so far was not: it need not go on from there. */
  begin(): void;
};

/** The log clock over a state, which may be another later on. */
export const logClockOver = (
  clock: Clock,
  state: () => Pick<MutableState, "at" | "config">,
  onReading?: (aheadMs: number) => void,
): LogClock =>
  createLogClock({ clock, last: () => state().at, maxJumpMs: () => state().config.log.maxClockJump, onReading });

export function createLogClock(world: {
  readonly clock: Pick<Clock, "now" | "elapsed">;
  /** The time of the last event. */
  readonly last: () => Instant;
  readonly maxJumpMs: () => number;
  /** Hears at each reading how far log time is ahead of the wall clock. */
  readonly onReading?: ((aheadMs: number) => void) | undefined;
}): LogClock {
  const { clock, last, maxJumpMs, onReading } = world;
  /** The last reading, and how far the wall clock is from what has elapsed, where they were read most closely. */
  const seen = { begun: 0, wall: 0, elapsed: 0, offset: 0, times: 0 };
  look();
  let shown: number = Math.max(last(), seen.wall);
  /** A wall clock that has jumped: how far it is from what has elapsed, and since when. */
  let doubted: { readonly offset: number; readonly since: number } | null = null;

  function read(): number {
    const reading: unknown = clock.now();
    if (!isReading(reading)) throw badInput("now", reading, "a clock that answers milliseconds since 1970");
    return reading;
  }

  /** Reads both. If a moment passes in between, it shows in how far they are apart, and is counted. */
  function look(): void {
    const begun = clock.elapsed();
    const wall = read();
    const offset = wall - begun;
    if (offset < seen.offset || offset > seen.offset + BLINK_MS) seen.offset = offset;
    seen.begun = begun;
    seen.times = 0;
    seen.wall = wall;
    seen.elapsed = Math.max(seen.elapsed, wall - seen.offset);
  }

  const lastShown = (): Instant => instant(Math.max(shown, last()));

  function now(): Instant {
    if (read() === seen.wall && seen.times++ < SAME_MAX) return lastShown();
    goOn();
    onReading?.(shown - seen.wall);
    return instant(shown);
  }

  function goOn(): void {
    const before = seen.elapsed;
    look();
    const { wall } = seen;
    const passed = seen.elapsed - before;
    const onward = Math.max(shown + passed, last());
    if (wall > onward + maxJumpMs() && !hasStayed()) shown = onward;
    else {
      doubted = null;
      shown = Math.max(wall, shown + passed / SLOWLY, last());
    }
  }

  /** Whether the wall clock has been there for a minute, or there about. */
  function hasStayed(): boolean {
    const { begun, offset } = seen;
    if (doubted === null || Math.abs(offset - doubted.offset) > maxJumpMs()) doubted = { offset, since: begun };
    return begun - doubted.since >= BELIEVED_AFTER_MS;
  }

  function nowOrLast(): Instant {
    try {
      return now();
    } catch {
      return lastShown();
    }
  }

  return {
    now,
    nowOrLast,
    begin() {
      try {
        goOn();
      } catch {
        // Its last good reading counts.
      }
      if (doubted === null) shown = Math.max(last(), seen.wall);
      onReading?.(shown - seen.wall);
    },
    aheadMs: () => Math.trunc(shown - seen.wall),
    alarmFor(at) {
      const left = Math.max(0, at - shown);
      const ahead = Math.max(0, shown - seen.wall);
      const untilThere = left < ahead ? left * SLOWLY : left + ahead;
      const untilBelieved = doubted === null ? LOOK_MS : doubted.since + BELIEVED_AFTER_MS - seen.begun;
      // From before the wall clock was read: an alarm may come a little early, and never late.
      return seen.begun + Math.min(untilThere, untilBelieved, LOOK_MS);
    },
  };
}
