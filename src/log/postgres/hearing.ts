/**
 * Hearing of changes at once: one connection that listens, and a poll behind it.
 *
 * What is heard is a hint only; whoever waits then looks for himself. A connection through a pooler may look as if it
 * listened and hear nothing. So the poll watches: if it finds what nobody announced, it comes often, until something is
 * heard again.
 */
import { type Clock, ringAfter } from "../../std/index.ts";
import type { PostgresAddress } from "./address.ts";
import { type Connection, connect, firstAnswer } from "./lanes.ts";
import { channelOf } from "./statements.ts";

/** How often is looked where everything is heard, and where it is not. */
const POLL_MS = 1000;
const DEAF_POLL_MS = 50;
const AGAIN_MS = 1000;

export type Hearing = {
  /** How many changes were heard so far. */
  count(): number;
  /**
   * Resolves when more than `since` changes were heard, it is time to look, or the signal ends it. True unless it was
   * only time.
   */
  next(since: number, signal: AbortSignal, pollMs?: number): Promise<boolean>;
  /** Somebody found a change that was not announced. */
  missed(): void;
  close(): void;
};

export function createHearing(address: PostgresAddress, clock: Clock): Hearing {
  const waiting = new Set<() => void>();
  let connection: Connection | null = null;
  let isBegun = false;
  let isClosed = false;
  let isHeard = false;
  let heard = 0;
  let cancelAgain = (): void => {};

  function onHeard(): void {
    isHeard = true;
    heard++;
    for (const wake of [...waiting]) wake();
  }
  function again(): void {
    isHeard = false;
    connection = null;
    if (!isClosed) cancelAgain = ringAfter(clock, AGAIN_MS, () => void listen(), { keepAlive: false });
  }
  async function listen(): Promise<void> {
    try {
      const made = await connect(address, address.listening, clock);
      if (isClosed) return made.destroy();
      connection = made;
      made.client.on("notification", onHeard);
      made.client.once("end", again);
      await firstAnswer(made, `LISTEN ${channelOf(address.schema)}`, clock);
      onHeard();
    } catch {
      // Whoever asks the journal something hears what is wrong with it; here only the poll is left.
      if (connection === null) again();
      else connection.destroy();
    }
  }
  return {
    count: () => heard,
    next: (since, signal, pollMs = isHeard ? POLL_MS : DEAF_POLL_MS) => {
      if (!isBegun) void listen();
      isBegun = true;
      return new Promise((resolve) => {
        const cancel = ringAfter(clock, pollMs, () => done(false));
        const wake = (): void => done(true);
        function done(isByChange: boolean): void {
          waiting.delete(wake);
          signal.removeEventListener("abort", wake);
          cancel();
          resolve(isByChange);
        }
        waiting.add(wake);
        signal.addEventListener("abort", wake);
        if (signal.aborted || heard > since) wake();
      });
    },
    missed: () => {
      isHeard = false;
    },
    close: () => {
      isClosed = true;
      cancelAgain();
      connection?.destroy();
    },
  };
}
