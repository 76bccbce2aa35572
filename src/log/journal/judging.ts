/**
 * What the head of a journal says to a batch that is to be appended.
 */
import { toHex } from "../format/chain.ts";
import type { AppendResult, Head } from "../log.ts";
import type { SealedBatch } from "./journal.ts";

/** The head once the batch is appended. */
export const headAfter = ({ lastSeq, postHash, epoch, batchId }: SealedBatch): Head => ({
  seq: lastSeq,
  hash: toHex(postHash),
  epoch,
  batchId,
});

/** The answer that the head gives by itself; null if the batch may be appended behind it. */
export function judged(head: Head, entry: SealedBatch): AppendResult | null {
  const { firstSeq, lastSeq, epoch, batchId, priorHash, postHash } = entry;
  const isRepeat = head.batchId === batchId && head.seq === lastSeq && head.hash === toHex(postHash);
  if (isRepeat) return { type: "appended", head };
  const fits = head.seq === firstSeq - 1 && head.hash === toHex(priorHash) && head.epoch <= epoch;
  return fits ? null : { type: "conflict", head };
}
