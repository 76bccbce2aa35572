/**
 * What every driver of the journal must do, as a test suite.
 *
 * A driver's own test calls `journalContract(name, open)`. Each test gets a fresh journal and as many handles on it as
 * it asks for, each like a node of its own. Time passes as the driver has it: by hand, or for real.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { type Seq, seconds, seq } from "../../core/base/index.ts";
import { nextTurn } from "../../std/index.ts";
import { packedOf } from "../format/batch-builder.ts";
import { sealBatch } from "../format/batch-row.ts";
import { fromHex, ZERO_HASH_HEX } from "../format/chain.ts";
import type { Journal, NodeAnnouncement, SealedBatch } from "../journal/journal.ts";
import type { AppendResult, Head } from "../log.ts";
import { tellStories } from "./stories.ts";
import { batchOf, collect, each, failsWith } from "./vocabulary.ts";

export type JournalSubject = {
  /** Another handle on the same journal, as another node has it. */
  handle(): Promise<Journal>;
  /** Resolves when so many milliseconds have passed, by the clock of the journal and its handles. */
  pass(ms: number): Promise<void>;
  dispose(): Promise<void>;
};
type JournalStories = Readonly<Record<string, (subject: JournalSubject) => Promise<void>>>;

/** Long enough that a machine with other work renews it in time. */
const TTL = seconds(3);
/** So many waits are called off, each a turn later: some of them while the lead is being taken. */
const CALLED_OFF = 24;
const ROUNDS = 20;
/** A lead that is free is won sooner. */
const LONG_MS = 60_000;

export function journalContract(name: string, open: () => Promise<JournalSubject>): void {
  const stories = { ...appending, ...following, ...beginning, ...leading, ...nodesAndEnds };
  tellStories({ title: `${name} keeps the promises of a journal`, stories, open });
}

type Sealing = { readonly epoch?: number; readonly batchId?: string; readonly payloadBytes?: number };

/** Bytes that no compression makes smaller, the same each time. */
function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0, word = 1; at < length; at++) {
    word = (Math.imul(word, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = word >>> 24;
  }
  return bytes;
}

/** A batch of so many events behind this head, sealed. */
export function sealed(head: Head, count: number, sealing: Sealing = {}): SealedBatch {
  const first = head.seq + 1;
  const { epoch = head.epoch, batchId = `batch-${first}`, payloadBytes = 0 } = sealing;
  const batch = batchOf(first, count);
  const [record] = batch.records;
  const payload = noise(payloadBytes);
  const records = payloadBytes === 0 || record === undefined ? batch.records : [{ ...record, payload }];
  const packed = packedOf({ ...batch, records });
  const { hashes: _, ...row } = sealBatch({
    firstSeq: seq(first),
    epoch,
    batchId,
    count: packed.count,
    bytes: packed.bytes,
    priorHash: fromHex(head.hash),
  });
  return { ...row, payloads: packed.payloads };
}

export async function appendSizes(journal: Journal, sizes: readonly number[], sealing: Sealing = {}): Promise<Head> {
  let head = await journal.head();
  for (const size of sizes) head = appendedHead(await journal.append(sealed(head, size, sealing)));
  return head;
}

function appendedHead(result: AppendResult): Head {
  assert.equal(result.type, "appended");
  return (result as { head: Head }).head;
}

/** The next so many of what a follower gets. */
async function take<Item>(items: AsyncIterator<Item>, count: number): Promise<Item[]> {
  const found: Item[] = [];
  while (found.length < count) {
    const { value, done } = await items.next();
    if (done) break;
    found.push(value);
  }
  return found;
}

const iterate = <Item>(items: AsyncIterable<Item>): AsyncIterator<Item> => items[Symbol.asyncIterator]();

/** With a hash for each field of bytes, so that two entries can be compared however their bytes are kept. */
const plain = (entry: SealedBatch): unknown =>
  Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [key, value instanceof Uint8Array ? hash("sha256", value) : value]),
  );

const announced = (node: string, at: Seq): NodeAnnouncement => ({
  node,
  url: `http://${node}:1`,
  seq: at,
  hash: ZERO_HASH_HEX,
  epoch: 1,
  stored: at,
  ...(node === "ann" ? { key: "a2V5IG9mIGFubg==" } : {}),
});

