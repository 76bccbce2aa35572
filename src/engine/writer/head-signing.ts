/**
 * When the head of the log is to be signed by the clock, as `log.signEvery` has it: before so much time is unsigned.
 * Time is that of the events, so that a reader of the log can check it. What is left unsigned when nothing more happens
 * is signed by an alarm. The log, which knows no instants, signs by itself what it can count: the first batch of a
 * life, then every so many events, and its end. A rule that is new is told to it with the next batch.
 */
import type { Log, SignRule } from "../../log/index.ts";

export type HeadSigning = {
  /** The rule to sign by, if the head is to be signed with the batch whose last event happened then. */
  dueWith(at: number): SignRule | null;
  stop(): void;
};

export function createHeadSigning(deps: {
  readonly log: Log;
  readonly rule: () => SignRule;
  /** Rings after so many milliseconds; answers how to call it off. */
  readonly later: (ms: number, ring: () => void) => () => void;
}): HeadSigning {
  const { log, rule, later } = deps;
  /** The rule that the log got last. */
  let current: SignRule | null = null;
  /** When the last signed event happened, and the last one that left. */
  let since = 0;
  let left = 0;
  let cancel: (() => void) | null = null;

  function stop(): void {
    cancel?.();
    cancel = null;
  }
  function signAlone(): void {
    cancel = null;
    since = left;
    current = rule();
    // A log that cannot sign cannot store either, and says so at the next batch.
    log.sign?.(current).catch(() => {});
  }
  return {
    stop,
    dueWith(at) {
      const { events, time } = rule();
      left = at;
      const isKnown = current !== null && current.events === events && current.time === time;
      if (isKnown && at - since < time) {
        if (log.sign !== undefined) cancel ??= later(time, signAlone);
        return null;
      }
      stop();
      since = at;
      current = { events, time };
      return current;
    },
  };
}
