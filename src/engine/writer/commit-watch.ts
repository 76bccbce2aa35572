/**
 * Listeners that get every commit: metrics, logs, spans.
 *
 * A listener gets the events as they are in memory, together with how long the log took and where it now ends. The log
 * is not read a second time for it. What was applied before the first listener came may be missing in the first batch,
 * and the hash of a body that the log's thread fills in (log/format/deferred-hashes.ts) is not there yet. A listener
 * that throws is a bug of its program, and must not stop the writer: what it throws is a warning.
 */
import type { Applied, Commit } from "./group-commit.ts";

export type CommitListener = (batch: readonly Applied[], commit: Commit) => void;
export type CommitWatch = {
  /** Whether there is a listener. */
  isHeard(): boolean;
  /** Answers how to stop listening. */
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
