/**
 * Pulses for all who follow: looked at, and written as text, once a second for all of them together.
 *
 * All wake at the same moment and are told of the same event. What they then ask for is alike too, so one answer serves
 * them all (kept-answers.ts).
 */
import { frameOf } from "../../http/index.ts";
import type { Pulse } from "../../protocol/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";

const PULSE_MS = 1000;

/** Answers what a follower is sent, until its signal fires: how things stand now, and again when that has changed. */
export function createPulses(parts: {
  /** The last event, and whatever else can change: while it is the same, nothing has. */
  readonly standing: () => string;
  readonly now: () => Pulse;
  readonly clock: Clock;
}): (signal: AbortSignal) => AsyncGenerator<string> {
  const { standing, now, clock } = parts;
  const resting = new Set<() => void>();
  let isRinging = false;
  let last = { standing: "", frame: "" };

  function frame(): string {
    const found = standing();
    if (last.standing !== found) {
      const pulse = now();
      last = { standing: found, frame: frameOf(pulse.seq, "pulse", pulse) };
    }
    return last.frame;
  }
  function ring(): void {
    isRinging = false;
    for (const wake of [...resting]) wake();
  }
  /** Until the next beat, which is the same for all. */
  function beat(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        resting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      if (signal.aborted) return resolve();
      signal.addEventListener("abort", wake);
      resting.add(wake);
      if (!isRinging) ringAfter(clock, PULSE_MS, ring, { keepAlive: false });
      isRinging = true;
    });
  }
  return async function* follow(signal) {
    let told = "";
    while (!signal.aborted) {
      const latest = frame();
      if (latest !== told) yield latest;
      told = latest;
      await beat(signal);
    }
  };
}
