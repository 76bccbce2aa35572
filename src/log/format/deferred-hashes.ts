/**
 * Hashes that whoever stores a batch writes into it.
 *
 * A submit says the hash of its body, and computing it takes as long as deciding on the task. But nobody waits for the
 * hash of a body whose id Drover chose: it is there for whoever reads the body back. So the engine leaves such a hash
 * blank and goes on, and the thread that stores the batch fills it in, before the chain is linked over it. What is on
 * disk is the same as if the engine had written it. Filling in twice is the same as once, so an append can be repeated.
 * A driver that knows nothing of this is given batches that are whole.
 */
import { hash } from "node:crypto";
import type { UnhashedBatch } from "../log.ts";
import { HASH_BYTES } from "./chain.ts";
import { ENTRY_FRAME_BYTES, LENGTH_AT } from "./payload-blocks.ts";

export function fillDeferredHashes({ bytes, payloads, deferred }: Omit<UnhashedBatch, "count">): void {
  if (deferred.length === 0) return;
  const target = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const stored = Buffer.from(payloads.buffer, payloads.byteOffset, payloads.byteLength);
  for (let index = 0; index < deferred.length; index += 2) {
    const entry = deferred[index + 1] as number;
    const start = entry + ENTRY_FRAME_BYTES;
    const payload = stored.subarray(start, start + stored.readUInt32BE(entry + LENGTH_AT));
    target.write(hash("sha256", payload, "binary"), deferred[index] as number, HASH_BYTES, "latin1");
  }
}
