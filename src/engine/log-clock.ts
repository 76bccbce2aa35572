/**
 * Log time: never back, and never still.
 *
 * The instants in the log must not go back, whatever the machine's clock does. Standing still until a clock
 * that was set back has caught up would keep that promise too, but every rest, timeout and deadline would
 * stand still with it, for as long as the clock was wrong. So while log time is ahead of the machine's clock
 * it goes on at half the pace: nothing hangs, and the two meet again in twice the time they were apart.
 */
import { type Instant, instant } from "../core/brand.ts";

/** Half the pace: how many milliseconds of the machine's clock one of log time takes while it is ahead. */
const SLOWLY = 2;

export type LogClock = {
  now(): Instant;
  /** When, by the machine's clock, log time will be there. */
  machineTimeOf(at: Instant): number;
};

export function createLogClock(machine: () => number, last: Instant): LogClock {
  let shown: number = last;
  let seen = machine();

  return {
    now() {
      const reading = machine();
      const passed = Math.max(0, reading - seen);
      shown = shown > seen ? Math.max(reading, shown + passed / SLOWLY) : Math.max(reading, shown);
      seen = reading;
      return instant(shown);
    },
    machineTimeOf(at) {
      const meeting = seen + SLOWLY * Math.max(0, shown - seen);
      return at >= meeting ? at : seen + Math.max(0, at - shown) * SLOWLY;
    },
  };
}
