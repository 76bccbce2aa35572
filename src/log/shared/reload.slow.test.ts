/**
 * A node that was away while the journal was pruned gets what it missed from another node, checked; a reload that was
 * broken off is begun again, and what is not what was written is not taken.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { until } from "../../../test/kits/waits.ts";
import { seq } from "../../core/base/index.ts";
import { realClock } from "../../std/index.ts";
import { collect, eventsOf, failsWith, fill, namesOf, payloadAt, save } from "../contract/vocabulary.ts";
import { publicKeyIn } from "../integrity/signing-key.ts";
import { createMemoryJournal, createMemoryJournalStore, type MemoryJournal } from "../journal/memory-journal.ts";
import { openSqliteLog } from "../sqlite/sqlite-log.ts";
import { createNodeDoor } from "./node-token.ts";
import { sealWord, WORD_PATH } from "./node-word.ts";
import { historyFrames, replicaFrames } from "./serving.ts";
import { openSharedLog, type SharedLog } from "./shared-log.ts";

/** A journal with nodes `ann` and `cid` that serve their replicas, and a directory for `bob`. */
async function world(context: TestContext) {
  const store = createMemoryJournalStore();
  const newDirectory = (): string => {
    const directory = mkdtempSync(join(tmpdir(), "drover-reload-"));
    context.after(() => rmSync(directory, { recursive: true, force: true }));
    return directory;
  };
  const notices: string[] = [];
  const open = async (
    node: string,
    directory: string,
    { signal, isOfCluster = true }: { signal?: AbortSignal; isOfCluster?: boolean } = {},
  ): Promise<SharedLog> => {
    const journal = createMemoryJournal({ store });
    const onNotice = (line: string): void => void notices.push(line);
    const log = await openSharedLog({
      journal,
      directory,
      node,
      isOfCluster,
      onNotice,
      ...(signal === undefined ? {} : { signal }),
    });
    context.after(() => log.close());
    return log;
  };
  const [anns, bobs, cids] = [newDirectory(), newDirectory(), newDirectory()];
  const ann = await open("ann", anns);
  /** What is done to the bytes on their way. */
  const way = { spoil: (chunk: Buffer): Buffer => chunk, asked: [] as string[] };
  /** A node that serves its replica; answers where. */
  async function serve(node: string, replica: string): Promise<string> {
    const door = createNodeDoor({ secret: store.secret, self: node, clock: realClock });
    const answer: RequestListener = (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "", url);
      const token = request.headers.authorization?.slice("Bearer ".length) ?? "";
      if (pathname === WORD_PATH) {
        const told = { node, url, leads: true, epoch: 1, moment: door.moment() };
        return void response.end(JSON.stringify(sealWord(store.secret, searchParams.get("question") ?? "", told)));
      }
      if (!door.isOpenedBy(token)) return void response.writeHead(401).end("{}");
      way.asked.push(node === "cid" ? `cid ${pathname}` : pathname);
      const after = seq(Number(searchParams.get("after")));
      const frames = pathname === "/cluster/log" ? historyFrames(replica, after) : replicaFrames(replica);
      const sent = Readable.from(frames).on("error", () => response.destroy());
      sent
        .map((chunk: Buffer) => way.spoil(chunk))
        .on("error", () => response.destroy())
        .pipe(response);
    };
    const server = createServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    context.after(() => {
      server.close();
      server.closeAllConnections();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return url;
  }
  const [url, urlOfCid] = [await serve("ann", anns), await serve("cid", cids)];
  async function tell(log = ann, node = { node: "ann", url, key: publicKeyIn(anns) }): Promise<void> {
    const { seq: at, hash, epoch } = await log.head();
    await until("all of it on disk", () => log.stored() === at);
    await log.journal.announce({ ...node, seq: at, hash, epoch, stored: log.stored() });
  }
  const tellOfCid = (cid: SharedLog): Promise<void> =>
    tell(cid, { node: "cid", url: urlOfCid, key: publicKeyIn(cids) });
  return { ann, anns, bobs, cids, newDirectory, open, tell, tellOfCid, urlOfCid, way, notices };
}

/** All that a log has is the same as in the other, and it verifies. */
async function isSame(log: SharedLog, other: SharedLog, from: number): Promise<void> {
  assert.deepEqual(await log.head(), await other.head());
  const { seq: last } = await other.head();
  assert.deepEqual(eventsOf(await collect(log.read(seq(from)))), namesOf(from + 1, last));
  assert.deepEqual((await log.verify({ expect: await other.head() })).problems, []);
}

test("a node that was away gets the batches that the journal dropped from one that has them", async (context) => {
  const { ann, bobs, open, tell, way, notices } = await world(context);
  await fill(ann, [2, 3]);
  await (await open("bob", bobs)).close();
  await fill(ann, [4, 5]);
  await ann.journal.prune(seq(9));
  await fill(ann, [1]);
  await tell();
  const bob = await open("bob", bobs);
  await isSame(bob, ann, 0);
  assert.equal(await payloadAt(bob, 9), "payload 9");
  assert.deepEqual(way.asked, ["/cluster/log"]);
  assert.match(notices.join("\n"), /fetched from another node/);
});

test("a node that runs, and was cut off meanwhile, gets them too and goes on without a restart", async (context) => {
  const { ann, bobs, open, tell, way } = await world(context);
  await fill(ann, [2, 3]);
  const bob = await open("bob", bobs);
  await until("bob at 5", async () => (await bob.head()).seq === 5);
  (bob.journal as MemoryJournal).fault({ cut: "both" });
  await fill(ann, [4, 5]);
  await ann.journal.prune(seq(9));
  await tell();
  (bob.journal as MemoryJournal).fault({ cut: "none" });
  await until("bob at the end", async () => (await bob.head()).seq === 14);
  assert.deepEqual(way.asked, ["/cluster/log"]);
  await fill(ann, [1]);
  await until("bob behind it", async () => (await bob.head()).seq === 15);
  await isSame(bob, ann, 0);
});

test("one that is further behind than any other node can tell ends with what to do", async (context) => {
  const ground = await world(context);
  const { ann, bobs, open } = ground;
  await fill(ann, [1]);
  const bob = await open("bob", bobs);
  await until("bob at 1", async () => (await bob.head()).seq === 1);
  (bob.journal as MemoryJournal).fault({ cut: "both" });
  await forgotten(ground);
  const followed = collect(bob.follow(seq(1), new AbortController().signal));
  (bob.journal as MemoryJournal).fault({ cut: "none" });
  await assert.rejects(followed, /at event 1, and neither the journal nor another node has what comes next\. Start it/);
  await bob.close();
  await isSame(await open("bob", bobs), ann, 10);
});

test("a node that was pruned too is not the last to be asked", async (context) => {
  const { ann, bobs, cids, open, tell, tellOfCid, way } = await world(context);
  await fill(ann, [1]);
  const bob = await open("bob", bobs);
  await until("bob at 1", async () => (await bob.head()).seq === 1);
  (bob.journal as MemoryJournal).fault({ cut: "both" });
  await fill(ann, [2, 3, 4]);
  const cid = await open("cid", cids);
  await until("cid at 10", async () => (await cid.head()).seq === 10);
  await save(cid, await cid.head());
  await cid.prune(seq(9), []);
  await ann.journal.prune(seq(9));
  await tell();
  await until("an older word of ann", async () => (await ann.journal.nodes()).nodes.every(({ ageMs }) => ageMs > 0));
  await tellOfCid(cid);
  (bob.journal as MemoryJournal).fault({ cut: "none" });
  await until("bob at the end", async () => (await bob.head()).seq === 10);
  assert.deepEqual(way.asked, ["cid /cluster/log", "/cluster/log"]);
  await isSame(bob, ann, 0);
});

test("one that does not prove to be the node that is meant gets no token, and gives nothing", async (context) => {
  const { ann, anns, bobs, open, tell, urlOfCid, way, notices } = await world(context);
  await (await open("bob", bobs)).close();
  await fill(ann, [2, 3]);
  await ann.journal.prune(seq(5));
  await fill(ann, [1]);
  await tell(ann, { node: "ann", url: urlOfCid, key: publicKeyIn(anns) });
  const end = new AbortController();
  const opening = open("bob", bobs, { signal: end.signal }).catch((error: unknown) => error);
  await until("a word about it", () => notices.some((line) => /has not proved to be node ann/.test(line)));
  end.abort(new Error("enough"));
  assert.match(String(await opening), /enough/);
  assert.deepEqual(way.asked, []);
});

/** Both the journal and ann have forgotten all up to event 9; the payload of 6 was kept. */
async function forgotten({ ann, tell }: Awaited<ReturnType<typeof world>>): Promise<void> {
  await fill(ann, [2, 3, 4]);
  const head = await fill(ann, [5]);
  await save(ann, head);
  await ann.prune(seq(9), [seq(6)]);
  await fill(ann, [3]);
  await ann.journal.prune(seq(14));
  await fill(ann, [1]);
  await tell();
}

test("where that was pruned too, it begins anew where the other begins, with all that it needs", async (context) => {
  const ground = await world(context);
  const { ann, bobs, open, way } = ground;
  await fill(ann, [1]);
  await (await open("bob", bobs)).close();
  await forgotten(ground);
  const bob = await open("bob", bobs);
  await isSame(bob, ann, 10);
  assert.equal(await payloadAt(bob, 6), "payload 6");
  const [snapshot, original] = [await bob.loadSnapshot(), await ann.loadSnapshot()];
  assert.ok(snapshot !== null && original !== null);
  assert.deepEqual(await collect(snapshot.chunks), await collect(original.chunks));
  assert.deepEqual(way.asked, ["/cluster/log", "/cluster/snapshot", "/cluster/log"]);
  await bob.close();
  await isSame(await open("bob", bobs), ann, 10);
});

test("a directory of another history is refused as it is, whatever the other nodes have", async (context) => {
  const ground = await world(context);
  const { ann, newDirectory, open, tell } = ground;
  const strangers = async (sizes: readonly number[]): Promise<() => Promise<void>> => {
    const directory = newDirectory();
    const log = await openSqliteLog({ directory });
    const head = await fill(log, sizes);
    await log.close();
    return async () => {
      const signal = AbortSignal.timeout(60_000);
      const opening = open("bob", directory, { isOfCluster: false, signal });
      await assert.rejects(opening, failsWith("diverged", head.seq));
      await using unchanged = await openSqliteLog({ directory });
      assert.deepEqual(await unchanged.head(), head);
      assert.deepEqual(eventsOf(await collect(unchanged.read(seq(0)))), namesOf(1, head.seq));
    };
  };
  const [early, late] = [await strangers([1, 1]), await strangers([12])];
  await fill(ann, [2, 3]);
  await ann.journal.prune(seq(5));
  await fill(ann, [1]);
  await tell();
  // Ann has all from the first event on, linked to another second one.
  await early();
  await fill(ann, [3, 4]);
  const head = await fill(ann, [1]);
  await save(ann, head);
  await ann.prune(seq(13), []);
  await fill(ann, [3]);
  await ann.journal.prune(seq(17));
  await fill(ann, [1]);
  await tell();
  await early();
  await late();
  // One that is empty has nothing to lose.
  await isSame(await open("bob", newDirectory(), { isOfCluster: false }), ann, 14);
});

test("a reload that was broken off is begun again: at the snapshot, and behind it", async (context) => {
  const ground = await world(context);
  const { ann, bobs, open, way, notices } = ground;
  await forgotten(ground);
  for (const breaksAt of ["/cluster/snapshot", "/cluster/log"]) {
    const end = new AbortController();
    let isBroken = false;
    way.asked.length = 0;
    way.spoil = (chunk) => {
      if (way.asked.at(-1) !== breaksAt || way.asked.length < 2 || chunk[0] === 1) return chunk;
      isBroken = true;
      throw new Error("cut off");
    };
    const opening = open("bob", bobs, { signal: end.signal }).catch((error: unknown) => error);
    await until(`a break at ${breaksAt}`, () => isBroken && notices.some((line) => /no other node gives/.test(line)));
    end.abort(new Error("enough"));
    assert.match(String(await opening), /enough/);
  }
  way.spoil = (chunk) => chunk;
  await isSame(await open("bob", bobs), ann, 10);
});

test("what is not what was written is not taken: a snapshot, a kept payload, a batch", async (context) => {
  const ground = await world(context);
  const { ann, anns, bobs, open, way, notices } = ground;
  await forgotten(ground);
  const flipped = (kind: number) => (chunk: Buffer) => {
    if (chunk[0] !== kind) return chunk;
    const copy = Buffer.from(chunk);
    const at = kind === 2 ? copy.indexOf("event ") : copy.length - 1;
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  for (const [kind, says] of [
    [5, /its snapshot does not carry/],
    [4, /payload of event 6/],
    [2, /damaged/],
  ] as const) {
    notices.length = 0;
    way.spoil = flipped(kind);
    const end = new AbortController();
    const opening = open("bob", bobs, { signal: end.signal }).catch((error: unknown) => error);
    await until(`a word about ${kind}`, () => notices.some((line) => says.test(line)));
    end.abort(new Error("enough"));
    assert.match(String(await opening), /enough/);
  }
  way.spoil = (chunk) => chunk;
  // Another key signs: what it says is not what ann has announced.
  const database = new DatabaseSync(join(anns, "drover.db"));
  const { signature } = database.prepare("SELECT signature FROM checkpoint").get() as { signature: string };
  const put = (text: string): unknown => database.prepare("UPDATE checkpoint SET signature = ?").run(text);
  put(`00${signature.slice(2)}`);
  notices.length = 0;
  const end = new AbortController();
  const opening = open("bob", bobs, { signal: end.signal }).catch((error: unknown) => error);
  await until("a word about it", () => notices.some((line) => /its snapshot does not carry/.test(line)));
  end.abort(new Error("enough"));
  await opening;
  put(signature);
  database.close();
  await isSame(await open("bob", bobs), ann, 10);
});
