/**
 * Checkpoints: a signed word that the chain had this hash at this event, and that this snapshot is the
 * state there.
 *
 * A pruned log can no longer be checked from its first event; it is checked from a checkpoint instead,
 * so the checkpoint must be something that nobody else can write (`signing-key.ts`).
 */
import type { Checkpoint } from "../log.ts";
import { type Seal, sealOf } from "./signing-key.ts";

export const checkpointSeal: Seal<Omit<Checkpoint, "signature">> = sealOf(
  ({ seq, hash, snapshotHash }) => `drover checkpoint 1 ${seq} ${hash} ${snapshotHash}`,
);
