/**
 * Waiting for a journal that is out of reach or full, and telling about it: a line at first, one every few seconds, and
 * one when it is back.
 */
import type { Clock } from "../../std/index.ts";
import type { LogFailure } from "../log.ts";
import { paused } from "./changes.ts";

const FIRST_MS = 100;
const PAUSE_MS_MAX = 2000;
const TELL_EVERY_MS = 5000;

export type Patience = {
  /** Waits a little, longer each time. False if the signal ended it. */
  wait(failure: LogFailure, signal: AbortSignal): Promise<boolean>;
  /** It has answered. */
  isBack(): void;
};

export function createPatience(clock: Clock, onNotice: (line: string) => void): Patience {
  let pauseMs = FIRST_MS;
  let told: number | null = null;
  return {
    wait: (failure, signal) => {
      const now = clock.elapsed();
      if (told === null || now - told >= TELL_EVERY_MS) {
        told = now;
        onNotice(`${failure.message}; waiting for it`);
      }
      const ms = pauseMs;
      pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2);
      return paused(clock, ms, signal);
    },
    isBack: () => {
      if (told !== null) onNotice("the journal answers again");
      told = null;
      pauseMs = FIRST_MS;
    },
  };
}
