/**
 * Where a snapshot may stand in the log, and the checkpoint that is signed for it.
 *
 * It is the state after one event of this very chain, so its hash must be the chain's hash there; it is
 * not older than the one before; and a snapshot of events the log does not have means that the log lost
 * its end, which nobody may paper over by starting from the snapshot.
 */
import { invariant, type Seq } from "../../core/base/index.ts";
import { seqAt } from "../format/chain.ts";
import { type Anchor, type Checkpoint, corruptAt, type VerifyProblem } from "../log.ts";
import { type Seal, sealOf } from "./signing-key.ts";

/** How many snapshots are kept: the newest, and one to fall back on. */
export const SNAPSHOTS_KEPT = 2;

/** Throws if the state as of this event cannot be stored. `found` is the chain's own hash there. */
export function checkSnapshotPlace({ seq, hash }: Anchor, found: string | null, earlier: readonly Anchor[]): void {
  invariant(Number.isSafeInteger(seq) && seq > 0, `a snapshot is of an event from 1, got ${seq}`);
  invariant(found !== null, `a snapshot is of an event in the log; ${seq} is not there`);
  invariant(found === hash, `a snapshot at ${seq} has the chain's hash ${found}, got ${hash}`);
  const newest = earlier.at(-1);
  invariant(newest === undefined || newest.seq <= seq, `a snapshot is not older than the last one at ${newest?.seq}`);
}

type CheckpointPlace = {
  readonly head: Anchor;
  readonly base: Anchor;
  /** The chain's own hash at the checkpoint's seq. */
  readonly found: string | null;
};

/** Whether a reader may start from a signed checkpoint's snapshot, if its bytes are whole. */
export function isReachable({ seq, hash }: Checkpoint, { head, base, found }: CheckpointPlace): boolean {
  if (seq > head.seq) {
    throw corruptAt(nextSeq(head.seq), `a snapshot of event ${seq} exists, but the log ends at ${head.seq}`);
  }
  if (seq < base.seq) return false;
  if (found !== hash) throw corruptAt(seq, `its hash is ${found}, but a checkpoint was signed for ${hash}`);
  return true;
}

/** What is wrong with one of the snapshots that should be there; `found` is the hash of its bytes, if it is. */
export function snapshotProblem({ seq, snapshotHash }: Checkpoint, found: string | null): VerifyProblem | null {
  if (found === snapshotHash) return null;
  return { seq, message: `the snapshot of event ${seq} is ${found === null ? "missing" : "not what was written"}` };
}

const nextSeq = (at: Seq): Seq => seqAt(at, 1);

/**
 * A signed word that the chain had this hash at this event, and that this snapshot is the state there. A pruned log can
 * no longer be checked from its first event; it is checked from a checkpoint instead, so the checkpoint must be
 * something that nobody else can write (`signing-key.ts`).
 */
export const checkpointSeal: Seal<Omit<Checkpoint, "signature">> = sealOf(
  ({ seq, hash, snapshotHash }) => `drover checkpoint 1 ${seq} ${hash} ${snapshotHash}`,
);
