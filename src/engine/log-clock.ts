/**
 * Log time: never back, and never still.
 *
 * The instants in the log must not go back, whatever the machine's clock does. Standing still until a clock
 * that was set back has caught up would keep that promise too, but every rest, timeout and deadline would
 * stand still with it, for as long as the clock was wrong. So while log time is ahead of the machine's clock
 * it goes on at half the pace: nothing hangs, and the two meet again in twice the time they were apart.
 *
 * A reading that is no instant at all (NaN, undefined, text) never becomes time: one such number in the log would
 * make it unreadable for ever. `now` refuses it, so whoever asked is told; `nowOrLast` shows the last good time, for
 * what must go on whatever the clock says.
 */
import { type Instant, instant } from "../core/brand.ts";
import { badInput } from "./drover-error.ts";

/** Half the pace: how many milliseconds of the machine's clock one of log time takes while it is ahead. */
const SLOWLY = 2;
/** The end of the year 9999: what lies behind it cannot be written as a date. */
const READING_MAX = 253_402_300_799_999;

/** Whether a clock's reading is an instant. */
export const isReading = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= READING_MAX;

export type LogClock = {
  /** Refuses a reading that is no instant. */
  now(): Instant;
  /** The last good time if the reading is no instant. */
  nowOrLast(): Instant;
  /** When, by the machine's clock, log time will be there. */
  machineTimeOf(at: Instant): number;
};

export function createLogClock(machine: () => number, last: Instant): LogClock {
  let shown: number = last;
  let seen = read();

  function read(): number {
    const reading: unknown = machine();
    if (!isReading(reading)) throw badInput("now", reading, "a clock that answers milliseconds since 1970");
    return reading;
  }

  function now(): Instant {
    const reading = read();
    const passed = Math.max(0, reading - seen);
    shown = shown > seen ? Math.max(reading, shown + passed / SLOWLY) : Math.max(reading, shown);
    seen = reading;
    return instant(shown);
  }

  return {
    now,
    nowOrLast() {
      try {
        return now();
      } catch {
        return instant(shown);
      }
    },
    machineTimeOf(at) {
      const meeting = seen + SLOWLY * Math.max(0, shown - seen);
      return at >= meeting ? at : seen + Math.max(0, at - shown) * SLOWLY;
    },
  };
}
