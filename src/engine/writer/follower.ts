/**
 * The writer of a node that does not lead: it writes nothing, and applies what the leader has had committed.
 *
 * Everything around a writer works with it unchanged: reads, waits and the feed rest on what is applied, which is
 * committed, and hooks are called as in a leader. A command is refused: only a leader decides. Between two slices of
 * a long batch everything else has its turn.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { evolve } from "../../core/index.ts";
import type { MutableState } from "../../core/model/index.ts";
import { decodeEvent, toHex } from "../../log/format/index.ts";
import type { Head, LogRecord, ReadBatch } from "../../log/index.ts";
import { type Clock, inSlices } from "../../std/index.ts";
import { DroverError } from "../base/drover-error.ts";
import { type Applied, appliedOf, stopOf } from "./group-commit.ts";
import { type LogClock, logClockOver } from "./log-clock.ts";
import { broken, closed, type Writer, type WriterHooks } from "./writer.ts";

export type FollowerOptions = {
  readonly state: MutableState;
  /** Batches behind an event as they are committed, until the signal fires. */
  readonly follow: (after: Seq, signal: AbortSignal) => AsyncIterable<ReadBatch>;
  readonly clock: Clock;
  /** That of the lives before; absent: one of its own. */
  readonly logClock?: LogClock;
  readonly hooks: Pick<WriterHooks, "onApplied" | "onCommitted" | "onStopped">;
};

export function startFollower(options: FollowerOptions): Writer {
  const { state, follow, clock, hooks, logClock = logClockOver(clock, () => state) } = options;
  const ending = new AbortController();
  let stopped: DroverError | null = null;

  function* applying(batch: ReadBatch): Generator<void> {
    const applied: Applied[] = [];
    // A life may begin in the middle of a batch: the one before ended there.
    for (let at = state.seq + 1; at < batch.firstSeq + batch.records.length && stopped === null; at++) {
      const { event } = decodeEvent((batch.records[at - batch.firstSeq] as LogRecord).bytes, seq(at));
      try {
        evolve(state, event);
        hooks.onApplied(event);
      } catch (error) {
        throw broken(error);
      }
      applied.push(appliedOf(state, event));
      yield;
    }
    if (stopped === null) hooks.onCommitted(applied, { head: headOf(batch), appendMs: 0 });
  }

  async function applyAll(): Promise<void> {
    try {
      for await (const batch of follow(seq(state.seq), ending.signal)) {
        if (stopped !== null) return;
        await inSlices(applying(batch), clock);
      }
      // The stream of a log that was closed ends by itself.
      stop(closed());
    } catch (error) {
      stop(stopOf(error));
    }
  }

  function stop(error: DroverError): void {
    if (stopped !== null) return;
    stopped = error;
    ending.abort();
    hooks.onStopped(error);
  }

  const done = applyAll();

  return {
    state,
    committedSeq: () => seq(state.seq),
    now: logClock.nowOrLast,
    sureNow: logClock.now,
    aheadMs: logClock.aheadMs,
    alarmFor: logClock.alarmFor,
    execute() {
      throw stopped ?? notLeading();
    },
    run: async () => {
      throw stopped ?? notLeading();
    },
    settled: async () => {
      if (stopped !== null) throw stopped;
    },
    poke: () => {},
    stopAdmitting: () => {},
    stop,
    async close(reason = closed()) {
      stop(reason);
      await done;
    },
  };
}

export const notLeading = (): DroverError =>
  new DroverError("no_leader", "this node follows, and only the leader of its cluster decides; try again there");

const headOf = ({ firstSeq, records, hashes, priorHash, epoch, batchId }: ReadBatch): Head => ({
  seq: seq(firstSeq + records.length - 1),
  hash: toHex(hashes.at(-1) ?? priorHash),
  epoch,
  batchId,
});
