/**
 * The signed head: nobody without the key can write another history up to here.
 *
 * A chain alone shows a change only to those who know its last hash: whoever edits an event can hash everything behind
 * it again. So the head is signed in the same transaction as the first batch of a life, then with the batch that makes
 * it so many events or so much time since, and when the log is closed. One signature stands for all events up to its
 * own, so only the newest is kept. It says which rule it was made under, hence how much may be unsigned behind it, and
 * whether the log was closed with it: behind that nothing may come that is not signed.
 */
import type { Seq } from "../../core/base/index.ts";
import { seqAt } from "../format/chain.ts";
import type { Anchor, Head, SignRule, VerifyProblem } from "../log.ts";
import { type Seal, type Signed, sealOf } from "./signing-key.ts";

export const DEFAULT_SIGN_RULE: SignRule = { events: 10_000, time: 60_000 };

type HeadClaim = Head & { readonly rule: SignRule; readonly isClosed: boolean };
export type SignedHead = Signed<HeadClaim>;

/** The id of a batch may hold anything, so it comes last. */
export const headSeal: Seal<HeadClaim> = sealOf(
  ({ seq, hash, epoch, batchId, rule, isClosed }) =>
    `drover head 1 ${seq} ${hash} ${epoch} ${rule.events} ${rule.time} ${isClosed ? "closed" : "open"} ${batchId}`,
);

type HeadPlace = {
  readonly head: Head;
  readonly base: Anchor;
  /** The epoch of the last batch; 0 if there is none. */
  readonly batchEpoch: number;
  /** The chain's own hash at the signed event; null if it is not known. */
  readonly found: string | null;
  /** The newest event that a checkpoint vouches for; 0 if none does. */
  readonly checkpointSeq: number;
};

const OLDER_VERSION = "it was written by an older version, which signed nothing: start a server on it once";

/** What speaks against a head, from the signature that should vouch for it. */
export function headProblem(signed: SignedHead | null, isSigned: boolean, place: HeadPlace): VerifyProblem | null {
  const { head, base, found } = place;
  // A log has a signed head before it has its first event.
  if (signed === null) {
    const message = `no head was ever signed, or its signature was taken away, or ${OLDER_VERSION}`;
    return { seq: seqAt(base.seq, 1), message };
  }
  const { seq: at, isClosed, rule } = signed;
  if (!isSigned) return { seq: at, message: `the head signed at ${at} does not carry this directory's signature` };
  if (at > head.seq) {
    const message = `the log ends at ${head.seq}, before the head that was signed at ${at}: events are missing`;
    return { seq: seqAt(head.seq, 1), message };
  }
  if (found !== null && found !== signed.hash) {
    const which = `at ${at} the log has hash ${found}, the head signed there has ${signed.hash}`;
    return { seq: at, message: `${which}: this is another history` };
  }
  if (isClosed && head.seq > at) {
    return { seq: seqAt(at, 1), message: `the log was closed at ${at}, and nobody signed what comes behind` };
  }
  if (head.epoch !== Math.max(signed.epoch, place.batchEpoch) || (head.seq === at && head.batchId !== signed.batchId)) {
    return { seq: head.seq, message: "the head record is not the one that was signed" };
  }
  const covered = Math.max(at, place.checkpointSeq);
  if (head.seq - covered <= rule.events) return null;
  const message = `no signature covers events ${covered + 1} to ${head.seq}; at most ${rule.events} may be unsigned`;
  return { seq: seqAt(covered as Seq, 1), message };
}
