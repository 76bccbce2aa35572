import assert from "node:assert/strict";
import { test } from "node:test";
import { seq } from "../../core/base/index.ts";
import { createHandClock } from "../../std/index.ts";
import { LogFailure } from "../log.ts";
import type { HashedBatch } from "../sqlite/sealed-batches.ts";
import type { StoreThread } from "../sqlite/thread-client.ts";
import { createTail } from "./tail.ts";

const NO_BYTES = new Uint8Array(0);
const batch = (number: number): HashedBatch =>
  ({
    ...{ firstSeq: seq(number), lastSeq: seq(number), epoch: 1, batchId: `b${number}`, postHash: new Uint8Array(32) },
    ...{ bytes: NO_BYTES, payloads: NO_BYTES, hashes: NO_BYTES },
  }) as unknown as HashedBatch;

test("what comes behind a batch that a replica could not store ends no program; who asks is told why", async () => {
  const clock = createHandClock({ at: 0 });
  const full = new LogFailure("disk-full", "the disk is full");
  const ask = (() => Promise.reject(full)) as unknown as StoreThread["ask"];
  const thread = { ask, isLostAnswer: () => false, close: async () => {} };
  const tail = createTail({ thread, clock, head: { seq: seq(0), hash: "", epoch: 1, batchId: "" } });
  tail.take(batch(1), null);
  await clock.advance(100);
  assert.throws(tail.check, full);
  // What the journal has committed meanwhile; its alarm has nobody whom it could tell.
  tail.take(batch(2), null);
  await clock.advance(100);
  await assert.rejects(tail.flush(), full);
});
