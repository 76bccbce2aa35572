/**
 * Forgetting the past, a little at a time.
 *
 * Pruning a month of events in one transaction would hold up every append behind it. So it goes in steps of a few
 * rows, each its own transaction that moves the log's beginning (`base`) together with what it deletes; appends run in
 * between, and a crash leaves a log that merely begins earlier. First every link of what is to go is checked, up to a
 * signed checkpoint: what is gone can be checked no more, so damage must not go with it. Then the payloads that stay
 * are listed with the hashes of their events (`integrity/kept-list.ts`); then the batches go, then the payloads beside
 * them, without those that are kept. Payloads kept by an earlier pruning and not named again go too.
 */
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { type BatchRow, recordBytes } from "../format/batch-row.ts";
import { fromHex, toHex } from "../format/chain.ts";
import { factsOf, hashOfPayload } from "../format/codec.ts";
import { findPayload, keepEntries } from "../format/payload-blocks.ts";
import { createListHash, keptListSeal } from "../integrity/kept-list.ts";
import { type Cursor, hashAt, readPage } from "../integrity/page.ts";
import type { Signer, Verifier } from "../integrity/signing-key.ts";
import { checkpointSeal } from "../integrity/snapshot-rules.ts";
import { type Anchor, corruptAt, LogFailure } from "../log.ts";
import type { Database } from "./database.ts";
import { checkList } from "./kept-check.ts";

const ROWS_PER_STEP = 32;
const ENTRIES_PER_STEP = 256;
const BYTES_PER_STEP: number = 256 * 1024;

export type PruneAsk = {
  /** No event behind this one is touched. */
  readonly limit: Seq;
  /** The seqs whose payloads stay, in any order. */
  readonly keep: Float64Array;
};

export type PruneStep = { readonly base: Anchor; readonly droppedBatches: number; readonly isDone: boolean };

type Pruning = { beginPrune(ask: PruneAsk): null; stepPrune(): PruneStep };

export function createPruning(database: Database, signer: Signer): Pruning {
  let steps: Generator<PruneStep, PruneStep> | null = null;
  return {
    beginPrune({ limit, keep }) {
      const sorted = keep.sort().filter((at, index, all) => at !== all[index - 1]);
      steps = pruneSteps(database, signer, { limit, keep: sorted });
      return null;
    },
    stepPrune() {
      const begun = steps;
      invariant(begun !== null, "a pruning is begun before it is continued");
      return database.write("prune", () => begun.next().value);
    },
  };
}

/** Between two yields lies the work of one transaction. */
function* pruneSteps(database: Database, signer: Signer, ask: PruneAsk): Generator<PruneStep, PruneStep> {
  const { limit, keep } = ask;
  const step = (droppedBatches = 0): PruneStep => ({ base: database.source().base, droppedBatches, isDone: false });
  for (const _ of checkLinks(database, signer, limit)) yield step();
  const inForce = database.keptList()?.run ?? 0;
  for (const _ of writeList(database, signer, ask, inForce)) yield step();
  for (let dropped = dropBatches(database, limit); dropped > 0; dropped = dropBatches(database, limit))
    yield step(dropped);
  const { base } = database.source();
  for (let from = seq(1); ; ) {
    const blocks = database.blocks({ from, to: base.seq, limit: ROWS_PER_STEP });
    for (const block of blocks) {
      const kept = keepEntries(block, (at) => isIn(keep, at));
      if (kept?.firstSeq !== block.firstSeq) database.dropBlock(block.firstSeq);
      if (kept !== null && kept.bytes.length !== block.bytes.length) database.putBlock(kept);
      from = seq(block.firstSeq + 1);
    }
    database.dropCheckpoints(base.seq);
    if (blocks.length === 0 && database.dropKeptBut(inForce + 1, ENTRIES_PER_STEP) === 0)
      return { ...step(), isDone: true };
    yield step();
  }
}

/** Throws `corrupt` where the links of what is to be dropped break, or do not lead to the checkpoint behind it. */
function* checkLinks(database: Database, verifier: Verifier, limit: Seq): Generator<void> {
  const { base } = database.source();
  if (limit <= base.seq) return;
  const anchor = database.checkpoints().find((one) => one.seq >= limit && checkpointSeal.holds(verifier, one));
  for (let cursor: Cursor = { after: base.seq, prior: fromHex(base.hash) }; ; ) {
    const { rows, break: broken } = readPage(database.source(), cursor, BYTES_PER_STEP);
    if (broken !== null) throw new LogFailure("corrupt", broken.message, broken.seq);
    const last = rows.at(-1);
    if (anchor === undefined || last === undefined) throw corruptAt(limit, "no signed checkpoint confirms it");
    const isThere = last.lastSeq >= anchor.seq;
    if (isThere && hashAt(database.source(), anchor.seq) !== anchor.hash)
      throw corruptAt(anchor.seq, "a checkpoint was signed for another hash");
    yield;
    if (isThere) return;
    cursor = { after: last.lastSeq, prior: last.postHash };
  }
}

/** Writes the list of what stays, under the number behind that of the list in force; its last step puts it in force. */
function* writeList(database: Database, signer: Signer, { limit, keep }: PruneAsk, inForce: number): Generator<void> {
  const run = inForce + 1;
  const list = createListHash();
  let row: BatchRow | null = null;

  /** As its event has it, or as it lies there if its event does not say; if that is gone, as the last list has it. */
  function hashFor(at: Seq): string | null {
    if (row === null || at < row.firstSeq || at > row.lastSeq) row = database.rowWith(at);
    const told = row === null ? null : factsOf(recordBytes(row, at), at).payloadHash;
    const known = told ?? database.keptHash(inForce, at);
    if (known !== null || row === null) return known;
    const block = database.blockBefore(at);
    const payload = block === null ? null : findPayload(block, at);
    return payload === null ? null : hashOfPayload(payload);
  }
  yield* checkList(database, signer, ENTRIES_PER_STEP);
  // A list that a crash left half written has the number of this one.
  while (database.dropKeptBut(inForce, ENTRIES_PER_STEP) > 0) yield;
  for (let next = 0; next < keep.length; next += ENTRIES_PER_STEP) {
    for (const at of keep.subarray(next, next + ENTRIES_PER_STEP)) {
      const hash = hashFor(seq(at));
      if (hash === null) continue;
      database.putKept(run, { seq: seq(at), hash });
      list.add(seq(at), hash);
    }
    yield;
  }
  database.putKeptList(keptListSeal.sign(signer, { run, upTo: limit, hash: list.digest() }));
  yield;
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
