/**
 * The chain is what its rule says it is, for events of every size; checkpoints hold only as signed.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { seq } from "../../core/base/brand.ts";
import { createMemorySigner } from "../integrity/signing-key.ts";
import { checkpointSeal } from "../integrity/snapshot-rules.ts";
import type { Checkpoint } from "../log.ts";
import { chainBatch, hashOf, postHash, toHex, ZERO_HASH_HEX } from "./chain.ts";

const sha256 = (...parts: Uint8Array[]): Buffer => createHash("sha256").update(Buffer.concat(parts)).digest();

test("C20 the first event is linked to 32 zero bytes", () => {
  const zero = Buffer.alloc(32);
  assert.equal(ZERO_HASH_HEX, toHex(zero));
  const bytes = Buffer.from("first");
  assert.equal(toHex(postHash(zero, bytes)), sha256(zero, bytes).toString("hex"));
});

test("C20 law: every event of a batch is linked as if it were hashed alone, whatever its size", () => {
  const sizes = fc.array(fc.oneof(fc.nat(200), fc.integer({ min: 4000, max: 4200 }), fc.nat(40_000)), { maxLength: 8 });
  const check = (lengths: number[], fill: number, prior: Uint8Array): void => {
    const events = lengths.map((length, index) => Buffer.alloc(length, (fill + index) % 256));
    const ends = Uint32Array.from(lengths.map((_, index) => lengths.slice(0, index + 1).reduce((a, b) => a + b, 0)));
    const starts = ends.map((end, index) => end - (lengths[index] as number));
    const hashes = chainBatch(prior, Buffer.concat(events), { starts, ends });
    let link: Uint8Array = prior;
    for (const [index, event] of events.entries()) {
      link = sha256(link, event);
      assert.equal(toHex(hashOf(hashes, index)), toHex(link));
    }
  };
  const prior = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(fc.property(sizes, fc.nat(255), prior, check), { numRuns: 300 });
});

test("a checkpoint holds as it was signed, and not with any field changed", () => {
  const signer = createMemorySigner();
  const signed = checkpointSeal.sign(signer, { seq: seq(12), hash: "ab".repeat(32), snapshotHash: "cd".repeat(32) });
  assert.ok(checkpointSeal.holds(signer, signed));
  const forgeries: Partial<Checkpoint>[] = [
    { seq: seq(13) },
    { hash: "ac".repeat(32) },
    { snapshotHash: "ce".repeat(32) },
    { signature: "00".repeat(64) },
    { signature: "" },
    { signature: "not hex" },
  ];
  for (const forgery of forgeries)
    assert.ok(!checkpointSeal.holds(signer, { ...signed, ...forgery }), JSON.stringify(forgery));
});
