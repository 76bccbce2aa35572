/**
 * An entry comes out of its block as it went in; a block that is damaged, forged or newer is refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { seq } from "../../core/base/index.ts";
import { failsWith } from "../contract/vocabulary.ts";
import { packEntry, packEntryNow, unpackEntry } from "./entry.ts";
import type { SealedBatch } from "./journal.ts";

const bytes = fc.uint8Array({ maxLength: 2000 });
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 });
const entries: fc.Arbitrary<SealedBatch> = fc
  .record({
    first: fc.integer({ min: 1, max: 2 ** 40 }),
    count: fc.integer({ min: 1, max: 65_536 }),
    epoch: fc.nat(),
    batchId: fc.string({ minLength: 1, maxLength: 256 }),
    priorHash: hash,
    postHash: hash,
    bytes,
    payloads: fc.oneof(bytes, fc.constant(new Uint8Array(100_000))),
  })
  .map(({ first, count, ...rest }) => ({ firstSeq: seq(first), lastSeq: seq(first + count - 1), ...rest }));

const plain = ({ bytes, payloads, ...rest }: SealedBatch) => ({
  ...rest,
  bytes: Uint8Array.from(bytes),
  payloads: Uint8Array.from(payloads),
});

test("law: an entry comes out of its block as it went in", async () => {
  await fc.assert(
    fc.asyncProperty(entries, async (entry) => {
      const packed = packEntryNow(entry);
      assert.deepEqual(plain(await unpackEntry(await packEntry(entry))), entry);
      assert.deepEqual(plain(await unpackEntry(await packEntry({ ...entry, packed }))), entry);
    }),
    { numRuns: 30 },
  );
});

const sample: SealedBatch = {
  firstSeq: seq(1),
  lastSeq: seq(2),
  epoch: 3,
  batchId: "b",
  priorHash: new Uint8Array(32),
  postHash: new Uint8Array(32).fill(1),
  bytes: new Uint8Array(40_000).fill(7),
  payloads: new Uint8Array(3),
};

test("what compresses well takes less room, and more bytes than the header says are refused", async () => {
  const block = await packEntry(sample);
  assert.ok(block.length < 1000);
  const forged = Buffer.from(block.toString("latin1").replace('"bytes":40000', '"bytes":39000'), "latin1");
  await assert.rejects(unpackEntry(forged), failsWith("corrupt"));
});

test("a block that is cut off, no block of ours, or of a newer layout is refused", async () => {
  const block = await packEntry(sample);
  for (const length of [0, 4, 5, 60, block.length - 1])
    await assert.rejects(unpackEntry(block.subarray(0, length)), failsWith("corrupt"));
  await assert.rejects(unpackEntry(Buffer.from("another product's value")), failsWith("corrupt"));
  const newer = Buffer.from(block);
  newer.writeUInt8(2, 0);
  await assert.rejects(unpackEntry(newer), failsWith("unsupported-version"));
});
