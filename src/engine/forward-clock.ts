/**
 * The machine's clock without its steps back: for spans of time, which nobody should have to live through twice.
 *
 * What lasts "a lease" or "a second" is counted by this one. A clock that was set back by an hour would otherwise make
 * an hour and a second of it.
 */
import type { Host } from "./host.ts";

export type ForwardClock = {
  now(): number;
  /** What the machine's clock says then, if it is not set meanwhile. */
  asHostTime(instant: number): number;
};

export function createForwardClock(host: Host): ForwardClock {
  let last = host.now();
  let ahead = 0;
  return {
    now() {
      const reading = host.now();
      if (reading < last) ahead += last - reading;
      last = reading;
      return reading + ahead;
    },
    asHostTime: (instant) => instant - ahead,
  };
}
