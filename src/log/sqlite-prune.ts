/**
 * Forgetting the past, a little at a time.
 *
 * Pruning a month of events in one transaction would hold up every append behind it. So it goes in steps
 * of a few rows, each its own transaction that moves the log's beginning (`base`) together with what it
 * deletes; appends run in between, and a crash leaves a log that merely begins earlier. First the batches
 * go, then the payloads beside them, without those that are kept. Payloads kept by an earlier pruning
 * and not named again go too.
 */

import type { Seq } from "../core/brand.ts";
import { seq } from "../core/brand.ts";
import { invariant } from "../core/result.ts";
import { keepEntries } from "./beside.ts";
import { toHex } from "./chain.ts";
import type { Anchor } from "./log.ts";
import type { Database } from "./sqlite-database.ts";

const ROWS_PER_STEP = 32;

export type PruneAsk = {
  /** No event behind this one is touched. */
  readonly limit: Seq;
  /** The seqs whose payloads stay, in any order. */
  readonly keep: Float64Array;
};

export type PruneStep = { readonly base: Anchor; readonly droppedBatches: number; readonly isDone: boolean };

export type Pruning = { beginPrune(ask: PruneAsk): null; stepPrune(): PruneStep };

export function createPruning(database: Database): Pruning {
  let ask: PruneAsk | null = null;
  let blocksDone = seq(0);

  function step({ limit, keep }: PruneAsk): PruneStep {
    const droppedBatches = dropBatches(database, limit);
    const { base } = database.source();
    if (droppedBatches > 0) return { base, droppedBatches, isDone: false };
    const blocks = database.blocks({ from: seq(blocksDone + 1), to: base.seq, limit: ROWS_PER_STEP });
    for (const block of blocks) {
      const kept = keepEntries(block, (at) => isIn(keep, at));
      if (kept === null) database.dropBlock(block.firstSeq);
      else if (kept.bytes.length !== block.bytes.length) database.putBlock(kept);
      blocksDone = block.firstSeq;
    }
    database.dropCheckpoints(base.seq);
    return { base, droppedBatches, isDone: blocks.length === 0 };
  }
  return {
    beginPrune: (next) => {
      ask = { limit: next.limit, keep: next.keep.sort() };
      blocksDone = seq(0);
      return null;
    },
    stepPrune: () => {
      invariant(ask !== null, "a pruning is begun before it is continued");
      const current = ask;
      return database.write("prune", () => step(current));
    },
  };
}

/** Drops the next few batches that end at or before `limit`, and moves the base behind them. */
function dropBatches(database: Database, limit: Seq): number {
  const ends = database.firstEnds(ROWS_PER_STEP);
  let base: Anchor | null = null;
  let count = 0;
  for (const { firstSeq, end } of ends) {
    if (end.seq > limit) break;
    database.dropRow(firstSeq);
    base = { seq: end.seq, hash: toHex(end.hash) };
    count++;
  }
  if (base !== null) database.putBase(base);
  return count;
}

function isIn(sorted: Float64Array, wanted: number): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === wanted;
}