const appending: JournalStories = {
  "an empty journal stands at zero": async ({ handle }) => {
    const journal = await handle();
    assert.deepEqual(await journal.head(), { seq: 0, hash: ZERO_HASH_HEX, epoch: 0, batchId: "" });
    assert.deepEqual(await collect(journal.read(seq(0))), []);
    const { kind, base, head, warnings } = await journal.describe();
    assert.deepEqual([kind, base.seq, head.seq], [journal.kind, 0, 0]);
    assert.ok(Array.isArray(warnings));
  },

  "what one node appends, another reads to the byte": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const entries: SealedBatch[] = [];
    let head = await ann.head();
    for (const size of [4, 1, 3]) {
      entries.push(sealed(head, size));
      head = appendedHead(await ann.append(entries.at(-1) as SealedBatch));
    }
    assert.deepEqual(await bob.head(), head);
    assert.deepEqual((await collect(bob.read(seq(0)))).map(plain), entries.map(plain));
    assert.deepEqual(each(await collect(bob.read(seq(4))), "firstSeq"), [5, 6]);
    assert.deepEqual(each(await collect(bob.read(seq(6))), "firstSeq"), [6]);
    assert.deepEqual(await collect(bob.read(seq(8))), []);
  },

  "of two nodes that append behind the same event exactly one wins": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const head = await ann.head();
    const results = await Promise.all([
      ann.append(sealed(head, 2, { batchId: "ann" })),
      bob.append(sealed(head, 1, { batchId: "bob" })),
    ]);
    assert.deepEqual(results.map(({ type }) => type).sort(), ["appended", "conflict"]);
    assert.equal((await collect(ann.read(seq(0)))).length, 1);
  },

  "an append behind anything but the head, or linked to another hash, is a conflict": async ({ handle }) => {
    const journal = await handle();
    const genesis = await journal.head();
    const head = await appendSizes(journal, [3]);
    const elsewhere = [genesis, { ...head, seq: seq(2) }, { ...head, seq: seq(9) }, { ...head, hash: ZERO_HASH_HEX }];
    for (const wrong of elsewhere)
      assert.deepEqual(await journal.append(sealed(wrong, 1, { batchId: "late" })), { type: "conflict", head });
    assert.equal((await collect(journal.read(seq(0)))).length, 1);
  },

  "D2 a repeat of what is the head is appended once, also under a later leader": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const head = await appendSizes(ann, [2]);
    const entry = sealed(head, 2, { batchId: "lost-answer" });
    const first = await ann.append(entry);
    assert.deepEqual(await bob.append(entry), first);
    const lead = await bob.acquireLead("bob", TTL);
    const again = await ann.append(entry);
    assert.deepEqual(again, { type: "appended", head: { ...appendedHead(first), epoch: lead.epoch } });
    const others = [
      sealed(head, 1, { batchId: "lost-answer" }),
      sealed(head, 2, { batchId: "lost-answer", epoch: 99 }),
    ];
    for (const other of others) assert.equal((await ann.append(other)).type, "conflict");
    assert.equal((await collect(ann.read(seq(0)))).length, 2);
  },

  "a batch of a higher epoch raises it for all, one of a lower is a conflict": async ({ handle }) => {
    const journal = await handle();
    const head = await appendSizes(journal, [1], { epoch: 7 });
    assert.equal(head.epoch, 7);
    assert.equal((await journal.append(sealed(head, 1, { epoch: 6 }))).type, "conflict");
    assert.equal((await journal.acquireLead("ann", TTL)).epoch, 8);
  },

  "a large batch is stored whole": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const entry = sealed(await ann.head(), 1, { payloadBytes: 3_000_000 });
    const head = appendedHead(await ann.append(entry));
    const many = sealed(head, 5000);
    await ann.append(many);
    assert.deepEqual((await collect(bob.read(seq(0)))).map(plain), [entry, many].map(plain));
  },
};

const following: JournalStories = {
  "a follower gets what is there, then every batch as it is committed, in order": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    await appendSizes(ann, [2, 1]);
    const end = new AbortController();
    const followed = iterate(bob.follow(seq(2), end.signal));
    assert.deepEqual(each(await take(followed, 1), "firstSeq"), [3]);
    const next = take(followed, 3);
    await appendSizes(ann, [1, 4, 1]);
    assert.deepEqual(each(await next, "firstSeq"), [4, 5, 9]);
    const last = take(followed, 1);
    end.abort();
    assert.deepEqual(await last, []);
  },

  "what was pruned is refused by name, to readers and followers; the head and what is left stay": async ({
    handle,
  }) => {
    const [ann, bob] = [await handle(), await handle()];
    const head = await appendSizes(ann, [3, 3, 3]);
    assert.equal((await ann.prune(seq(5))).seq, 3);
    assert.equal((await ann.prune(seq(6))).seq, 6);
    assert.equal((await ann.prune(seq(2))).seq, 6);
    await assert.rejects(collect(bob.read(seq(5))), failsWith("pruned", 6));
    await assert.rejects(take(iterate(bob.follow(seq(0), new AbortController().signal)), 1), failsWith("pruned", 6));
    assert.deepEqual(each(await collect(bob.read(seq(6))), "firstSeq"), [7]);
    assert.deepEqual(await bob.head(), head);
    await ann.prune(seq(9));
    assert.equal((await bob.append(sealed(await bob.head(), 1))).type, "appended");
    assert.deepEqual((await bob.describe()).base, { seq: 9, hash: head.hash });
  },
};

