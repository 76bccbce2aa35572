/**
 * What a call answers, kept up to date while a component shows it.
 *
 * It is asked again when a pulse says that something has happened, at most so often. What also changes while nothing
 * happens (a window that slides, output that grows) is asked again as time passes, and so is what failed in a way that
 * passes: a server that cannot answer for now. None of it while nobody looks at the tab. What was there stays until the
 * next answer has come, so nothing flickers.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answered, Asked } from "../../protocol/index.ts";
import type { CallName } from "../../protocol/wire/index.ts";
import { ask, knownSeq, Refused, Unreachable, wrote } from "./ask.ts";
import { live } from "./live.ts";
import { createLogTail, type LogTail } from "./log-tail.ts";

export type Called<Value> = {
  readonly data: Value | null;
  readonly error: Error | null;
  /** Asks again now. */
  readonly again: () => void;
};
type Options = {
  /** How often at most it is asked for again. */
  readonly everyMs?: number;
  /** Once and no more, unless the server was away. */
  readonly isStill?: boolean;
  /** It changes without an event, so it is asked for again after so long at the latest. */
  readonly agesMs?: number | undefined;
  /** What is not there so many times in a row will not come: it is asked for no more. */
  readonly missesMax?: number;
};

const EVERY_MS = 1000;

export function useCall<Name extends CallName>(
  name: Name,
  asked: Asked<Name> | null,
  { everyMs = EVERY_MS, isStill = false, agesMs, missesMax = Number.POSITIVE_INFINITY }: Options = {},
): Called<Answered<Name>> {
  const key = asked === null ? null : JSON.stringify([name, asked]);
  const [found, setFound] = useState<{ key: string | null; data: Answered<Name> | null; error: Error | null }>({
    key: null,
    data: null,
    error: null,
  });
  const looking = useRef<() => void>(() => {});
  useEffect(() => {
    if (asked === null) return;
    let misses = 0;
    const looker = createLooker({
      everyMs,
      look: async (signal) => {
        const data = await ask(name, asked, signal);
        misses = 0;
        setFound({ key, data, error: null });
      },
      failed: (error) => {
        misses = error instanceof Refused && error.status === 404 ? misses + 1 : 0;
        setFound((last) => ({ key, data: last.key === key ? last.data : null, error }));
      },
    });
    looking.current = looker.now;
    looker.now();
    const soon = (): void => (!isStill && misses < missesMax ? looker.soon() : undefined);
    const stop = onPulse(soon);
    const stopAging = agesMs === undefined ? () => {} : onAge(agesMs, soon);
    return () => {
      stop();
      stopAging();
      looker.stop();
    };
  }, [key, everyMs, isStill, agesMs, missesMax]);
  const isOwn = found.key === key;
  return { data: isOwn ? found.data : null, error: isOwn ? found.error : null, again: () => looking.current() };
}

/** Calls back when something has happened or was done here, or the server is found again. Answers how to stop. */
export function onPulse(hear: () => void): () => void {
  let { pulse, found } = live.now();
  let done = wrote.now();
  const look = (): void => {
    if (document.hidden) return;
    const next = live.now();
    const isSame = next.pulse?.seq === pulse?.seq && next.pulse?.serverId === pulse?.serverId;
    if (isSame && next.found === found && wrote.now() === done) return;
    ({ pulse, found } = next);
    done = wrote.now();
    hear();
  };
  const stops = [live.listen(look), wrote.listen(look)];
  document.addEventListener("visibilitychange", look);
  return () => {
    for (const stop of stops) stop();
    document.removeEventListener("visibilitychange", look);
  };
}

/** Calls back every so often while somebody looks and the server is there. Answers how to stop. */
function onAge(everyMs: number, hear: () => void): () => void {
  const timer = window.setInterval(() => {
    if (!document.hidden && live.now().state === "live") hear();
  }, everyMs);
  return () => clearInterval(timer);
}

type Look = {
  /** How often at most. */
  readonly everyMs?: number;
  readonly look: (signal: AbortSignal) => Promise<void>;
  readonly failed: (error: Error) => void;
};

/** Looks now, and whenever a pulse says that something has happened: one look at a time, no more often than said. */
export function lookAtPulses(parts: Look): () => void {
  const looker = createLooker(parts);
  looker.now();
  const stop = onPulse(looker.soon);
  return () => {
    stop();
    looker.stop();
  };
}

/** Reads the log to its end now and, unless it is of the past, whenever something has happened. Answers how to stop. */
export function followLog({
  failed,
  isPast = false,
  ...tail
}: LogTail & { readonly failed: (error: Error) => void; readonly isPast?: boolean }): () => void {
  const look = createLogTail(tail, {
    ask: (query, signal) => ask("events", { query }, signal),
    pulse: () => live.now().pulse,
    known: knownSeq,
  });
  if (!isPast) return lookAtPulses({ look, failed });
  const looker = createLooker({ look, failed });
  looker.now();
  return looker.stop;
}

/** What the server cannot answer for now is looked for again after so long. */
const RETRY_MS = 2000;
const passes = (error: Error): boolean =>
  error instanceof Unreachable || (error instanceof Refused && (error.status >= 500 || error.status === 429));

type Looker = { now(): void; soon(): void; stop(): void };

/** One look at a time, and no more often than said; again by itself after a failure that passes. */
export function createLooker({ everyMs = 0, look, failed }: Look): Looker {
  const controller = new AbortController();
  const { signal } = controller;
  let isBusy = false;
  let isDue = false;
  let lastAt = Number.NEGATIVE_INFINITY;
  let timer = 0;
  let retryTimer = 0;
  async function now(): Promise<void> {
    clearTimeout(timer);
    clearTimeout(retryTimer);
    timer = 0;
    if (isBusy) {
      isDue = true;
      return;
    }
    isBusy = true;
    isDue = false;
    lastAt = performance.now();
    await look(signal).catch((error: Error) => {
      if (signal.aborted) return;
      failed(error);
      if (passes(error)) retry();
    });
    isBusy = false;
    if (isDue) soon();
  }
  function soon(): void {
    if (timer !== 0 || signal.aborted) return;
    if (isBusy) {
      isDue = true;
      return;
    }
    timer = window.setTimeout(() => void now(), Math.max(0, lastAt + everyMs - performance.now()));
  }
  function retry(): void {
    const isIdle = (): boolean => document.hidden || live.now().state !== "live";
    retryTimer = window.setTimeout(() => (isIdle() ? retry() : void now()), RETRY_MS);
  }
  return {
    now: () => void now(),
    soon,
    stop: () => {
      clearTimeout(timer);
      clearTimeout(retryTimer);
      controller.abort();
    },
  };
}

/** The time, anew every so often, by the server's clock. */
export function useNow(everyMs = 1000): number {
  const read = (): number => Date.now() + live.now().aheadMs;
  const [now, setNow] = useState(read);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(read()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
