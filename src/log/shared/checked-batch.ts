/**
 * Whether a batch that comes from elsewhere is what was written: its events by the chain, and what lies beside each by
 * the hash in the event.
 */
import { seq } from "../../core/base/index.ts";
import { unpackRow } from "../format/batch-row.ts";
import { seqAt } from "../format/chain.ts";
import { factsOf } from "../format/codec.ts";
import { collectPayloads } from "../format/payload-blocks.ts";
import { payloadProblem } from "../integrity/kept-list.ts";
import type { SealedBatch } from "../journal/journal.ts";
import { corruptAt } from "../log.ts";
import { hashesOf } from "../sqlite/sealed-batches.ts";

/** The hashes of its events; throws if an event or a payload is not what was written. */
export function checkedHashes(entry: SealedBatch): Uint8Array {
  const hashes = hashesOf(entry);
  const payloads = collectPayloads([{ firstSeq: entry.firstSeq, bytes: entry.payloads }]);
  const { records } = unpackRow({ ...entry, hashes }, seq(entry.firstSeq - 1), payloads);
  for (const [index, { bytes, payload = null }] of records.entries()) {
    const at = seqAt(entry.firstSeq, index);
    const problem = payloadProblem(at, factsOf(bytes, at).payloadHash, payload);
    if (problem !== null) throw corruptAt(at, problem);
  }
  return hashes;
}
