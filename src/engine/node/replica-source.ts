/**
 * The replica of a node, as other nodes and copies read it: beside its writer, out of the data directory.
 */
import { seq } from "../../core/base/index.ts";
import { historyFrames, type NodeDoor, replicaFrames } from "../../log/shared/index.ts";

/** What others may read of a data directory, as streams of bytes (log/shared/frames.ts). */
export type ReplicaSource = {
  /** Where the history begins and ends, and what is behind an event. */
  history(after: number | null): AsyncIterable<Uint8Array>;
  /** All that a replica needs to begin where this one begins. */
  beginning(): AsyncIterable<Uint8Array>;
  /** Whether a token is that of a node of the same journal, for this one. */
  isNode(token: string): boolean;
};

/** `door`: of a node; null where nodes share no secret, and of a server alone. */
export const replicaSource = (directory: string, door: NodeDoor | null = null): ReplicaSource => ({
  history: (after) => historyFrames(directory, after === null ? null : seq(after)),
  beginning: () => replicaFrames(directory),
  isNode: (token) => door?.isOpenedBy(token) === true,
});
