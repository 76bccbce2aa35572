/**
 * One timer for the next instant that matters.
 *
 * Setting a timer per permit would cost more than the permit. So there is one: an earlier need moves it, a later one
 * lets it ring, and whoever is woken looks again. It may ring for nothing; it never rings too late.
 *
 * It keeps the process alive only while someone waits: a script that awaits a permit must not end before it comes,
 * and one that is done must not linger for a lease.
 *
 * A clock turned by hand gives no sign when it is turned. If the caller brings a clock but no timer, the alarm looks
 * at the clock every HAND_CLOCK_LOOK_MS while someone waits.
 */

import type { SetTimer } from "./gate-input.ts";

const TIMER_MS_MAX = 2 ** 30;
const HAND_CLOCK_LOOK_MS = 20;

export class Alarm {
  private readonly ring: () => void;
  private readonly setTimer: SetTimer | undefined;
  private readonly isHandClock: boolean;
  private at: number = Number.POSITIVE_INFINITY;
  private cancel: (() => void) | null = null;
  private timeout: NodeJS.Timeout | null = null;
  private isNeeded = false;

  constructor(options: { ring: () => void; setTimer: SetTimer | undefined; isHandClock: boolean }) {
    this.setTimer = options.setTimer;
    this.isHandClock = options.isHandClock && options.setTimer === undefined;
    this.ring = () => {
      this.forget();
      options.ring();
    };
  }

  /** Rings at `at` or before. */
  set(at: number, now: number): void {
    if (at >= this.at) return;
    this.clear();
    this.at = at;
    this.start(Math.max(1, at - now));
  }

  /** Whether someone waits for it. */
  need(isNeeded: boolean): void {
    if (this.isNeeded === isNeeded) return;
    this.isNeeded = isNeeded;
    if (isNeeded && this.isHandClock && this.timeout !== null) {
      clearTimeout(this.timeout);
      this.start(HAND_CLOCK_LOOK_MS);
    } else if (isNeeded) this.timeout?.ref();
    else this.timeout?.unref();
  }

  clear(): void {
    this.cancel?.();
    if (this.timeout !== null) clearTimeout(this.timeout);
    this.forget();
  }

  private start(delayMs: number): void {
    const delayMsMax = this.isHandClock && this.isNeeded ? HAND_CLOCK_LOOK_MS : TIMER_MS_MAX;
    if (this.setTimer !== undefined) {
      this.cancel = this.setTimer(this.ring, Math.min(delayMs, delayMsMax));
      return;
    }
    this.timeout = setTimeout(this.ring, Math.min(delayMs, delayMsMax));
    if (!this.isNeeded) this.timeout.unref();
  }

  private forget(): void {
    this.at = Number.POSITIVE_INFINITY;
    this.cancel = null;
    this.timeout = null;
  }
}
