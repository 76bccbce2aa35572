/**
 * Long polls of workers, one at a time each: who waits, what it was told, and which of its syncs was the last.
 *
 * A poll ends when there is news, when its time is over, when a newer sync of the same worker arrives, when its caller
 * goes away or when the engine stops. What a worker was told is remembered for a moment, so that one that is
 * busy stopping something is not told so in a tight loop.
 */
import type { WorkerId } from "../../core/base/index.ts";
import type { Clock } from "../../std/index.ts";
import type { DroverError } from "../writer/drover-error.ts";

/** A poll looks again by itself this often, so that what a lost answer said is said again. */
const LOOK_MS = 1000;

/** When it was told first, and last. */
type Told = { readonly first: number; readonly last: number };
type Line = { last: number; told: ReadonlyMap<string, Told>; wake: (() => void) | null; rounds: number };
type Wait = {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly hasNews: () => boolean;
};
export type PollLine = {
  /** The highest number of a sync so far. */
  last(worker: WorkerId): number;
  /** A new sync has come: an older one that waits is answered. */
  advance(worker: WorkerId, n: number | undefined): void;
  wait(worker: WorkerId, wait: Wait): Promise<void>;
  wake(worker: WorkerId): void;
  tell(worker: WorkerId, keys: readonly string[]): void;
  /** Whether it was told this in the last answer, and no longer ago than this. */
  wasTold(worker: WorkerId, key: string, withinMs?: number): boolean;
  /** For how long every answer has told it this; null if the last one did not. */
  toldForMs(worker: WorkerId, key: string): number | null;
  forget(worker: WorkerId): void;
  /** Whether no worker has spoken yet. */
  isEmpty(): boolean;
  stop(error: DroverError): void;
};

export function createPollLine(clock: Clock): PollLine {
  const lines = new Map<WorkerId, Line>();
  let stopped: DroverError | null = null;

  function lineOf(worker: WorkerId): Line {
    let line = lines.get(worker);
    if (line === undefined) {
      line = { last: 0, told: new Map(), wake: null, rounds: 0 };
      lines.set(worker, line);
    }
    return line;
  }

  async function wait(worker: WorkerId, { waitMs, signal, hasNews }: Wait): Promise<void> {
    const line = lineOf(worker);
    const round = line.rounds;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      line.wake?.();
    };
    const cancel = clock.ringAt(clock.elapsed() + waitMs, end, { keepAlive: false });
    try {
      while (round === line.rounds && lines.get(worker) === line && !hasNews() && !isOver) {
        if (stopped !== null) throw stopped;
        signal?.throwIfAborted();
        await nextLook(line, signal);
      }
    } finally {
      cancel();
    }
    signal?.throwIfAborted();
    if (stopped !== null) throw stopped;
  }

  function nextLook(line: Line, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        cancel();
        signal?.removeEventListener("abort", over);
        if (line.wake === over) line.wake = null;
        resolve();
      };
      const cancel = clock.ringAt(clock.elapsed() + LOOK_MS, over, { keepAlive: false });
      signal?.addEventListener("abort", over, { once: true });
      line.wake = over;
    });
  }

  return {
    last: (worker) => lines.get(worker)?.last ?? 0,
    advance(worker, n) {
      const line = lineOf(worker);
      line.last = Math.max(line.last, n ?? line.last);
      line.rounds++;
      line.wake?.();
    },
    wait,
    wake: (worker) => lines.get(worker)?.wake?.(),
    tell(worker, keys) {
      const now = clock.elapsed();
      const line = lineOf(worker);
      line.told = new Map(keys.map((key) => [key, { first: line.told.get(key)?.first ?? now, last: now }]));
    },
    toldForMs(worker, key) {
      const first = lines.get(worker)?.told.get(key)?.first;
      return first === undefined ? null : clock.elapsed() - first;
    },
    wasTold(worker, key, withinMs = Number.POSITIVE_INFINITY) {
      const last = lines.get(worker)?.told.get(key)?.last;
      return last !== undefined && clock.elapsed() - last < withinMs;
    },
    isEmpty: () => lines.size === 0,
    forget(worker) {
      const line = lines.get(worker);
      lines.delete(worker);
      line?.wake?.();
    },
    stop(error) {
      stopped = error;
      for (const line of lines.values()) line.wake?.();
    },
  };
}
