/**
 * What nodes know of each other: who leads, who is down, how far each is, and whether they have one history.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, LEASE_MS, type TestNode } from "../../../test/kits/cluster.ts";
import { seq } from "../../core/base/index.ts";
import { restore } from "../../core/snapshot/restore.ts";
import { snapshotLines } from "../../core/snapshot/snapshot.ts";
import { LogFailure } from "../../log/index.ts";
import type { Journal } from "../../log/journal/index.ts";
import { createMemoryJournal } from "../../log/journal/memory-journal.ts";
import { openMemorySharedLog } from "../../log/journal/memory-shared-log.ts";
import { restFor } from "../../std/index.ts";
import { startAnnouncing } from "./announcing.ts";
import { createOwnWarnings } from "./own-warnings.ts";
import { createReadOnly } from "./read-only.ts";

const task = (id: string) => ({ id, agentId: "ann", action: "build" });

test("every node with its address and its key is a fact of the log, and so is who leads", async (context) => {
  const { nodes, clock, leader } = await createCluster(context, ["a", "b", "c"]);
  const [a, , c] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  for (const node of nodes) {
    const { state } = node.life().drover;
    assert.deepEqual(
      [...state.cluster.nodes].sort(),
      nodes.map(({ id, key }) => [id, { url: `http://${id}.test`, key: key.publicKey }]),
    );
    assert.equal(state.cluster.leader, "a");
    assert.equal(node.leaderUrl(), "http://a.test");
    const restored = restore([...snapshotLines(state)]);
    assert.deepEqual(restored.cluster, state.cluster);
  }
  const { seq } = c.applied();
  await clock.advance(20_000);
  assert.equal(c.applied().seq, seq, "what is known is not written again");
  await a.close();
  await clock.advance(LEASE_MS);
  assert.equal(c.leaderUrl(), `http://${leader().id}.test`);
});

test("the view of a cluster says who leads, who is behind and who is down", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b", "c"]);
  const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  c.journal.fault({ cut: "both" });
  await a.life().drover.submit(task("t"));
  await clock.advance(4000);
  const shown = async (): Promise<string> =>
    (await b.cluster()).nodes.map(({ id, role, lagMs }) => `${id} ${role} ${lagMs > 0}`).join(", ");
  assert.equal(await shown(), "a leader false, b follower false, c follower true");
  assert.ok(c.ageMs() >= 4000, "it knows that it does not know");
  assert.ok(b.ageMs() <= 2000);
  assert.equal(a.ageMs(), 0);
  await clock.advance(4000);
  assert.equal(await shown(), "a leader false, b follower false, c down true");
  const { log, nodes: seen } = await b.cluster();
  assert.equal(log.kind, "memory");
  assert.equal(seen[0]?.hash, log.head.hash);
  await clock.advance(3_600_000);
  assert.equal(await shown(), "a leader false, b follower false", "forgotten after an hour");
  c.journal.fault({ cut: "none" });
  await clock.advance(2000);
  assert.equal(await shown(), "a leader false, b follower false, c follower false");
});

test("while the journal is away a node shows what it knows, and says since when it is away", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b", "c"]);
  const [a, b] = nodes as [TestNode, TestNode, TestNode];
  await a.life().drover.submit(task("t"));
  await clock.advance(2000);
  const before = await b.cluster();
  assert.equal(b.journalAway(), null);
  for (const { journal } of nodes) journal.fault({ cut: "both" });
  await clock.advance(12_000);
  const { nodes: seen, log } = await b.cluster();
  const [first, self, third] = before.nodes;
  const known = [
    { ...first, ageMs: 12_000, heardMs: 12_000 },
    { ...self, lagMs: 12_000 },
    { ...third, ageMs: 12_000, heardMs: 12_000 },
  ];
  assert.deepEqual(seen, known, "others as they were; of itself it knows for how long it is sure of nothing");
  assert.deepEqual([log.head, log.kind, log.awayMs, log.ageMs], [before.log.head, "memory", 10_000, 12_000]);
  assert.equal(log.warnings.length, 1);
  assert.match(
    log.warnings[0] ?? "",
    /^the journal has been out of reach for 10 s: .* The log and the other nodes are shown as they were 12 s ago\.$/,
  );
  assert.equal((await a.cluster()).nodes.find(({ id }) => id === "a")?.role, "follower", "of itself it knows better");
  for (const { journal } of nodes) journal.fault({ cut: "none" });
  await clock.advance(4000);
  await settle();
  assert.deepEqual([b.journalAway(), (await b.cluster()).log.awayMs], [null, undefined]);
});

test("where the journal has no room for what nodes tell, their silence is not that they are down", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b", "c", "d"]);
  const [, b, , d] = nodes as [TestNode, TestNode, TestNode, TestNode];
  await clock.advance(2000);
  d.journal.fault({ cut: "both" });
  await clock.advance(8000);
  const shown = async (): Promise<string[]> =>
    (await b.cluster()).nodes.map(({ id, role, ageMs }) => `${id} ${role}${ageMs === undefined ? "" : " once"}`);
  assert.deepEqual(await shown(), ["a leader", "b follower", "c follower", "d down"]);
  const full = (): Promise<void> => Promise.reject(new LogFailure("journal-full", "it has no room left."));
  const { announce } = b.journal;
  for (const { journal } of nodes) Object.assign(journal, { announce: full });
  await clock.advance(12_000);
  assert.deepEqual(await shown(), ["a leader", "b follower", "c follower once", "d down once"]);
  assert.equal((await b.cluster()).log.readOnly, "it has no room left.");
  for (const { journal } of nodes) Object.assign(journal, { announce });
  await clock.advance(14_000);
  assert.equal((await b.cluster()).log.readOnly, undefined);
});

test("when the journal goes away, what is known of it is as new as what is known of the nodes", async (context) => {
  const { nodes, clock, settle, leader } = await createCluster(context, ["a", "b", "c"]);
  const [a, ...others] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  const { epoch } = (await a.cluster()).log.head;
  // Nobody asks for a view from here on. A member of the journal goes, and another node takes the lead.
  const warnings = ["a member is gone"];
  for (const { journal } of others) {
    const { describe } = journal;
    Object.assign(journal, { describe: async () => ({ ...(await describe()), warnings }) });
  }
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS + 4000);
  await settle();
  const next = leader();
  const watcher = others.find((node) => node !== next) as TestNode;
  for (const { journal } of nodes) journal.fault({ cut: "both" });
  await clock.advance(8000);
  const { nodes: seen, log } = await watcher.cluster();
  assert.ok(log.ageMs !== undefined && log.ageMs >= 8000 && log.ageMs <= 10_000, String(log.ageMs));
  assert.deepEqual(log.warnings.slice(1), warnings);
  assert.equal(log.head.epoch, epoch + 1);
  assert.deepEqual(
    seen.filter(({ role }) => role === "leader").map(({ id, seq: at }) => [id, at]),
    [[next.id, log.head.seq]],
  );
});

test("a journal that answers nothing at all is waited for a little, by one question", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b"]);
  const [, b] = nodes as [TestNode, TestNode];
  await clock.advance(2000);
  let asked = 0;
  const silent = Promise.withResolvers<never>();
  const { journal } = b;
  const nodesOf = journal.nodes;
  context.after(() => silent.reject(new Error("over")));
  Object.assign(journal, {
    nodes: () => {
      asked++;
      return silent.promise;
    },
  });
  const views = [b.cluster(), b.cluster()];
  await clock.advance(2000);
  for (const { log } of await Promise.all(views)) assert.equal(log.awayMs, 0);
  // The node itself asks as well, when it tells of itself.
  assert.equal(asked, 2);
  Object.assign(journal, { nodes: nodesOf });
});

test("a leader that is gone is down as soon as its lead is; while it leads it has all there is", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b", "c"]);
  const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  for (const id of ["t", "u", "v"]) {
    await a.life().drover.submit(task(id));
    await clock.advance(500);
  }
  const { nodes: seen, log } = await b.cluster();
  const last = log.head.seq;
  assert.deepEqual(
    seen.map(({ id, role, seq: at, lagMs }) => [id, role, at === last, lagMs]),
    // Of the other it has a word that is older; all that was written since need not be missing there.
    [
      ["a", "leader", true, 0],
      ["b", "follower", true, 0],
      ["c", "follower", false, 0],
    ],
  );
  a.journal.fault({ cut: "both" });
  await clock.advance(LEASE_MS + 500);
  const roles = async (node: TestNode): Promise<string[]> => (await node.cluster()).nodes.map(({ role }) => role);
  assert.equal((await roles(b))[0], "down");
  assert.ok(b.life().leads() || c.life().leads());
});

test("a row is as old as the word of its node, and a word that is late is none of now", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b", "c"]);
  const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  const shown = async (): Promise<(string | number | undefined)[][]> =>
    (await b.cluster()).nodes.map(({ id, role, heardMs, ageMs }) => [id, role, heardMs, ageMs]);
  await clock.advance(1500);
  const ofNow = [
    ["a", "leader", 1500, undefined],
    ["b", "follower", 0, undefined],
    ["c", "follower", 1500, undefined],
  ];
  assert.deepEqual(await shown(), ofNow);
  c.journal.fault({ cut: "both" });
  await clock.advance(2500);
  assert.deepEqual((await shown())[2], ["c", "follower", 4000, 4000], "it is not told as of now");
  await clock.advance(4000);
  assert.deepEqual((await shown())[2], ["c", "down", 8000, undefined], "that it is down is of now");
  // One that leads and says nothing: its lead was renewed, and its word is late all the same.
  Object.assign(a.journal, { announce: () => Promise.reject(new LogFailure("unreachable", "lost")) });
  await clock.advance(4000);
  assert.deepEqual((await shown())[0], ["a", "leader", 4000, 4000]);
});

test("a node that is closed is shown as stopped at once, and as what it is when it is back", async (context) => {
  const { nodes, clock, open, leader } = await createCluster(context, ["a", "b", "c"]);
  const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  const roles = async (): Promise<string[]> => (await b.cluster()).nodes.map(({ id, role }) => `${id} ${role}`);
  await c.close();
  assert.deepEqual(await roles(), ["a leader", "b follower", "c stopped"]);
  await a.close();
  assert.equal((await roles())[0], "a stopped");
  await clock.advance(10_000);
  assert.equal(leader().id, "b");
  assert.deepEqual(await roles(), ["a stopped", "b leader", "c stopped"], "it is not down: nobody waits for it");
  assert.deepEqual(b.peers(), [], "and nobody asks it");
  await open("c", c.replica);
  assert.deepEqual(await roles(), ["a stopped", "b leader", "c follower"]);
});

test("a node knows which others are down, and counts no silence that the journal has made", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b", "c", "d"]);
  const [a, b, c, d] = nodes as [TestNode, TestNode, TestNode, TestNode];
  await clock.advance(2000);
  c.journal.fault({ cut: "both" });
  await d.close();
  await clock.advance(6000);
  assert.deepEqual(b.down(), []);
  await clock.advance(4000);
  assert.deepEqual([a.down(), b.down()], [[{ id: "c", silentMs: 10_000 }], [{ id: "c", silentMs: 10_000 }]]);
  assert.deepEqual(c.down(), [], "one that is cut off cannot say");
  for (const { journal } of [a, b]) journal.fault({ cut: "both" });
  await clock.advance(20_000);
  assert.deepEqual(b.down(), []);
  for (const { journal } of [a, b]) journal.fault({ cut: "none" });
  await clock.advance(4000);
  await settle();
  assert.deepEqual(b.down(), [], "the others had no way to say that they are up");
  await clock.advance(8000);
  assert.deepEqual(
    b.down().map(({ id }) => id),
    ["c"],
  );
  c.journal.fault({ cut: "none" });
  await clock.advance(4000);
  assert.deepEqual(b.down(), []);
});

test("a node that tells another hash of an event than this one has is marked", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  await a.life().drover.submit(task("t"));
  await clock.advance(2000);
  await a.life().drover.submit(task("u"));
  const marked = async (): Promise<string[]> =>
    (await a.cluster()).nodes.filter(({ differs }) => differs).map(({ id }) => id);
  assert.deepEqual(await marked(), []);
  const { seq } = b.applied();
  await b.journal.announce({ node: "b", url: "http://x", seq, hash: "0".repeat(64), epoch: 1, stored: seq });
  assert.deepEqual(await marked(), ["b"]);
});

test("a node that catches up is as old as the last moment whose journal it has in full", async (context) => {
  const { nodes, clock, store } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const openedAt = clock.elapsed();
  await clock.advance(1000);
  const journal = createMemoryJournal({ store });
  let reached = store.head.seq;
  const announcing = startAnnouncing({
    log: await openMemorySharedLog({ journal }),
    clock,
    openedAt,
    process: "1",
    self: () => ({ id: "c", url: "http://c.test", key: "" }),
    applied: () => ({ seq: reached, hash: a.applied().hash, epoch: 1 }),
    onSeen: () => {},
    leads: () => false,
    readOnly: createReadOnly(clock, () => {}),
    warnings: createOwnWarnings(() => {}),
  });
  context.after(async () => {
    announcing.stop();
    await journal.close();
  });
  assert.equal(announcing.ageMs(), 1000, "what it has is of when its log was opened");
  await announcing.tell();
  assert.equal(announcing.ageMs(), 0);
  const ends: number[] = [];
  for (const id of ["t", "u", "v", "w"]) {
    await a.life().drover.submit(task(id));
    ends.push(store.head.seq);
    await clock.advance(2000);
  }
  assert.equal(announcing.ageMs(), 8000, "it was told of much and has applied none of it");
  const lagOf = async (view: typeof announcing.view): Promise<number | undefined> =>
    (await view()).nodes.find(({ id }) => id === "c")?.lagMs;
  assert.equal(await lagOf(announcing.view), 8000);
  assert.equal(await lagOf(b.cluster), 8000, "another node knows it from its word");
  reached = seq(ends[1] as number);
  announcing.onApplied();
  assert.equal(announcing.ageMs(), 4000, "of what came in, it knows when the journal had no more");
  assert.equal(await lagOf(announcing.view), 4000);
  reached = store.head.seq;
  announcing.onApplied();
  assert.equal(announcing.ageMs(), 0);
  assert.equal(await lagOf(b.cluster), 8000, "until it tells of itself again");
  await announcing.tell();
  assert.equal(await lagOf(b.cluster), 0);
});

test("the leader drops of the journal what the nodes have, and waits for one that is near", async (context) => {
  const { nodes, clock, store } = await createCluster(context, ["a", "b", "c"]);
  const [a, , c] = nodes as [TestNode, TestNode, TestNode];
  const begins = async (): Promise<number> => (await a.journal.describe()).base.seq;
  await a.life().drover.submit(task("t"));
  await clock.advance(50_000);
  assert.equal(await begins(), 0);
  await clock.advance(14_000);
  assert.equal(await begins(), store.head.seq);
  c.journal.fault({ cut: "both" });
  const { seq: reached } = c.applied();
  await a.life().drover.submit(task("u"));
  await clock.advance(120_000);
  assert.equal(await begins(), reached, "it is near, and was heard of within the hour");
  await clock.advance(3_600_000);
  assert.equal(await begins(), store.head.seq, "one that is silent for longer does not count");
});

test("a node whose clock is another is a warning of those that hear of it, until it agrees again", async (context) => {
  const { nodes, clock, store } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const { seq: at, hash, epoch } = a.applied();
  const odd = createMemoryJournal({ store });
  context.after(() => odd.close());
  const tell = (aheadMs: number): Promise<void> =>
    odd.announce({ node: "c", url: "http://x", seq: at, hash, epoch, stored: at, now: clock.now() + aheadMs });
  const shown = async (): Promise<string[]> => (await b.cluster()).log.warnings.filter((text) => /CLOCKS/.test(text));
  await tell(4000);
  await clock.advance(6000);
  assert.deepEqual(await shown(), [], "a few seconds are none");
  for (let words = 0; words < 3; words++) {
    await tell(3_600_000);
    await clock.advance(2000);
  }
  const said = "THE CLOCKS of the nodes differ: that of c is 3600 s ahead of this one's. Log time follows";
  const [ofA, ofB, ...more] = await shown();
  assert.ok(ofA?.startsWith(`node a: ${said}`) && ofB?.startsWith(`node b: ${said}`), `${ofA} ${ofB}`);
  assert.deepEqual(more, []);
  assert.equal(a.warnings.filter((line) => line.startsWith(`node a: ${said}`)).length, 1, "once in its log");
  await tell(0);
  await clock.advance(4000);
  assert.deepEqual(await shown(), []);
});

test("a journal that is slow to write or to read makes no clock wrong", async (context) => {
  for (const [writeMs, readMs] of [
    [2600, 0],
    [5500, 0],
    [0, 5500],
  ] as const) {
    const { nodes, clock } = await createCluster(context, ["a", "b", "c"]);
    await clock.advance(2000);
    for (const { journal } of nodes) {
      const { announce, nodes: read } = journal;
      const slow: Pick<Journal, "announce" | "nodes"> = {
        announce: (told) => restFor(clock, writeMs).then(() => announce(told)),
        nodes: () => read().then((seen) => restFor(clock, readMs).then(() => seen)),
      };
      Object.assign(journal, slow);
    }
    await clock.advance(60_000);
    const said = nodes.flatMap(({ warnings }) => warnings.filter((line) => /CLOCK/.test(line)));
    assert.deepEqual(said, [], `${writeMs} ms to write, ${readMs} ms to read`);
  }
});

test("two nodes that announce one address say so, once, and again when it comes back", async (context) => {
  const { nodes, clock, urls } = await createCluster(context, ["a", "b", "c"]);
  const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
  const twins = ({ warnings }: TestNode): string[] => warnings.filter((line) => line.includes("same address"));
  await clock.advance(6000);
  assert.deepEqual(nodes.flatMap(twins), []);
  urls.set("b", "http://a.test");
  await clock.advance(10_000);
  const said = "announces the same address, http://a.test. Give each node its own with --advertise.";
  assert.deepEqual([twins(a), twins(b), twins(c)], [[`node a: b ${said}`], [`node b: a ${said}`], []]);
  urls.delete("b");
  await clock.advance(4000);
  urls.set("b", "http://a.test");
  await clock.advance(4000);
  assert.equal(twins(a).length, 2);
});
