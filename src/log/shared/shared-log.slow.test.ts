/**
 * A shared log keeps the promises of a log, and what only it promises: several nodes see one history, and nothing that
 * goes wrong between a node and the journal loses or doubles a batch.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { within } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { createHandClock } from "../../std/index.ts";
import { submitted } from "../contract/deferred-hashes.ts";
import { logContract } from "../contract/log-contract.ts";
import { inDirectory } from "../contract/stories.ts";
import { batchOf, collect, each, eventsOf, failsWith, fill, fillHours, namesOf } from "../contract/vocabulary.ts";
import { createGathering, emptied, gather, gatheredBatch } from "../format/batch-builder.ts";
import type { MemoryJournal, MemoryJournalStore } from "../journal/memory-journal.ts";
import { createMemoryJournal, createMemoryJournalStore, expireLead } from "../journal/memory-journal.ts";
import type { ReadBatch } from "../log.ts";
import { openSqliteLog } from "../sqlite/sqlite-log.ts";
import { openSharedLog, type SharedLog } from "./shared-log.ts";

const newDirectory = (): string => mkdtempSync(join(tmpdir(), "drover-shared-"));
const TTL = seconds(60);

logContract(
  "the shared log over the memory journal",
  inDirectory(async (directory) => {
    const store = createMemoryJournalStore();
    return () => openSharedLog({ journal: createMemoryJournal({ store }), directory });
  }),
);

type Node = {
  readonly log: SharedLog;
  readonly journal: MemoryJournal;
  readonly notices: string[];
  readonly directory: string;
};

/** A journal, and nodes on it that are gone after the test. */
function world(context: TestContext, store: MemoryJournalStore = createMemoryJournalStore()) {
  const nodes: Node[] = [];
  const directories: string[] = [];
  context.after(async () => {
    for (const { log } of nodes) await log.close();
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  });
  function newPlace(): string {
    directories.push(newDirectory());
    return directories.at(-1) as string;
  }
  async function node(directory = newPlace()): Promise<Node> {
    const notices: string[] = [];
    const journal = createMemoryJournal({ store });
    const log = await openSharedLog({ journal, directory, onNotice: (line) => notices.push(line) });
    nodes.push({ log, journal, notices, directory });
    return nodes.at(-1) as Node;
  }
  return { store, node, newPlace };
}

/** Follows until so many events were seen. */
async function followed(log: SharedLog, after: number, count: number): Promise<ReadBatch[]> {
  const end = new AbortController();
  const seen: ReadBatch[] = [];
  for await (const batch of log.follow(seq(after), end.signal)) {
    seen.push(batch);
    if (eventsOf(seen).length >= count) end.abort();
  }
  return seen;
}

test("what one node appends, another follows, and has in its own replica with the same hashes", async (context) => {
  const { node } = world(context);
  const [ann, bob] = [await node(), await node()];
  const seen = followed(bob.log, 0, 9);
  const head = await fill(ann.log, [3, 2, 4]);
  assert.deepEqual(eventsOf(await seen), namesOf(1, 9));
  assert.deepEqual(await bob.log.head(), head);
  assert.deepEqual(eventsOf(await followed(bob.log, 4, 5)), namesOf(5, 9));
  const report = await bob.log.verify({ expect: head });
  assert.deepEqual([report.ok, report.events], [true, 9]);
  assert.deepEqual(
    each(await collect(bob.log.read(seq(0))), "hashes"),
    each(await collect(ann.log.read(seq(0))), "hashes"),
  );
});

test("every node signs what it stores: a follower of hours verifies as it goes, and after a crash", async (context) => {
  const { node, newPlace } = world(context);
  const [ann, bob] = [await node(), await node()];
  await fillHours(ann.log, 1);
  await followed(bob.log, 0, 1);
  assert.equal((await bob.log.verify()).ok, true);
  const head = await fillHours(ann.log, 5);
  await followed(bob.log, 1, 5);
  const crashed = newPlace();
  for (const { log, directory } of [ann, bob]) {
    const { problems, unsigned } = await log.verify({ expect: head });
    assert.deepEqual([problems, unsigned], [[], null]);
    cpSync(directory, crashed, { recursive: true });
    await using copy = await openSqliteLog({ directory: crashed, readOnly: true });
    assert.deepEqual((await copy.verify({ expect: head })).problems, []);
    rmSync(crashed, { recursive: true });
  }
});

