/**
 * The replica of a node, as other nodes and copies read it: beside its writer, out of the data directory.
 */
import { seq } from "../../core/base/index.ts";
import { historyFrames, isNodeToken, replicaFrames } from "../../log/shared/index.ts";
import type { Clock } from "../../std/index.ts";

/** What others may read of a data directory, as streams of bytes (log/shared/frames.ts). */
export type ReplicaSource = {
  /** Where the history begins and ends, and what is behind an event. */
  history(after: number | null): AsyncIterable<Uint8Array>;
  /** All that a replica needs to begin where this one begins. */
  beginning(): AsyncIterable<Uint8Array>;
  /** Whether a token is that of a node of the same journal, for this one. */
  isNode(token: string): boolean;
};

/** `own`: who this node is, and the secret of its journal; null where there is none. */
export const replicaSource = (
  directory: string,
  clock: Clock,
  own: { readonly self: string; readonly secret: string } | null = null,
): ReplicaSource => ({
  history: (after) => historyFrames(directory, after === null ? null : seq(after)),
  beginning: () => replicaFrames(directory),
  isNode: (token) => own !== null && isNodeToken(token, { ...own, now: clock.now() }),
});
