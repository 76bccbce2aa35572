/**
 * Who hears of every commit: metrics, logs, spans.
 *
 * A listener gets the events as they are in memory, together with how long the log took and where it now ends. It costs
 * nobody a second reading of the log. What was applied before anybody listened may be missing in the first batch, and
 * the hash of a body that the log's thread fills in (log/format/deferred-hashes.ts) is not there yet. A listener that
 * throws is its
 * host's bug, and must not stop the writer: what it throws is a warning.
 */
import type { Applied, Commit } from "./group-commit.ts";

export type CommitListener = (batch: readonly Applied[], commit: Commit) => void;
export type CommitWatch = {
  /** Whether anybody listens. */
  isHeard(): boolean;
  /** Answers how to stop hearing. */
  watch(listener: CommitListener): () => void;
  onCommitted: CommitListener;
};

export function createCommitWatch(onWarning: (message: string) => void): CommitWatch {
  const listeners = new Set<CommitListener>();
  return {
    isHeard: () => listeners.size > 0,
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    onCommitted(batch, commit) {
      for (const listener of listeners) {
        try {
          listener(batch, commit);
        } catch (error) {
          onWarning(`a listener to commits failed: ${String(error)}`);
        }
      }
    },
  };
}
