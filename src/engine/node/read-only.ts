/**
 * Whether the journal takes anything at the moment.
 *
 * A journal without room can be read: this node goes on to answer reads and says why it takes nothing else. It is full
 * once it has refused a batch or a word of this node for want of room. It has room again once something was committed,
 * or, where nobody writes, once it takes a node's word and has refused nothing for a while.
 */
import { LogFailure } from "../../log/index.ts";
import type { Clock } from "../../std/index.ts";

/** Longer than the longest rest of a node before it tries to lead again. */
const QUIET_MS = 10_000;

export type ReadOnly = {
  /** Why nothing can be written; null if it can, as far as this node knows. */
  reason(): string | null;
  /** For how long nothing could be written; 0 if it can. */
  forMs(): number;
  /** Whether the journal has failed for want of room, which is taken down with its last event as far as is known. */
  isFull(failure: unknown, last: number): boolean;
  /** The journal has taken this node's word. */
  heard(): void;
  /** The log is applied up to here: what is newer than a refusal was committed after it. */
  committed(seq: number): void;
};

export function createReadOnly(clock: Clock, onWarning: (message: string) => void): ReadOnly {
  let refused: { readonly reason: string; readonly since: number; readonly at: number; readonly last: number } | null =
    null;

  function hasRoom(): void {
    refused = null;
    onWarning("the journal takes events again: this node is no longer read-only");
  }
  return {
    reason: () => refused?.reason ?? null,
    forMs: () => (refused === null ? 0 : clock.elapsed() - refused.since),
    isFull(failure, last) {
      if (!(failure instanceof LogFailure) || failure.code !== "journal-full") return false;
      const { message } = failure;
      if (refused === null) onWarning(`READ-ONLY, since nothing can be written: ${message} It goes on by itself then.`);
      const at = clock.elapsed();
      refused = { reason: message, since: refused?.since ?? at, at, last: Math.max(last, refused?.last ?? 0) };
      return true;
    },
    heard: () => {
      if (refused !== null && clock.elapsed() - refused.at >= QUIET_MS) hasRoom();
    },
    committed: (seq) => {
      if (refused !== null && seq > refused.last) hasRoom();
    },
  };
}
