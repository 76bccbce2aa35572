/**
 * The feed: every committed event once, in order, each linked to the one before.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand, fewTurns } from "../../test/log-in-hand.ts";
import type { Log } from "../log/log.ts";
import { createMemoryLog } from "../log/memory-log.ts";
import { createTestDrover } from "../testing/index.ts";
import type { Drover } from "./drover.ts";
import { type FeedEvent, readFeed, readFeedOptions } from "./feed.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

async function eventsOf(drover: Drover, after = 0): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for await (const event of drover.events({ after })) events.push(event);
  return events;
}

test("the feed can be read from any event on, and its links hold", async () => {
  const { drover, settle } = await createTestDrover();
  await drover.worker({}, () => ({ ok: true }));
  for (const id of "abcdef") await drover.submit(task(id));
  await settle();
  const all = await eventsOf(drover);
  assert.equal(all.length, drover.state.seq);
  assert.equal(all[0]?.priorHash, "0".repeat(64));
  for (const [index, event] of all.entries()) {
    assert.equal(event.seq, index + 1);
    if (index > 0) assert.equal(event.priorHash, all[index - 1]?.postHash);
  }
  for (let after = 0; after <= all.length + 1; after++)
    assert.deepEqual(await eventsOf(drover, after), all.slice(after));
  const { head } = await drover.verify();
  assert.deepEqual([head.seq, head.hash], [all.length, all.at(-1)?.postHash]);
});

test("an event names its task, its attempt, its cause and the hash of its payload", async () => {
  const { drover, settle } = await createTestDrover();
  await drover.worker({}, () => 1);
  await Promise.all([drover.submit(task("a")), drover.submit(task("b", { needs: ["a"] }))]);
  await settle();
  const all = await eventsOf(drover);
  const find = (kind: string, id: string): FeedEvent => all.find((e) => e.kind === kind && e.task === id) as FeedEvent;
  assert.match(find("task-submitted", "a").payloadHash ?? "", /^[0-9a-f]{64}$/);
  assert.match(find("task-done", "a").payloadHash ?? "", /^[0-9a-f]{64}$/);
  assert.equal(find("task-assigned", "a").attempt, 1);
  assert.equal(find("task-queued", "b").cause, find("task-done", "a").seq);
  assert.equal(find("task-assigned", "a").cause, find("task-submitted", "a").seq);
});

test("a follower hears of what is committed, never of what is only applied, until it is told to stop", async () => {
  const hand = createLogInHand();
  const { drover } = await createTestDrover({ log: hand.log });
  const controller = new AbortController();
  const heard: number[] = [];
  const after = drover.state.seq;
  const following = (async () => {
    for await (const { seq } of drover.events({ after, follow: true, signal: controller.signal })) heard.push(seq);
  })();
  hand.hold();
  const submitted = drover.submit(task("a"));
  await fewTurns();
  assert.deepEqual(heard, []);
  hand.release();
  await submitted;
  await fewTurns();
  assert.deepEqual(heard, [after + 1, after + 2]);
  controller.abort();
  await following;
  await drover.submit(task("b"));
  await fewTurns();
  assert.equal(heard.length, 2);
});

test("closing ends every follower", async () => {
  const { drover } = await createTestDrover();
  const following = (async () => {
    for await (const _ of drover.events({ follow: true }));
  })();
  await fewTurns();
  await drover.close();
  await following;
});

test("a follower reads the past without payloads, and goes on behind it without a gap", async () => {
  const log = createMemoryLog();
  const asked: string[] = [];
  const spied: Log = {
    ...log,
    read: (after, options) => {
      asked.push(`read ${after} ${options?.beside}`);
      return log.read(after, options);
    },
    follow: (after, signal) => {
      asked.push(`follow ${after}`);
      return log.follow(after, signal);
    },
  };
  const { drover } = await createTestDrover({ log });
  await drover.submit({ id: "a", agentId: "ann", action: "x" });
  const { seq: past } = drover.state;
  const stop = new AbortController();
  const seen: number[] = [];
  for await (const { seq } of readFeed(spied, readFeedOptions({ after: 1, follow: true, signal: stop.signal }))) {
    seen.push(seq);
    if (seq === past) void drover.submit({ id: "b", agentId: "ann", action: "x" });
    if (seq === past + 1) stop.abort();
  }
  assert.deepEqual(asked, ["read 1 false", `follow ${past}`]);
  assert.deepEqual(
    seen,
    Array.from({ length: past }, (_, index) => index + 2),
  );
  await drover.close();
  for await (const event of readFeed(log, readFeedOptions({ follow: true }))) assert.fail(`${event.seq} after the end`);
});
