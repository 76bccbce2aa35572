/**
 * Whether the payloads that outlived their events are still what those events said: a few at a time.
 */
import { type Seq, seq } from "../core/brand.ts";
import { findBeside } from "./beside.ts";
import { hashOfPayload } from "./event-facts.ts";
import { LogFailure, type VerifyProblem } from "./log.ts";
import type { Kept, KeptRange } from "./sqlite-signed.ts";
import type { LogTables } from "./sqlite-tables.ts";

export type KeptCheck = { readonly kept: readonly Kept[]; readonly problems: readonly VerifyProblem[] };

export function checkKept(tables: LogTables, range: KeptRange): KeptCheck {
  const kept = tables.kept(range);
  const problems: VerifyProblem[] = [];
  for (const { seq: at, hash } of kept) {
    const message = payloadProblem(at, hash, payloadOf(tables, at));
    if (message !== null) problems.push({ seq: at, message });
  }
  return { kept, problems };
}

/** What is wrong with what lies beside an event; null if nothing is. */
export function payloadProblem(at: Seq, expected: string | null, payload: Uint8Array | null): string | null {
  if (expected === null) return null;
  if (payload === null) return `the payload of event ${at} is missing`;
  return hashOfPayload(payload) === expected ? null : `the payload of event ${at} is not what was written`;
}

/** A payload that cannot be read is as good as none. */
function payloadOf(tables: LogTables, at: Seq): Uint8Array | null {
  try {
    const block = tables.blockBefore(seq(at));
    return block === null ? null : findBeside(block, at);
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "corrupt") throw error;
    return null;
  }
}