test("a payload that was changed in the journal is not taken, at the start and while following", async (context) => {
  const { node, store, newPlace } = world(context);
  const ann = await node();
  const gathering = createGathering();
  gather(gathering, 1, submitted(1), null, '{"action":"pay ann"}');
  await ann.log.append(seq(0), 0, gatheredBatch(gathering, seq(1)), "a");
  const payloads = store.entries[0]?.payloads as Uint8Array;
  const at = Buffer.from(payloads).indexOf("ann");
  payloads[at] = "b".charCodeAt(0);
  const opening = openSharedLog({ journal: createMemoryJournal({ store }), directory: newPlace() });
  await assert.rejects(opening, failsWith("corrupt", 1));
  payloads[at] = "a".charCodeAt(0);
  const bob = await node();
  bob.journal.fault({ cut: "both" });
  gather(emptied(gathering), 2, submitted(2), null, '{"action":"pay ann"}');
  await ann.log.append(seq(1), 0, gatheredBatch(gathering, seq(2)), "b");
  (store.entries[1]?.payloads as Uint8Array)[at] = "b".charCodeAt(0);
  bob.journal.fault({ cut: "none" });
  await assert.rejects(followed(bob.log, 1, 1), failsWith("corrupt", 2));
});

test("a follower that fell behind what is in memory reads on from its replica", async (context) => {
  const { node } = world(context);
  const { log } = await node();
  await fill(log, [1]);
  const large = { bytes: new Uint8Array(3_000_000) };
  const end = new AbortController();
  const seen: number[] = [];
  for await (const batch of log.follow(seq(0), end.signal)) {
    seen.push(batch.firstSeq);
    if (batch.firstSeq === 7) break;
    if (batch.firstSeq !== 1) continue;
    for (let first = 2; first <= 7; first++)
      await log.append(seq(first - 1), 0, { firstSeq: seq(first), records: [large] }, `large-${first}`);
  }
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7]);
});

test("a new leader has everything that was written before its lead, though it had heard of none", async (context) => {
  const { node } = world(context);
  const [ann, bob] = [await node(), await node()];
  const old = await ann.log.acquireLead("ann", TTL);
  bob.journal.fault({ cut: "both" });
  await ann.log.append(seq(0), old.epoch, batchOf(1, 3), "a");
  assert.equal((await bob.log.head()).seq, 0);
  await old.release();
  bob.journal.fault({ cut: "none" });
  const lead = await bob.log.acquireLead("bob", TTL);
  assert.deepEqual(await bob.log.head(), { ...(await ann.log.head()), epoch: lead.epoch });
  assert.equal((await bob.log.append(seq(3), lead.epoch, batchOf(4, 1), "b")).type, "appended");
  assert.equal((await ann.log.append(seq(3), old.epoch, batchOf(4, 2), "late")).type, "conflict");
  assert.deepEqual(eventsOf(await followed(ann.log, 0, 4)), namesOf(1, 4));
});

test("an answer that was lost is asked for again under the same id, and the batch is there once", async (context) => {
  const { node } = world(context);
  const { log, journal, notices } = await node();
  journal.fault({ loseAppends: 1, loseAnswers: 2 });
  assert.equal((await log.append(seq(0), 0, batchOf(1, 2), "a")).type, "appended");
  assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), namesOf(1, 2));
  assert.equal(notices.length, 2);
  assert.match(notices[0] ?? "", /^waiting for the journal since 0 s: it is not known whether event 1 was stored/);
  assert.match(notices[1] ?? "", /^the journal answers again/);
});

test("a journal that is full is not waited for: the append is refused, and may be repeated", async (context) => {
  const { node } = world(context);
  const { log, journal, notices } = await node();
  journal.fault({ fullFor: 1 });
  await assert.rejects(log.append(seq(0), 0, batchOf(1, 2), "a"), failsWith("journal-full"));
  assert.equal((await log.head()).seq, 0);
  assert.equal((await log.append(seq(0), 0, batchOf(1, 2), "a")).type, "appended");
  assert.deepEqual(notices, []);
});

test("a journal that is out of reach is waited for, when appending and when opening", async (context) => {
  const { node, store, newPlace } = world(context);
  const { log, journal } = await node();
  journal.fault({ cut: "both" });
  const appended = log.append(seq(0), 0, batchOf(1, 2), "a");
  journal.fault({ cut: "none" });
  assert.equal((await appended).type, "appended");
  const late = createMemoryJournal({ store });
  late.fault({ cut: "both" });
  const directory = newPlace();
  const notices: string[] = [];
  const opening = openSharedLog({
    journal: late,
    directory,
    onNotice: (line) => {
      notices.push(line);
      late.fault({ cut: "none" });
    },
  });
  const opened = await opening;
  assert.deepEqual(eventsOf(await collect(opened.read(seq(0)))), namesOf(1, 2));
  assert.match(notices[0] ?? "", /cut off/);
  await opened.close();
});

test("C16 what was not committed with the lead stays unknown; if it landed, it comes back once", async (context) => {
  const { node, store } = world(context);
  const ann = await node();
  for (const cut of ["both", "answers"] as const) {
    const { seq: at } = await ann.log.head();
    const lead = await ann.log.acquireLead("ann", TTL);
    ann.journal.fault({ cut });
    const answer = ann.log.append(at, lead.epoch, batchOf(at + 1, 1), `batch-${cut}`);
    expireLead(store);
    await lead.release();
    assert.equal((await answer).type, "unknown");
    ann.journal.fault({ cut: "none" });
  }
  assert.deepEqual(eventsOf(await followed(ann.log, 0, 1)), namesOf(1, 1));
  assert.deepEqual(each(store.entries, "batchId"), ["batch-answers"]);
});