const beginning: JournalStories = {
  "an empty journal may begin behind an event, under any epoch; one that is not stays as it is": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const { epoch } = await ann.acquireLead("ann", TTL);
    const base = { seq: seq(7), hash: "ab".repeat(32) };
    assert.deepEqual(await ann.begin(base), base);
    assert.deepEqual(await bob.head(), { ...base, epoch, batchId: "" });
    await assert.rejects(collect(bob.read(seq(6))), failsWith("pruned", 7));
    assert.equal((await appendSizes(bob, [2])).seq, 9);
    assert.deepEqual(await bob.begin({ seq: seq(3), hash: "cd".repeat(32) }), base);
    assert.deepEqual(each(await collect(ann.read(seq(7))), "firstSeq"), [8]);
  },
};

const leading: JournalStories = {
  "a lead raises the epoch, and whoever led before is refused": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const old = await ann.acquireLead("ann", TTL);
    assert.ok(old.holds());
    assert.deepEqual((await bob.nodes()).lead, { node: "ann", epoch: old.epoch });
    await old.release();
    assert.ok(!old.holds());
    assert.equal((await old.lost).reason, "released");
    const lead = await bob.acquireLead("bob", TTL);
    assert.ok(lead.epoch > old.epoch);
    const head = await ann.head();
    assert.equal(head.epoch, lead.epoch);
    assert.equal((await ann.append(sealed(head, 1, { epoch: old.epoch }))).type, "conflict");
    assert.equal((await bob.append(sealed(head, 1, { epoch: lead.epoch }))).type, "appended");
  },

  "whoever wants a lead that is held waits until it is given up": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const lead = await ann.acquireLead("ann", seconds(60));
    const order: string[] = [];
    const taken = bob.acquireLead("bob", TTL).then(() => order.push("taken"));
    await bob.head();
    order.push("given up");
    await lead.release();
    await taken;
    assert.deepEqual(order, ["given up", "taken"]);
  },

  "nodes that want the lead at the same time have it one after the other": async ({ handle }) => {
    const names = ["ann", "bob", "cid"];
    const journals = await Promise.all(names.map(() => handle()));
    const ends = AbortSignal.timeout(LONG_MS);
    for (let round = 0; round < ROUNDS; round++)
      await Promise.all(
        journals.map(async (journal, at) => (await journal.acquireLead(names[at] as string, TTL, ends)).release()),
      );
  },

  "a wait for the lead ends with its signal": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    await ann.acquireLead("ann", seconds(60));
    const end = new AbortController();
    const waiting = assert.rejects(bob.acquireLead("bob", TTL, end.signal), { message: "enough" });
    end.abort(new Error("enough"));
    await waiting;
    assert.equal((await bob.nodes()).lead?.node, "ann");
  },

  "a lead that is won when nobody waits for it any more is given up": async ({ handle }) => {
    let ann = await handle();
    const bob = await handle();
    for (let called = 0; called < CALLED_OFF; called++) {
      const end = new AbortController();
      const asked = ann.acquireLead("ann", seconds(60), end.signal).then(
        (lead) => lead.release(),
        () => {},
      );
      for (let turn = 0; turn < called; turn++) await nextTurn();
      // Every fourth time its handle is closed.
      if (called % 4 < 3) end.abort(new Error("enough"));
      else await ann.close();
      await asked;
      if (called % 4 === 3) ann = await handle();
      const lead = await bob.acquireLead("bob", TTL, AbortSignal.timeout(LONG_MS));
      await lead.release();
    }
  },

  "a lead is renewed for as long as it is wanted": async ({ handle, pass }) => {
    const [ann, bob] = [await handle(), await handle()];
    const lead = await ann.acquireLead("ann", TTL);
    const end = new AbortController();
    const waiting = assert.rejects(bob.acquireLead("bob", TTL, end.signal), { message: "enough" });
    await pass(2 * TTL);
    assert.ok(lead.holds());
    assert.deepEqual((await bob.nodes()).lead, { node: "ann", epoch: lead.epoch });
    end.abort(new Error("enough"));
    await waiting;
  },

  "a node that comes back takes its own lead at once, and a handle has one lead": async ({ handle }) => {
    const [ann, again] = [await handle(), await handle()];
    const first = await ann.acquireLead("ann", seconds(60));
    const second = await again.acquireLead("ann", seconds(60));
    assert.ok(second.epoch > first.epoch);
    const third = await again.acquireLead("other name", seconds(60));
    assert.ok(third.epoch > second.epoch);
    assert.equal((await second.lost).reason, "released");
  },
};

