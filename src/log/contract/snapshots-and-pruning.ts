/**
 * The contract's second half: snapshots, forgetting what lies before them, and proving what is left.
 */
import assert from "node:assert/strict";
import { seq } from "../../core/base/index.ts";
import { ZERO_HASH_HEX } from "../format/chain.ts";
import {
  batchOf,
  collect,
  each,
  eventsOf,
  failsWith,
  fill,
  isBug,
  loaded,
  namesOf,
  payloadAt,
  referenceHash,
  type Stories,
  save,
  text,
} from "./vocabulary.ts";

export const snapshotsAndPruning: Stories = {
  "the newest snapshot is loaded, also after reopening, and two are kept": async ({ log, reopen }) => {
    for (const size of [2, 3, 1]) await save(log, await fill(log, [size]));
    assert.equal(await loaded(log), "6: state 6");
    assert.equal(await loaded(log, seq(6)), "5: state 5");
    assert.equal(await loaded(log, seq(5)), null, "the third is not kept");
    assert.deepEqual(each(await log.checkpoints(), "seq"), [2, 5, 6]);
    assert.equal(await loaded(await reopen()), "6: state 6");
  },

  "a damaged snapshot falls back to the one before, and two leave none": async ({ log, damageSnapshot }) => {
    for (const size of [2, 3]) await save(log, await fill(log, [size]));
    await damageSnapshot(seq(5));
    assert.equal(await loaded(log), "2: state 2");
    await damageSnapshot(seq(2));
    assert.equal(await loaded(log), null);
  },

  "a snapshot may be of an event inside a batch, and may stream": async ({ log }) => {
    await fill(log, [5]);
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield text("a");
      yield new Uint8Array(600_000).fill(98);
      yield text("c");
    }
    await log.saveSnapshot({ seq: seq(3), hash: referenceHash([5], 3), chunks: chunks() });
    const content = await loaded(log);
    assert.equal(content?.length, "3: ".length + 600_002);
    assert.ok(content?.startsWith("3: ab") && content.endsWith("bc"));
  },

  "a snapshot whose stream fails leaves the one before": async ({ log }) => {
    await save(log, await fill(log, [2]));
    const head = await fill(log, [2]);
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield text("half");
      throw new RangeError("no more");
    }
    await assert.rejects(log.saveSnapshot({ ...head, chunks: chunks() }), { message: "no more" });
    assert.equal(await loaded(log), "2: state 2");
    assert.equal((await log.checkpoints()).length, 1);
    await save(log, head);
    assert.equal(await loaded(log), "4: state 4");
  },

  "a snapshot that is not of this chain is refused": async ({ log }) => {
    const head = await fill(log, [4]);
    await assert.rejects(save(log, { seq: seq(4), hash: "ab".repeat(32) }), isBug);
    await assert.rejects(save(log, { seq: seq(3), hash: head.hash }), isBug);
    await assert.rejects(save(log, { seq: seq(5), hash: head.hash }), isBug);
    await assert.rejects(save(log, { seq: seq(0), hash: ZERO_HASH_HEX }), isBug);
    await save(log, head);
    await assert.rejects(save(log, { seq: seq(2), hash: referenceHash([4], 2) }), isBug);
    assert.equal(await loaded(log), "4: state 4");
  },

  "the same snapshot may be saved again": async ({ log }) => {
    const head = await fill(log, [4]);
    await save(log, head);
    await save(log, head, "state again");
    assert.equal(await loaded(log), "4: state again");
    assert.equal((await log.checkpoints()).length, 1);
  },

  "nothing is pruned behind the newest snapshot, or without one": async ({ log }) => {
    const middle = await fill(log, [3, 3]);
    assert.equal((await log.prune(seq(6), [])).droppedBatches, 0);
    await save(log, middle);
    await fill(log, [3]);
    const { base, droppedBatches } = await log.prune(seq(9), []);
    assert.deepEqual({ base, droppedBatches }, { base: { seq: 6, hash: middle.hash }, droppedBatches: 2 });
    assert.deepEqual(eventsOf(await collect(log.read(seq(6)))), namesOf(7, 9));
  },

  "only whole batches are pruned": async ({ log }) => {
    await save(log, await fill(log, [3, 3, 3]));
    assert.equal((await log.prune(seq(5), [])).base.seq, 3);
    assert.deepEqual(eventsOf(await collect(log.read(seq(3)))), namesOf(4, 9));
  },

  "what was pruned is refused by name, never answered as empty": async ({ log }) => {
    await save(log, await fill(log, [3, 3]));
    await log.prune(seq(3), []);
    await assert.rejects(collect(log.read(seq(0))), failsWith("pruned", 3));
    await assert.rejects(collect(log.read(seq(2))), failsWith("pruned", 3));
    assert.equal(await log.readRecord(seq(2)), null);
  },

  "what was read before a pruning is not there after it": async ({ log }) => {
    await save(log, await fill(log, [3, 3, 3]));
    const numbers = [2, 3, 6, 9].map((at) => seq(at));
    await Promise.all(numbers.map(log.readRecord));
    await log.prune(seq(6), [seq(6)]);
    const bytes = (await Promise.all(numbers.map(log.readRecord))).map((record) => record?.bytes.length ?? null);
    assert.deepEqual(bytes, [null, null, 0, "event 9".length]);
    assert.equal(await payloadAt(log, 6), "payload 6");
  },

  "a pruning that asks for less than the last one drops nothing, and the log goes on": async ({ log, reopen }) => {
    await save(log, await fill(log, [3, 3]));
    await log.prune(seq(6), [seq(6)]);
    const { base, droppedBatches } = await log.prune(seq(3), [seq(6)]);
    assert.deepEqual([base.seq, droppedBatches], [6, 0]);
    await log.prune(seq(6), [seq(6)]);
    const again = await reopen();
    assert.deepEqual((await again.verify()).problems, []);
    assert.equal(await payloadAt(again, 6), "payload 6");
  },

  "a payload that is needed outlives its event until it is not named again": async ({ log, reopen }) => {
    await save(log, await fill(log, [6, 3]));
    await log.prune(seq(6), [seq(6)]);
    const kept = await log.readRecord(seq(6));
    assert.deepEqual([kept?.bytes, kept?.payload], [new Uint8Array(0), text("payload 6")]);
    assert.equal(await log.readRecord(seq(3)), null);
    const again = await reopen();
    await again.prune(seq(9), [seq(9), seq(6), seq(6)]);
    assert.equal(await payloadAt(again, 6), "payload 6");
    assert.equal(await payloadAt(again, 9), "payload 9");
    await again.prune(seq(9), [seq(9)]);
    assert.equal(await payloadAt(again, 6), null);
    assert.equal(await payloadAt(again, 9), "payload 9");
  },

  "many payloads are kept and dropped one by one": async ({ log }) => {
    const head = await fill(log, [3000, 300]);
    await save(log, head);
    const kept = Array.from({ length: 500 }, (_, index) => seq(6 * (500 - index)));
    await log.prune(head.seq, kept);
    for (const at of [3, 9, 2997, 3003]) assert.equal(await payloadAt(log, at), null);
    for (const at of [6, 12, 1500, 2994, 3000]) assert.equal(await payloadAt(log, at), `payload ${at}`);
  },

  "D3 a stale writer is refused on a log that was pruned to its end": async ({ log, reopen }) => {
    const head = await fill(log, [3, 3]);
    await save(log, head);
    assert.equal((await log.prune(seq(6), [])).base.seq, 6);
    const writer = await reopen();
    assert.deepEqual(await writer.append(seq(0), 0, batchOf(1, 1), "stale"), { type: "conflict", head });
    assert.deepEqual(await writer.append(seq(3), 0, batchOf(4, 1), "stale"), { type: "conflict", head });
    assert.equal((await writer.append(seq(6), 0, batchOf(7, 2), "next")).type, "appended");
    assert.deepEqual(eventsOf(await collect(writer.read(seq(6)))), namesOf(7, 8));
  },

  "D2 a repeat is recognised although everything before it was pruned": async ({ log }) => {
    await fill(log, [3]);
    await log.append(seq(3), 0, batchOf(4, 2), "lost-answer");
    await save(log, await log.head());
    await log.prune(seq(3), []);
    assert.equal((await log.append(seq(3), 0, batchOf(4, 2), "lost-answer")).type, "appended");
  },

  "a pruned log starts from its snapshot and verifies from its checkpoint": async ({ log, reopen }) => {
    await save(log, await fill(log, [3, 3]));
    await fill(log, [3]);
    await log.prune(seq(6), []);
    const again = await reopen();
    assert.equal(await loaded(again), "6: state 6");
    const report = await again.verify();
    assert.deepEqual({ ok: report.ok, base: report.base.seq, events: report.events }, { ok: true, base: 6, events: 3 });
    assert.equal(report.checkpoints, 1);
  },

  "a sound log verifies, and against the anchors that lie on it": async ({ log }) => {
    const early = await fill(log, [3]);
    await save(log, await fill(log, [2]));
    const head = await fill(log, [2]);
    const { key, unsigned, ...report } = await log.verify();
    assert.match(key ?? "", /^[0-9a-f]{64}$/);
    // The checkpoint covers all but the last batch; a replica has signed that too.
    if (unsigned !== null) assert.deepEqual(unsigned, { from: 6, to: 7 });
    assert.deepEqual(report, {
      ok: true,
      base: { seq: 0, hash: ZERO_HASH_HEX },
      head,
      events: 7,
      payloads: 0,
      checkpoints: 1,
      problems: [],
    });
    for (const { seq: at, hash } of [early, head]) {
      assert.equal((await log.verify({ expect: { seq: at, hash } })).ok, true);
    }
    assert.equal((await log.verify({ expect: { seq: seq(0), hash: ZERO_HASH_HEX } })).ok, true);
  },

  "an anchor the log does not reach, or that has another hash, is a problem": async ({ log }) => {
    const head = await fill(log, [3]);
    const missing = await log.verify({ expect: { seq: seq(5), hash: head.hash } });
    assert.deepEqual(each(missing.problems, "seq"), [5]);
    assert.match(missing.problems[0]?.message ?? "", /ends at 3.*events are missing/);
    const other = await log.verify({ expect: { seq: seq(2), hash: head.hash } });
    assert.match(other.problems[0]?.message ?? "", /another history/);
    assert.equal(other.ok, false);
  },

  "an anchor that was pruned cannot be compared, and that is said": async ({ log }) => {
    const early = await fill(log, [2]);
    await save(log, await fill(log, [2]));
    await log.prune(seq(4), []);
    assert.match((await log.verify({ expect: early })).problems[0]?.message ?? "", /were pruned/);
  },
};
