/**
 * Whether the payloads that outlived their events are still what those events said, and the list of them is the one
 * that was signed: a few at a time.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { hashOfPayload } from "../format/codec.ts";
import { collectStored, findPayload } from "../format/payload-blocks.ts";
import { createListHash, type KeptClaim, keptListSeal, payloadProblem } from "../integrity/kept-list.ts";
import type { Verifier } from "../integrity/signing-key.ts";
import { corruptAt, LogFailure, type VerifyProblem } from "../log.ts";
import type { KeptEntry, KeptRange } from "./signed-tables.ts";
import { type LogTables, NO_LIMIT } from "./tables.ts";

const BLOCKS_PER_PAGE = 64;

export type KeptCheck = { readonly kept: readonly KeptEntry[]; readonly problems: readonly VerifyProblem[] };

export const LIST_NOT_SIGNED = "the list of payloads that outlived their events is not the one that was signed";

/**
 * Throws `corrupt` if the list in force is not the one that was signed, or is of a log that was pruned less; between
 * two yields, it reads so many entries.
 */
export function* checkList(tables: LogTables, verifier: Verifier, limit: number): Generator<void> {
  const list = tables.keptList();
  const { base } = tables.source();
  const hash = createListHash();
  const refusal = corruptAt(seq(base.seq + 1), LIST_NOT_SIGNED);
  if (list === null || list.upTo < base.seq || !keptListSeal.holds(verifier, list)) throw refusal;
  for (let after = seq(0); ; ) {
    const some = tables.kept({ run: list.run, after, limit });
    for (const kept of some) hash.add(kept.seq, kept.hash);
    after = some.at(-1)?.seq ?? after;
    const isLast = some.length < limit;
    if (isLast && hash.digest() !== list.hash) throw refusal;
    yield;
    if (isLast) return;
  }
}

/** Writes the first list of a log, of the payloads that outlived their events before there were lists. */
export function listAsFound(tables: LogTables, upTo: Seq): KeptClaim {
  const run = 0;
  for (let from = seq(1); ; ) {
    const blocks = tables.blocks({ from, to: upTo, limit: BLOCKS_PER_PAGE });
    for (const [at, payload] of collectStored(blocks)) {
      if (at <= upTo) tables.putKept(run, { seq: at, hash: hashOfPayload(payload) });
    }
    const last = blocks.at(-1);
    if (last === undefined) break;
    from = seq(last.firstSeq + 1);
  }
  const hash = createListHash();
  for (const kept of tables.kept({ run, after: seq(0), limit: NO_LIMIT })) hash.add(kept.seq, kept.hash);
  return { run, upTo, hash: hash.digest() };
}

export function checkKept(tables: LogTables, range: KeptRange): KeptCheck {
  const kept = tables.kept(range);
  const problems: VerifyProblem[] = [];
  for (const { seq: at, hash } of kept) {
    const message = payloadProblem(at, hash, payloadOf(tables, at));
    if (message !== null) problems.push({ seq: at, message });
  }
  return { kept, problems };
}

/** A payload that cannot be read is as good as none. */
function payloadOf(tables: LogTables, at: Seq): Uint8Array | null {
  try {
    const block = tables.blockBefore(seq(at));
    return block === null ? null : findPayload(block, at);
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "corrupt") throw error;
    return null;
  }
}
