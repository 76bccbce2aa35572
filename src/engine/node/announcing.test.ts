/**
 * What nodes know of each other: who leads, who is down, how far each is, and whether they have one history.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, LEASE_MS, type TestNode } from "../../../test/kits/cluster.ts";
import { seq } from "../../core/base/index.ts";
import { restore } from "../../core/snapshot/restore.ts";
import { snapshotLines } from "../../core/snapshot/snapshot.ts";
import { createMemoryJournal } from "../../log/journal/memory-journal.ts";
import { openMemorySharedLog } from "../../log/journal/memory-shared-log.ts";
import { startAnnouncing } from "./announcing.ts";
import { createReadOnly } from "./read-only.ts";

const task = (id: string) => ({ id, agentId: "ann", action: "build" });

test("every node with its address and its key is a fact of the log, and so is who leads", async (context) => {
  const { nodes, clock, leader } = await createCluster(context, ["a", "b", "c"]);
  const [a, , c] = nodes as [TestNode, TestNode, TestNode];
  await clock.advance(2000);
  const key = (id: string): string => Buffer.from(id).toString("base64");
  for (const node of nodes) {
    const { state } = node.life().drover;
    assert.deepEqual(
      [...state.cluster.nodes].sort(),
      ["a", "b", "c"].map((id) => [id, { url: `http://${id}.test`, key: key(id) }]),
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
  await b.journal.announce({ node: "b", url: "x", seq, hash: "0".repeat(64), epoch: 1, stored: seq });
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
    start: "1",
    self: () => ({ id: "c", url: "http://c.test", key: "" }),
    applied: () => ({ seq: reached, hash: a.applied().hash, epoch: 1 }),
    onSeen: () => {},
    leads: () => false,
    readOnly: createReadOnly(clock, () => {}),
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
