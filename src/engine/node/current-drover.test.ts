/**
 * A node as one Drover: what was taken from it holds in every life.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, LEASE_MS, type TestNode } from "../../../test/kits/cluster.ts";
import { isPending } from "../../../test/kits/waits.ts";
import { expireLead } from "../../log/journal/memory-journal.ts";
import { DroverError } from "../base/drover-error.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

test("calls and state that were taken once are those of the life that is there", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const { submit, state, remote, schedules } = b.drover;
  await assert.rejects(submit(task("t")), { code: "no_leader" });
  await a.drover.submit(task("t"));
  await settle();
  assert.equal(state.tasks.size, 1);
  await a.close();
  await clock.advance(LEASE_MS);
  assert.equal((await submit(task("u"))).taskId, "u");
  assert.equal(state.tasks.size, 2);
  assert.equal((await remote.join({ id: "w" })).workerId, "w");
  assert.deepEqual((await schedules.list()).schedules, []);
  assert.equal(state.cluster.leader, "b");
});

test("a state that was thrown away is not shown any more", async (context) => {
  const { nodes, store, settle } = await createCluster(context, ["a", "b"]);
  const [a] = nodes as [TestNode, TestNode];
  const { state } = a.drover;
  expireLead(store);
  await settle();
  await assert.rejects(a.drover.submit(task("late")), { retryable: true });
  await settle();
  assert.equal(state.tasks.size, 0);
  assert.equal(state.cluster.leader, "b");
});

test("who listens to commits hears each once, in every life", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  const heard: string[] = [];
  const stop = b.drover.watch((batch) => {
    for (const { event } of batch) if (event.kind === "task-submitted") heard.push(event.task);
  });
  await a.drover.submit(task("t1"));
  await settle();
  await a.close();
  await clock.advance(LEASE_MS);
  await b.drover.submit(task("t2"));
  assert.deepEqual(heard, ["t1", "t2"]);
  stop();
  await b.drover.submit(task("t3"));
  assert.deepEqual(heard, ["t1", "t2"]);
});

test("callbacks are due where the node leads, and what was due before it led is due then", async (context) => {
  const { nodes, clock, settle } = await createCluster(context, ["a", "b"]);
  const [a, b] = nodes as [TestNode, TestNode];
  let rings = 0;
  b.drover.callbacks.onDue(() => rings++);
  const due = ({ drover }: TestNode): string[] => [...drover.callbacks.pending()].map(({ taskId }) => taskId);
  await a.drover.submit(task("t", { callbackUrl: "https://example.com/hook" }));
  await a.drover.cancel("t");
  await settle();
  assert.deepEqual([due(a), due(b)], [["t"], []]);
  const before = rings;
  a.journal.fault({ cut: "both" });
  await clock.advance(2 * LEASE_MS);
  assert.deepEqual([due(a), due(b)], [[], ["t"]]);
  assert.ok(rings > before);
});

test("what waits ends with its life, and says that it may be tried again", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b"]);
  const [a] = nodes as [TestNode, TestNode];
  await a.drover.submit(task("t", { capabilities: ["gpu"] }));
  const { session } = await a.drover.remote.join({ id: "w" });
  const waits = [a.drover.wait("t"), a.drover.remote.sync("w", { session, n: 1, waitMs: 60_000 })];
  const feed = (async () => {
    const kinds: string[] = [];
    for await (const { kind } of a.drover.events({ follow: true })) kinds.push(kind);
    return kinds;
  })();
  const outcomes = Promise.allSettled(waits);
  assert.ok(await isPending(outcomes));
  const handed = a.handOver();
  await clock.advance(1000);
  await handed;
  for (const outcome of await outcomes)
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof DroverError && outcome.reason.retryable);
  assert.ok((await feed).includes("task-submitted"), "the feed has ended, in silence");
});
