/**
 * Checkpoints: a signed word that the chain had this hash at this event, and that this snapshot is the
 * state there.
 *
 * A pruned log can no longer be checked from its first event; it is checked from a checkpoint instead,
 * so the checkpoint must be something that nobody else can write (`signing-key.ts`).
 */

import type { Checkpoint } from "../log.ts";
import type { Signer, Verifier } from "./signing-key.ts";

export type CheckpointClaim = Omit<Checkpoint, "signature">;

export const signCheckpoint = (signer: Signer, claim: CheckpointClaim): Checkpoint => ({
  ...claim,
  signature: signer.sign(signedText(claim)),
});

export const isCheckpointSigned = (verifier: Verifier, checkpoint: Checkpoint): boolean =>
  verifier.holds(signedText(checkpoint), checkpoint.signature);

const signedText = ({ seq, hash, snapshotHash }: CheckpointClaim): string =>
  `drover checkpoint 1 ${seq} ${hash} ${snapshotHash}`;
