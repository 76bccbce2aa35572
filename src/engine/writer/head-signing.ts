/**
 * When the head of the log is to be signed, by `log.signEvery`: with the first batch of a life, then before so many
 * events or so much time are unsigned. Time is that of the events, so that a reader of the log can check it. What is
 * left unsigned when nothing more happens is signed by an alarm; a log that is closed signs its head itself.
 */
import type { Log, SignRule } from "../../log/index.ts";

/** A batch on its way: how many events it has, and when the last of them happened. */
export type Leaving = { readonly count: number; readonly at: number };

export type HeadSigning = {
  /** The rule to sign by, if the head is to be signed with this batch. */
  dueWith(batch: Leaving): SignRule | null;
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
  let unsigned = 0;
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
    unsigned = 0;
    since = left;
    current = rule();
    // A log that cannot sign cannot store either, and says so at the next batch.
    log.sign?.(current).catch(() => {});
  }
  return {
    stop,
    dueWith({ count, at }) {
      const { events, time } = rule();
      left = at;
      unsigned += count;
      const isKnown = current !== null && current.events === events && current.time === time;
      if (isKnown && unsigned < events && at - since < time) {
        if (log.sign !== undefined) cancel ??= later(time, signAlone);
        return null;
      }
      stop();
      unsigned = 0;
      since = at;
      current = { events, time };
      return current;
    },
  };
}