test("a log is closed although its journal hangs: the append that hangs there stays unknown", async (context) => {
  const directory = world(context).newPlace();
  const clock = createHandClock({ at: 0 });
  const asked = Promise.withResolvers<void>();
  const append = (): Promise<never> => {
    asked.resolve();
    return new Promise(() => {});
  };
  const log = await openSharedLog({ journal: { ...createMemoryJournal(), append }, directory, clock });
  const answer = log.append(seq(0), 0, batchOf(1, 1), "a");
  await asked.promise;
  const closed = log.close();
  await clock.advance(2000);
  assert.equal((await within("the answer", answer, 5000)).type, "unknown");
  await within("the end", closed);
});

test("a crash between journal and replica loses nothing", async (context) => {
  const { node, store } = world(context);
  const first = await node();
  await fill(first.log, [2]);
  await first.log.close();
  // As if it had crashed right behind the journal's word: the replica knows nothing of this batch.
  const other = await node();
  await fill(other.log, [3]);
  const again = await node(first.directory);
  assert.deepEqual(eventsOf(await collect(again.log.read(seq(0)))), namesOf(1, 5));
  assert.equal(again.log.stored(), 5);
  assert.equal(store.head.seq, 5);
});

test("a replica of another history is refused, and nothing in it is changed", async (context) => {
  const { node, newPlace } = world(context);
  const { log } = await node();
  await fill(log, [2]);
  const cases = [
    { sizes: [1, 1], epoch: 0, finding: /hashes at event 2 differ/ },
    { sizes: [1], epoch: 0, finding: /hashes at event 1 differ/ },
    { sizes: [2, 3], epoch: 0, finding: /up to 5, the journal only up to 2/ },
  ];
  for (const { sizes, finding } of cases) {
    const directory = newPlace();
    const own = await openSqliteLog({ directory });
    const head = await fill(own, sizes);
    await own.close();
    const { journal } = await node();
    await assert.rejects(openSharedLog({ journal, directory }), (error) => {
      assert.match(String(error), finding);
      return failsWith("diverged")(error);
    });
    await using still = await openSqliteLog({ directory });
    assert.deepEqual(await still.head(), head);
    assert.equal((await still.verify()).ok, true);
  }
});

test("a data directory of before opens as a replica of a journal that has its history", async (context) => {
  const { node, store, newPlace } = world(context);
  const { log } = await node();
  const head = await fill(log, [2, 3]);
  const directory = newPlace();
  const own = await openSqliteLog({ directory });
  assert.deepEqual(await fill(own, [2, 3]), head);
  await own.close();
  await fill(log, [1]);
  const moved = await node(directory);
  assert.equal((await moved.log.head()).hash, store.head.hash);
});

test("a batch that is not what its hash says is never applied, and stops the node", async (context) => {
  const { node, store, newPlace } = world(context);
  const [ann, bob] = [await node(), await node()];
  bob.journal.fault({ cut: "both" });
  await fill(ann.log, [2, 2]);
  const [first] = store.entries;
  first?.bytes.set([(first.bytes[6] as number) ^ 1], 6);
  bob.journal.fault({ cut: "none" });
  await assert.rejects(followed(bob.log, 0, 4), failsWith("corrupt", 1));
  await assert.rejects(bob.log.append(seq(0), 0, batchOf(1, 1), "x"), failsWith("corrupt", 1));
  await assert.rejects(
    openSharedLog({ journal: createMemoryJournal({ store }), directory: newPlace() }),
    failsWith("corrupt", 1),
  );
});

test("a journal that was pruned further than the replica reaches is refused as such", async (context) => {
  const { node, store, newPlace } = world(context);
  const { log, journal } = await node();
  await fill(log, [2, 2]);
  await journal.prune(seq(2));
  const opening = openSharedLog({ journal: createMemoryJournal({ store }), directory: newPlace() });
  await assert.rejects(opening, failsWith("pruned", 2));
});

test("a replica whose disk is full stops the node; what the journal has is not lost", async (context) => {
  const { node, store, newPlace } = world(context);
  const { log } = await node();
  await fill(log, [1]);
  const directory = newPlace();
  const small = await openSharedLog({ journal: createMemoryJournal({ store }), directory, maxBytes: 400_000 });
  const end = new AbortController();
  const watching = assert.rejects(async () => {
    for await (const _ of small.follow(seq(1), end.signal));
  }, failsWith("disk-full"));
  const large = { bytes: new Uint8Array(500_000) };
  await log.append(seq(1), 0, { firstSeq: seq(2), records: [large] }, "large");
  await small.bytes().catch(() => {});
  await watching;
  await assert.rejects(small.append(seq(2), 0, batchOf(3, 1), "x"), failsWith("disk-full"));
  await small.close();
  const again = await openSharedLog({ journal: createMemoryJournal({ store }), directory });
  assert.equal((await again.head()).seq, 2);
  await again.close();
});
