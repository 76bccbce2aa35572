/**
 * What every driver of the log must do, as a test suite.
 *
 * A driver's own test calls `logContract(name, open)` and adds what only it can do wrong. Each test gets
 * a fresh log. `open` answers the log, a way to open the same data again as after a crash or a restart,
 * a way to damage a stored snapshot, and a way to clean up. Nothing here sleeps or looks at a clock.
 */
import assert from "node:assert/strict";
import { seconds, seq } from "../../core/base/index.ts";
import { BATCH_RECORDS_MAX } from "../format/batch-row.ts";
import { ZERO_HASH_HEX } from "../format/chain.ts";
import type { Log, LogRecord } from "../log.ts";
import { appendAndRead } from "./append-and-read.ts";
import { deferredHashes } from "./deferred-hashes.ts";
import { snapshotsAndPruning } from "./snapshots-and-pruning.ts";
import { tellStories } from "./stories.ts";
import type { OpenSubject, Stories } from "./vocabulary.ts";
import { batchOf, collect, eventsOf, failsWith, fill, isBug, namesOf, text } from "./vocabulary.ts";

/** Each story has a log of its own, so they need not wait for each other's disk. */
const STORIES_AT_ONCE = 4;

export function logContract(name: string, open: OpenSubject): void {
  const stories = { ...appendAndRead, ...deferredHashes, ...snapshotsAndPruning, ...closing, ...argumentsRefused };
  tellStories({ title: `${name} keeps the promises of a log`, stories, open, atOnce: STORIES_AT_ONCE });
}

const closing: Stories = {
  "closing twice is once, and afterwards everything is refused": async ({ log }) => {
    await fill(log, [2]);
    await Promise.all([log.close(), log.close()]);
    await log.close();
    const closed = failsWith("closed");
    await assert.rejects(log.append(seq(2), 0, batchOf(3, 1), "x"), closed);
    await assert.rejects(collect(log.read(seq(0))), closed);
    await assert.rejects(log.readRecord(seq(1)), closed);
    await assert.rejects(log.head(), closed);
    await assert.rejects(log.saveSnapshot({ seq: seq(1), hash: ZERO_HASH_HEX, chunks: [] }), closed);
    await assert.rejects(log.loadSnapshot(), closed);
    await assert.rejects(log.prune(seq(1), []), closed);
    await assert.rejects(log.acquireLead("a", seconds(1)), closed);
    await assert.rejects(log.verify(), closed);
  },

  "an append that was asked for before closing is stored": async ({ log, reopen }) => {
    const appended = log.append(seq(0), 0, batchOf(1, 2), "a");
    await log.close();
    assert.equal((await appended).type, "appended");
    assert.deepEqual(eventsOf(await collect((await reopen()).read(seq(0)))), namesOf(1, 2));
  },

  "a log can be held with `await using`": async ({ log }) => {
    {
      await using held = log;
      await fill(held, [1]);
    }
    await assert.rejects(log.head(), failsWith("closed"));
  },
};

const ONE = batchOf(1, 1);
const TOO_MANY = { firstSeq: seq(1), records: new Array<LogRecord>(BATCH_RECORDS_MAX + 1).fill({ bytes: text("x") }) };
const BAD_CALLS: { name: string; ask: (log: Log) => Promise<unknown> }[] = [
  { name: "an empty batch", ask: (log) => log.append(seq(0), 0, { firstSeq: seq(1), records: [] }, "a") },
  { name: "a batch that leaves a gap", ask: (log) => log.append(seq(0), 0, batchOf(2, 1), "a") },
  { name: "a batch that overlaps", ask: (log) => log.append(seq(1), 0, ONE, "a") },
  { name: "a batch with too many records", ask: (log) => log.append(seq(0), 0, TOO_MANY, "a") },
  { name: "an empty batch id", ask: (log) => log.append(seq(0), 0, ONE, "") },
  { name: "a batch id too long", ask: (log) => log.append(seq(0), 0, ONE, "x".repeat(257)) },
  { name: "a seq below zero", ask: (log) => log.append(seq(-1), 0, batchOf(0, 1), "a") },
  { name: "a seq that is not whole", ask: (log) => log.append(seq(0.5), 0, batchOf(1.5, 1), "a") },
  { name: "an epoch below zero", ask: (log) => log.append(seq(0), -1, ONE, "a") },
  { name: "an epoch that is not whole", ask: (log) => log.append(seq(0), 0.5, ONE, "a") },
  { name: "reading from below zero", ask: (log) => collect(log.read(seq(-1))) },
  { name: "reading from no number", ask: (log) => collect(log.read(seq(Number.NaN))) },
  { name: "a record below zero", ask: (log) => log.readRecord(seq(-1)) },
  { name: "pruning before a fraction", ask: (log) => log.prune(seq(1.5), []) },
  { name: "an anchor without a hash", ask: (log) => log.verify({ expect: { seq: seq(0), hash: "0" } }) },
];
const argumentsRefused: Stories = {
  "what no correct caller asks for is refused as a bug and changes nothing": async ({ log }) => {
    for (const { name, ask } of BAD_CALLS) {
      await assert.rejects(ask(log), isBug, name);
      assert.equal((await log.head()).seq, 0, name);
    }
    await fill(log, [1]);
  },
};