const nodesAndEnds: JournalStories = {
  "all nodes have one secret, made by the first that asks": async ({ handle }) => {
    const [a, b] = await Promise.all([handle(), handle()]);
    const [first, second] = await Promise.all([a.secret(), b.secret()]);
    assert.match(first, /^[0-9a-f]{64}$/);
    assert.equal(second, first);
    const head = await appendSizes(a, [1, 2]);
    const later = await handle();
    assert.equal(await later.secret(), first);
    assert.deepEqual((await later.head()).hash, head.hash, "it is no part of the order");
  },
  "nodes tell of themselves, and every node sees all": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    await ann.announce(announced("ann", seq(3)));
    await bob.announce(announced("bob", seq(2)));
    await ann.announce(announced("ann", seq(4)));
    const { nodes, lead } = await bob.nodes();
    assert.deepEqual(
      nodes.map(({ ageMs: _, ...told }) => told),
      [announced("ann", seq(4)), announced("bob", seq(2))],
    );
    assert.ok(nodes.every(({ ageMs }) => ageMs >= 0));
    assert.equal(lead, null);
  },

  "what no node tells of itself is passed over, and the rest is read": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    await ann.announce(announced("ann", seq(3)));
    const odd: readonly object[] = [
      { node: "a name" },
      { node: "n".repeat(65) },
      { node: "red\u001b[31m" },
      { node: "u1", url: "javascript:alert(1)" },
      { node: "u2", url: "http://ann@u2:1" },
      { node: "u3", url: `http://${"u".repeat(600)}` },
      { node: "u4", url: 7 },
      { node: "s1", seq: -1 },
      { node: "s2", epoch: Number.NaN },
      { node: "s3", hash: "\u202e" },
      { node: "large", more: "x".repeat(100_000) },
    ];
    for (const change of odd) await bob.announce({ ...announced("odd", seq(2)), ...change } as NodeAnnouncement);
    const words = { key: "\u0007".repeat(9), now: 1e300, behindMs: "long", warnings: ["one\r\u001b[2Kline", 7, ""] };
    await bob.announce({ ...announced("bob", seq(2)), ...words } as unknown as NodeAnnouncement);
    assert.deepEqual(
      (await ann.nodes()).nodes.map(({ ageMs: _, ...told }) => told),
      [announced("ann", seq(3)), { ...announced("bob", seq(2)), warnings: ["one  [2Kline"] }],
    );
  },

  "who looks after a word was told finds more counted than who looked before, whoever it is": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    let before = (await ann.nodes()).count;
    for (const [teller, looker] of [
      [ann, bob],
      [bob, bob],
      [ann, ann],
    ] as const) {
      await teller.announce(announced("ann", seq(3)));
      const { count } = await looker.nodes();
      assert.ok(count > before, `${count} after ${before}`);
      before = count;
    }
  },

  "closing gives up the lead, ends followers, and refuses what comes later; twice is once": async ({ handle }) => {
    const [ann, bob] = [await handle(), await handle()];
    const lead = await ann.acquireLead("ann", seconds(60));
    const followed = take(iterate(ann.follow(seq(0), new AbortController().signal)), 1);
    const ended = assert.rejects(followed, failsWith("closed"));
    await Promise.all([ann.close(), ann.close()]);
    await ended;
    assert.equal((await lead.lost).reason, "released");
    await bob.acquireLead("bob", TTL);
    const closed = failsWith("closed");
    await assert.rejects(ann.head(), closed);
    await assert.rejects(ann.append(sealed(await bob.head(), 1)), closed);
    await assert.rejects(collect(ann.read(seq(0))), closed);
    await assert.rejects(ann.acquireLead("ann", TTL), closed);
    await assert.rejects(ann.nodes(), closed);
  },
};
