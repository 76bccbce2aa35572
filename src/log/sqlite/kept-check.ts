/**
 * Whether the payloads that outlived their events are still what those events said, and the list of them is the one
 * that was signed: a few at a time.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { hashOfPayload } from "../format/event-facts.ts";
import { collectStored, findPayload } from "../format/payload-blocks.ts";
import { createListHash, isListSigned, type KeptClaim, payloadProblem } from "../integrity/kept-list.ts";
import type { Verifier } from "../integrity/signing-key.ts";
import { corruptAt, LogFailure, type VerifyProblem } from "../log.ts";
import type { Kept, KeptRange } from "./signed-tables.ts";
import type { LogTables } from "./tables.ts";

const BLOCKS_PER_PAGE = 64;
const NO_LIMIT = -1;

export type KeptCheck = { readonly kept: readonly Kept[]; readonly problems: readonly VerifyProblem[] };

export const LIST_NOT_SIGNED = "the list of payloads that outlived their events is not the one that was signed";

/** Throws `corrupt` if the list in force is not the one that was signed, or is of a log that was pruned less. */
export function createListCheck(
  tables: LogTables,
  verifier: Verifier,
): { isDone(): boolean; step(limit: number): void } {
  const list = tables.keptList();
  const { base } = tables.source();
  const hash = createListHash();
  let after = seq(0);
  let isDone = false;
  const refuse = (): never => {
    throw corruptAt(seq(base.seq + 1), LIST_NOT_SIGNED);
  };
  if (list === null || list.upTo < base.seq || !isListSigned(verifier, list)) return refuse();
  return {
    isDone: () => isDone,
    step: (limit) => {
      const some = tables.kept({ run: list.run, after, limit });
      for (const kept of some) hash.add(kept.seq, kept.hash);
      after = some.at(-1)?.seq ?? after;
      if (some.length === limit) return;
      if (hash.digest() !== list.hash) refuse();
      isDone = true;
    },
  };
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
