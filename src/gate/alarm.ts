/**
 * One timer for the next instant that matters.
 *
 * Setting a timer per permit would cost more than the permit. So there is one: an earlier need moves it, a later one
 * lets it ring, and the gate then looks again. It may ring for nothing; it never rings too late.
 *
 * It keeps the process alive only while a call waits: a script that awaits a permit must not end before it comes, and
 * one that is done must not linger for a lease.
 *
 * A date that is turned by hand gives no sign when it is turned. If the caller brings `now` and no clock, the alarm
 * looks at it every HAND_TURNED_LOOK_MS while a call waits.
 */
import { type CancelAlarm, type Clock, ringAfter } from "../std/index.ts";

const HAND_TURNED_LOOK_MS = 20;

export class Alarm {
  private readonly ring: () => void;
  private readonly clock: Pick<Clock, "elapsed" | "ringAt">;
  private readonly isHandTurned: boolean;
  private at: number = Number.POSITIVE_INFINITY;
  private cancel: CancelAlarm | null = null;
  private isNeeded = false;

  constructor(options: { ring: () => void; clock: Pick<Clock, "elapsed" | "ringAt">; isHandTurned: boolean }) {
    this.clock = options.clock;
    this.isHandTurned = options.isHandTurned;
    this.ring = () => {
      this.at = Number.POSITIVE_INFINITY;
      this.cancel = null;
      options.ring();
    };
  }

  /** Rings at `at` or before. */
  set(at: number, now: number): void {
    if (at >= this.at) return;
    this.at = at;
    this.start(Math.max(1, at - now));
  }

  /** Whether a call waits for it. */
  need(isNeeded: boolean, now: number): void {
    if (this.isNeeded === isNeeded) return;
    this.isNeeded = isNeeded;
    if (isNeeded && this.isHandTurned && this.cancel !== null) this.start(Math.max(1, this.at - now));
    else this.cancel?.keepAlive?.(isNeeded);
  }

  clear(): void {
    this.cancel?.();
    this.at = Number.POSITIVE_INFINITY;
    this.cancel = null;
  }

  private start(delayMs: number): void {
    this.cancel?.();
    const ms = this.isHandTurned && this.isNeeded ? Math.min(delayMs, HAND_TURNED_LOOK_MS) : delayMs;
    this.cancel = ringAfter(this.clock, ms, this.ring, { keepAlive: this.isNeeded });
  }
}
