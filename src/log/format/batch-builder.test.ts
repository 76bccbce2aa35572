/**
 * A hash that was left blank is filled in for a driver that knows nothing of deferred hashes. The contract says the
 * rest.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Seq, seq } from "../../core/base/brand.ts";
import type { TaskSubmitted } from "../../core/model/events.ts";
import { gatherDeferred } from "../contract/deferred-hashes.ts";
import { createGathering, gatheredBatch } from "./batch-builder.ts";
import { spansOf } from "./batch-row.ts";
import { decodeEvent } from "./codec.ts";

const hashIn = (bytes: Uint8Array, at: number): string =>
  (decodeEvent(bytes, at as Seq).event as TaskSubmitted).bodyHash;

test("in the records one by one", () => {
  const gathering = createGathering();
  const expected = gatherDeferred(gathering, 1);
  const { records } = gatheredBatch(gathering, seq(1));
  for (const [at, hash] of expected) assert.equal(hashIn(records[at - 1]?.bytes as Uint8Array, at), hash);
});

test("in the records as they are stored", () => {
  const gathering = createGathering();
  const expected = gatherDeferred(gathering, 1);
  const { count, bytes } = gatheredBatch(gathering, seq(1)).packed as { count: number; bytes: Uint8Array };
  const { starts, ends } = spansOf(seq(1), bytes, count);
  for (const [at, hash] of expected) assert.equal(hashIn(bytes.subarray(starts[at - 1], ends[at - 1]), at), hash);
});
