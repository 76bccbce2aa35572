/**
 * The contract's first half: records go in once, in order, and come out the same.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { seconds, seq } from "../../core/base/index.ts";
import { packedOf } from "../format/batch-builder.ts";
import { ZERO_HASH_HEX } from "../format/chain.ts";
import type { Stories } from "./vocabulary.ts";
import {
  batchOf,
  collect,
  each,
  eventsOf,
  fill,
  isBug,
  namesOf,
  payloadAt,
  referenceHash,
  text,
} from "./vocabulary.ts";

function sharedCopy(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}

export const appendAndRead: Stories = {
  "an empty log has nothing and stands at zero": async ({ log }) => {
    assert.deepEqual(await log.head(), { seq: 0, hash: ZERO_HASH_HEX, epoch: 0, batchId: "" });
    assert.deepEqual(await collect(log.read(seq(0))), []);
    assert.equal(await log.readRecord(seq(1)), null);
    assert.equal(await log.loadSnapshot(), null);
    assert.deepEqual(await log.checkpoints(), []);
  },

  "what was appended is read back in order, with its payloads, also after reopening": async ({ log, reopen }) => {
    await fill(log, [4, 1, 3]);
    const batches = await collect(log.read(seq(0)));
    assert.deepEqual(each(batches, "firstSeq"), [1, 5, 6]);
    assert.deepEqual(each(batches, "batchId"), ["batch-1", "batch-5", "batch-6"]);
    assert.deepEqual(eventsOf(batches), namesOf(1, 8));
    const payloads = batches.flatMap(({ records }) =>
      records.map(({ payload }) => payload && Buffer.from(payload).toString()),
    );
    const none = undefined;
    assert.deepEqual(payloads, [none, none, "payload 3", none, none, "payload 6", none, none]);
    assert.deepEqual(eventsOf(await collect((await reopen()).read(seq(0)))), namesOf(1, 8));
  },

  "C20 every event is linked by the hash of its stored bytes, and every batch by its epoch and id": async ({ log }) => {
    const sizes = [3, 2, 4];
    const head = await fill(log, sizes);
    assert.equal(head.hash, referenceHash(sizes, 9));
    for (const { firstSeq, priorHash, hashes } of await collect(log.read(seq(0)))) {
      assert.equal(Buffer.from(priorHash).toString("hex"), referenceHash(sizes, firstSeq - 1));
      for (const [index, hash] of hashes.entries()) {
        assert.equal(Buffer.from(hash).toString("hex"), referenceHash(sizes, firstSeq + index));
      }
    }
  },

  "reading may start inside a batch": async ({ log }) => {
    await fill(log, [3, 4, 2]);
    for (let after = 0; after <= 9; after++) {
      const batches = await collect(log.read(seq(after)));
      assert.deepEqual(eventsOf(batches), namesOf(after + 1, 9));
      const [first] = batches;
      if (first === undefined) continue;
      assert.deepEqual([first.firstSeq, first.hashes.length], [after + 1, first.records.length]);
      assert.equal(Buffer.from(first.priorHash).toString("hex"), referenceHash([3, 4, 2], after));
    }
    assert.deepEqual(await collect(log.read(seq(100))), []);
  },

  "a log of many pages is read whole, and without payloads if they are not wanted": async ({ log }) => {
    const records = Array.from({ length: 20 }, () => ({ bytes: new Uint8Array(30_000), payload: text("payload") }));
    for (let first = 1; first <= 101; first += 20) {
      await log.append(seq(first - 1), 0, { firstSeq: seq(first), records }, `batch-${first}`);
    }
    const withPayloads = await collect(log.read(seq(0)));
    assert.equal(withPayloads.flatMap((batch) => batch.records).filter(({ payload }) => payload).length, 120);
    const without = await collect(log.read(seq(0), { payloads: false }));
    assert.equal(without.flatMap((batch) => batch.records).filter(({ payload }) => payload).length, 0);
    assert.equal(without.flatMap((batch) => batch.records).length, 120);
  },

  "a reader that names a limit of bytes gets whole batches until it is reached, and at least one": async ({ log }) => {
    await fill(log, [2, 2, 2]);
    const readUpTo = async (bytesMax: number) => eventsOf(await collect(log.read(seq(1), { bytesMax })));
    assert.deepEqual(await readUpTo(1), ["event 2"]);
    assert.deepEqual(await readUpTo(100), namesOf(2, 4));
    assert.deepEqual(await readUpTo(1_000_000_000), namesOf(2, 6));
  },

  "a reader that stops early leaves the log usable": async ({ log }) => {
    await fill(log, [2, 2]);
    for await (const batch of log.read(seq(0))) {
      assert.equal(batch.firstSeq, 1);
      break;
    }
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), namesOf(1, 4));
  },

  "one record is found by its number, with its payload": async ({ log }) => {
    await fill(log, [5, 5]);
    const record = await log.readRecord(seq(6));
    assert.equal(Buffer.from(record?.bytes ?? []).toString(), "event 6");
    assert.equal(Buffer.from(record?.payload ?? []).toString(), "payload 6");
    assert.deepEqual(Object.keys((await log.readRecord(seq(7))) ?? {}), ["bytes"]);
    assert.equal(await log.readRecord(seq(11)), null);
    assert.equal(await log.readRecord(seq(0)), null);
  },

  "records that are asked for at once are each answered by itself": async ({ log }) => {
    await fill(log, [200, 1, 200]);
    const numbers = [...Array.from({ length: 401 }, (_, index) => 401 - index), 402, 3, 3];
    const records = numbers.map((at) => log.readRecord(seq(at)));
    const bug = assert.rejects(log.readRecord(seq(-1)), isBug);
    const told = (await Promise.all(records)).map((record) =>
      record === null ? null : [record.bytes, record.payload].map((bytes) => bytes && Buffer.from(bytes).toString()),
    );
    const expected = (at: number) => [`event ${at}`, at % 3 === 0 ? `payload ${at}` : undefined];
    assert.deepEqual(
      told,
      numbers.map((at) => (at > 401 ? null : expected(at))),
    );
    await bug;
  },

  "an empty event and an empty payload are not nothing": async ({ log }) => {
    const records = [{ bytes: new Uint8Array(0), payload: new Uint8Array(0) }, { bytes: text("b") }];
    await log.append(seq(0), 0, { firstSeq: seq(1), records }, "a");
    assert.deepEqual(await log.readRecord(seq(1)), { bytes: new Uint8Array(0), payload: new Uint8Array(0) });
  },

  "an append behind anything but the head is a conflict and stores nothing": async ({ log }) => {
    const head = await fill(log, [3]);
    for (const after of [0, 2, 4]) {
      const result = await log.append(seq(after), 0, batchOf(after + 1, 1), "late");
      assert.deepEqual(result, { type: "conflict", head });
    }
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), namesOf(1, 3));
  },

  "of two appends behind the same event exactly one is stored": async ({ log }) => {
    const results = await Promise.all([
      log.append(seq(0), 0, batchOf(1, 2), "one"),
      log.append(seq(0), 0, batchOf(1, 1), "two"),
    ]);
    assert.deepEqual(results.map(({ type }) => type).sort(), ["appended", "conflict"]);
    assert.equal((await collect(log.read(seq(0)))).length, 1);
  },

  "D2 a repeated append that did land is appended once": async ({ log, reopen }) => {
    const first = await log.append(seq(0), 0, batchOf(1, 3), "lost-answer");
    assert.deepEqual(await log.append(seq(0), 0, batchOf(1, 3), "lost-answer"), first);
    const again = await reopen();
    assert.deepEqual(await again.append(seq(0), 0, batchOf(1, 3), "lost-answer"), first);
    assert.deepEqual(eventsOf(await collect(again.read(seq(0)))), namesOf(1, 3));
  },

  "D2 a repeat is recognised behind earlier batches and under a later leader": async ({ log }) => {
    await fill(log, [2]);
    await log.append(seq(2), 0, batchOf(3, 2), "lost-answer");
    await log.acquireLead("b", seconds(5));
    assert.equal((await log.append(seq(2), 0, batchOf(3, 2), "lost-answer")).type, "appended");
  },

  "D2 the same id with another length, place or content is a conflict": async ({ log }) => {
    await fill(log, [2]);
    await log.append(seq(2), 0, batchOf(3, 2), "id");
    const other = { firstSeq: seq(3), records: [{ bytes: text("event 3") }, { bytes: text("forged") }] };
    assert.equal((await log.append(seq(2), 0, other, "id")).type, "conflict");
    assert.equal((await log.append(seq(2), 0, batchOf(3, 1), "id")).type, "conflict");
    assert.equal((await log.append(seq(1), 0, batchOf(2, 2), "id")).type, "conflict");
    await fill(log, [1]);
    assert.equal((await log.append(seq(2), 0, batchOf(3, 2), "id")).type, "conflict");
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), namesOf(1, 5));
  },

  "the caller may reuse its buffers as soon as append has returned": async ({ log }) => {
    const bytes = text("event 1");
    const payload = text("payload");
    const appended = log.append(seq(0), 0, { firstSeq: seq(1), records: [{ bytes, payload }] }, "a");
    bytes.fill(0);
    payload.fill(0);
    await appended;
    assert.deepEqual(await log.readRecord(seq(1)), { bytes: text("event 1"), payload: text("payload") });
  },

  "so it may where its bytes are packed and shared, unless it says that it leaves them alone": async ({ log }) => {
    const whole = { firstSeq: seq(1), records: [{ bytes: text("event 1"), payload: text("payload") }] };
    const { count, ...own } = packedOf(whole);
    const packed = { count, bytes: sharedCopy(own.bytes), payloads: sharedCopy(own.payloads) };
    const appended = log.append(seq(0), 0, { ...whole, packed }, "a");
    packed.bytes.fill(120);
    packed.payloads.fill(120);
    await appended;
    assert.deepEqual(await log.readRecord(seq(1)), { bytes: text("event 1"), payload: text("payload") });
  },

  "views into a larger buffer store only what they show": async ({ log }) => {
    const whole = text("..event 1..payload..");
    const record = { bytes: whole.subarray(2, 9), payload: whole.subarray(11, 18) };
    await log.append(seq(0), 0, { firstSeq: seq(1), records: [record] }, "a");
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), ["event 1"]);
    assert.equal(await payloadAt(log, 1), "payload");
  },

  "large batches and large records are stored whole": async ({ log }) => {
    const count = 20_000;
    const large = { bytes: new Uint8Array(2_000_000).fill(1), payload: new Uint8Array(3_000_000).fill(2) };
    await fill(log, [count]);
    const after = seq(count);
    await log.append(after, 0, { firstSeq: seq(count + 1), records: [large, { bytes: text("z") }] }, "large");
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))).slice(0, count), namesOf(1, count));
    assert.deepEqual(await log.readRecord(seq(count + 1)), large);
    assert.equal(await payloadAt(log, 19_998), "payload 19998");
  },

  "law: however the same events are cut into batches, every reader sees them from where it starts": async ({ log }) => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
    const all: number[] = [];
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), async (cut, start) => {
        all.push(...cut);
        const head = await fill(log, cut);
        const count = all.reduce((sum, size) => sum + size, 0);
        assert.deepEqual([head.seq, head.hash], [count, referenceHash(all, count)]);
        const after = start % (head.seq + 1);
        assert.deepEqual(eventsOf(await collect(log.read(seq(after)))), namesOf(after + 1, head.seq));
      }),
      { numRuns: 15 },
    );
  },

  "whoever led before is refused, also after a restart": async ({ log, reopen }) => {
    const old = await log.acquireLead("a", seconds(5));
    const current = await log.acquireLead("b", seconds(5));
    assert.ok(current.epoch > old.epoch);
    assert.equal((await log.append(seq(0), old.epoch, batchOf(1, 1), "old")).type, "conflict");
    const again = await reopen();
    assert.equal((await again.append(seq(0), old.epoch, batchOf(1, 1), "old")).type, "conflict");
    assert.equal((await again.append(seq(0), current.epoch, batchOf(1, 1), "new")).type, "appended");
    assert.equal((await again.head()).epoch, current.epoch);
  },

  "a batch written under a higher epoch raises it for all": async ({ log }) => {
    assert.equal((await log.append(seq(0), 7, batchOf(1, 1), "a")).type, "appended");
    assert.equal((await log.append(seq(1), 6, batchOf(2, 1), "b")).type, "conflict");
    assert.equal((await log.append(seq(1), 7, batchOf(2, 1), "b")).type, "appended");
    assert.equal((await log.acquireLead("b", seconds(5))).epoch, 8);
    assert.deepEqual(each(await collect(log.read(seq(0))), "epoch"), [7, 7]);
  },

  "raising the epoch moves nothing else, and a lead may be released twice": async ({ log }) => {
    const before = await fill(log, [2]);
    const lead = await log.acquireLead("a", seconds(5));
    await lead.release();
    await lead.release();
    assert.deepEqual(await log.head(), { ...before, epoch: lead.epoch });
    assert.equal((await log.verify()).ok, true);
  },
};
