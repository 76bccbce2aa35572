/**
 * The memory log keeps the log's promises, survives its handle, and notices a damaged store.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { turnsDuring } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/brand.ts";
import { logContract } from "../contract/log-contract.ts";
import { batchOf, collect, eventsOf, failsWith, fill, namesOf, text } from "../contract/vocabulary.ts";
import type { BatchRow } from "../format/batch-row.ts";
import type { MemoryStore } from "./memory-log.ts";
import { createMemoryLog, createMemoryStore } from "./memory-log.ts";

logContract("the memory log", async () => {
  const store = createMemoryStore();
  return {
    log: createMemoryLog({ store }),
    reopen: async () => createMemoryLog({ store }),
    damageSnapshot: async (at) => void store.snapshots.set(at, [text("damaged")]),
    dispose: async () => {},
  };
});

test("two nodes share one store: the deposed one is refused, and reads the other's batches", async () => {
  const store = createMemoryStore();
  const [ann, bob] = [createMemoryLog({ store }), createMemoryLog({ store })];
  const old = await ann.acquireLead("ann", seconds(5));
  await ann.append(seq(0), old.epoch, batchOf(1, 2), "a1");
  const lead = await bob.acquireLead("bob", seconds(5));
  assert.equal((await bob.append(seq(2), lead.epoch, batchOf(3, 1), "b1")).type, "appended");
  assert.equal((await ann.append(seq(3), old.epoch, batchOf(4, 1), "a2")).type, "conflict");
  await bob.close();
  assert.deepEqual(eventsOf(await collect(ann.read(seq(0)))), namesOf(1, 3));
});

test("C16 an append is in the store when append returns, and a crash right then loses nothing", async () => {
  const store = createMemoryStore();
  void createMemoryLog({ store }).append(seq(0), 0, batchOf(1, 3), "a");
  assert.equal(store.head.seq, 3);
  const again = createMemoryLog({ store });
  assert.deepEqual(eventsOf(await collect(again.read(seq(0)))), namesOf(1, 3));
});

test("two runs are equal to the byte, signatures included", async () => {
  const run = async (): Promise<unknown> => {
    const store = createMemoryStore();
    const log = createMemoryLog({ store });
    const head = await fill(log, [3, 4]);
    const checkpoint = await log.saveSnapshot({ ...head, chunks: [text("state")] });
    return { head, checkpoint, rows: store.rows };
  };
  assert.deepEqual(await run(), await run());
});

const flip = (bytes: Uint8Array, at: number): Uint8Array =>
  bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
const changed = (store: MemoryStore, index: number, change: (row: BatchRow) => Partial<BatchRow>): void => {
  store.rows = store.rows.map((row, at) => (at === index ? { ...row, ...change(row) } : row));
};
const damages: { name: string; damage: (store: MemoryStore) => void; at: number }[] = [
  { name: "a flipped bit", damage: (store) => changed(store, 1, ({ bytes }) => ({ bytes: flip(bytes, 18) })), at: 5 },
  {
    name: "a flipped hash",
    damage: (store) => changed(store, 1, ({ hashes }) => ({ hashes: flip(hashes, 64) })),
    at: 6,
  },
  { name: "a missing batch", damage: (store) => void store.rows.splice(1, 1), at: 4 },
  { name: "two batches in the wrong order", damage: (store) => void store.rows.reverse(), at: 1 },
  { name: "a lost end", damage: (store) => void store.rows.pop(), at: 7 },
];
for (const { name, damage, at } of damages) {
  test(`${name} in the store stops the reader at the event where the chain breaks`, async () => {
    const store = createMemoryStore();
    const log = createMemoryLog({ store });
    await fill(log, [3, 3, 3]);
    damage(store);
    const seen: string[] = [];
    await assert.rejects(
      async () => {
        for await (const batch of log.read(seq(0))) seen.push(...eventsOf([batch]));
      },
      failsWith("corrupt", at),
    );
    assert.deepEqual(seen, namesOf(1, seen.length));
    assert.deepEqual(
      (await log.verify()).problems.map((problem) => problem.seq),
      [at],
    );
  });
}

test("verify gives way after a few hundred events", async () => {
  const log = createMemoryLog();
  await log.append(seq(0), 0, batchOf(1, 4000), "a");
  const turns = await turnsDuring(log.verify());
  assert.ok(turns > 10, `the loop turned ${turns} times`);
});
