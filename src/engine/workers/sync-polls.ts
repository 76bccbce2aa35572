/**
 * The long polls of workers, one at a time each: which worker waits, of what its last answer notified it, and which of
 * its syncs was the last.
 *
 * A poll ends when there is something new to say, when its time is over, when a newer sync of the same worker arrives,
 * when its caller goes away or when the engine stops. What the last answer said is remembered for a moment, so that a
 * worker which is busy stopping something does not hear the same in a tight loop.
 */
import type { WorkerId } from "../../core/base/index.ts";
import type { Clock } from "../../std/index.ts";
import type { DroverError } from "../base/drover-error.ts";

/** A poll of a worker that was told something looks again after so long: what a lost answer said is said again. */
const LOOK_MS = 1000;

/** When an answer said it first, and last. */
type Notified = { readonly first: number; readonly last: number };
/** What an answer says: an attempt, or a text that stands for it. */
export type NoticeKey = string | object;
type Channel = { last: number; notified: ReadonlyMap<NoticeKey, Notified>; wake: (() => void) | null; rounds: number };
type Wait = {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly hasChanges: () => boolean;
};
export type SyncPolls = {
  /** The highest number of a sync so far. */
  last(worker: WorkerId): number;
  /** A new sync has come: an older one that waits is answered. */
  advance(worker: WorkerId, n: number | undefined): void;
  wait(worker: WorkerId, wait: Wait): Promise<void>;
  wake(worker: WorkerId): void;
  /** Takes down what an answer says, by a key each. */
  markNotified(worker: WorkerId, keys: readonly NoticeKey[]): void;
  /** Whether the last answer said this, and no longer ago than so. */
  wasNotified(worker: WorkerId, key: NoticeKey, withinMs?: number): boolean;
  /** For how long every answer has said this; null if the last one did not. */
  notifiedForMs(worker: WorkerId, key: NoticeKey): number | null;
  forget(worker: WorkerId): void;
  /** Whether no worker has synced yet. */
  isEmpty(): boolean;
  stop(error: DroverError): void;
};

/**
 * Long polls end at common instants, so much early at most: a server that has nothing else to do is woken once for
 * many of them. Among very many it hardly sleeps, and their ends are better spread.
 */
const TOGETHER_MS = 100;
const LONG_MS = 1000;
const TOGETHER_MAX = 2000;

const NOTHING: ReadonlyMap<NoticeKey, Notified> = new Map();

export function createSyncPolls(clock: Clock): SyncPolls {
  const channels = new Map<WorkerId, Channel>();
  let stopped: DroverError | null = null;

  function channelOf(worker: WorkerId): Channel {
    let channel = channels.get(worker);
    if (channel === undefined) {
      channel = { last: 0, notified: NOTHING, wake: null, rounds: 0 };
      channels.set(worker, channel);
    }
    return channel;
  }

  function endOf(waitMs: number): number {
    const at = clock.elapsed() + waitMs;
    return waitMs < LONG_MS || channels.size > TOGETHER_MAX ? at : at - (at % TOGETHER_MS);
  }

  async function wait(worker: WorkerId, { waitMs, signal, hasChanges }: Wait): Promise<void> {
    const channel = channelOf(worker);
    const round = channel.rounds;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      channel.wake?.();
    };
    const cancel = clock.ringAt(endOf(waitMs), end, { keepAlive: false });
    try {
      while (round === channel.rounds && channels.get(worker) === channel && !hasChanges() && !isOver) {
        if (stopped !== null) throw stopped;
        signal?.throwIfAborted();
        await nextLook(channel, signal);
      }
    } finally {
      cancel();
    }
    signal?.throwIfAborted();
    if (stopped !== null) throw stopped;
  }

  function nextLook(channel: Channel, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        cancel?.();
        signal?.removeEventListener("abort", over);
        if (channel.wake === over) channel.wake = null;
        resolve();
      };
      // One that was told nothing has nothing to be told again: it waits without a thought for it.
      const isTold = channel.notified.size > 0;
      const cancel = isTold ? clock.ringAt(clock.elapsed() + LOOK_MS, over, { keepAlive: false }) : null;
      signal?.addEventListener("abort", over, { once: true });
      channel.wake = over;
    });
  }

  return {
    last: (worker) => channels.get(worker)?.last ?? 0,
    advance(worker, n) {
      const channel = channelOf(worker);
      channel.last = Math.max(channel.last, n ?? channel.last);
      channel.rounds++;
      channel.wake?.();
    },
    wait,
    wake: (worker) => channels.get(worker)?.wake?.(),
    markNotified(worker, keys) {
      const channel = channelOf(worker);
      if (keys.length === 0) {
        channel.notified = NOTHING;
        return;
      }
      const now = clock.elapsed();
      const said = new Map<NoticeKey, Notified>();
      const fresh = { first: now, last: now };
      for (const key of keys) {
        const before = channel.notified.get(key);
        said.set(key, before === undefined ? fresh : { first: before.first, last: now });
      }
      channel.notified = said;
    },
    notifiedForMs(worker, key) {
      const first = channels.get(worker)?.notified.get(key)?.first;
      return first === undefined ? null : clock.elapsed() - first;
    },
    wasNotified(worker, key, withinMs = Number.POSITIVE_INFINITY) {
      const last = channels.get(worker)?.notified.get(key)?.last;
      return last !== undefined && clock.elapsed() - last < withinMs;
    },
    isEmpty: () => channels.size === 0,
    forget(worker) {
      const channel = channels.get(worker);
      channels.delete(worker);
      channel?.wake?.();
    },
    stop(error) {
      stopped = error;
      for (const channel of channels.values()) channel.wake?.();
    },
  };
}
