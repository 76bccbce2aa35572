/**
 * The feed: every committed event once, in order, each linked to the one before.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../test/kits/log-in-hand.ts";
import { fewTurns } from "../../test/kits/waits.ts";
import type { Log } from "../log/log.ts";
import { createMemoryLog } from "../log/memory/memory-log.ts";
import { createTestDrover } from "../testing/index.ts";
import type { Drover } from "./drover.ts";
import type { FeedEvent, FeedOptions } from "./feed.ts";

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

/** A log that notes what is read of it. */
function spiedOn(log: Log): { readonly log: Log; readonly asked: string[] } {
  const asked: string[] = [];
  const read: Log["read"] = (after, options) => {
    asked.push(`read ${after} ${options?.payloads} ${options?.bytesMax}`);
    return log.read(after, options);
  };
  return { log: { ...log, read }, asked };
}

test("a follower reads without payloads, and goes on behind what is there without a gap", async () => {
  const { log, asked } = spiedOn(createMemoryLog());
  const { drover } = await createTestDrover({ log });
  await drover.submit({ id: "a", agentId: "ann", action: "x" });
  const { seq: past } = drover.state;
  asked.length = 0;
  const stop = new AbortController();
  const seen: number[] = [];
  for await (const { seq } of drover.events({ after: 1, follow: true, signal: stop.signal })) {
    seen.push(seq);
    if (seq === past) void drover.submit({ id: "b", agentId: "ann", action: "x" });
    if (seq === past + 1) stop.abort();
  }
  assert.deepEqual(asked, ["read 1 false 8192", `read ${past} false 8192`]);
  assert.deepEqual(
    seen,
    Array.from({ length: past }, (_, index) => index + 2),
  );
  await drover.close();
  for await (const event of drover.events({ follow: true })) assert.fail(`${event.seq} after the end`);
});

/** As many events as it takes to fill several pages. */
async function longLog() {
  const { log, asked } = spiedOn(createMemoryLog());
  const { drover } = await createTestDrover({ log });
  for (let round = 0; round < 40; round++)
    await Promise.all(Array.from({ length: 100 }, (_, index) => drover.submit(task(`t${round}-${index}`))));
  asked.length = 0;
  return { drover, asked };
}

test("readers of the same events read each page once, and one that wants an event reads a small one", async () => {
  const { drover, asked } = await longLog();
  await Promise.all(Array.from({ length: 20 }, () => eventsOf(drover)));
  assert.ok(asked.length > 4 && asked.length === new Set(asked).size, asked.join("; "));
  asked.length = 0;
  for await (const _ of drover.events({ after: 2000 })) break;
  assert.deepEqual(asked, [], "what was read last is at hand");
  const { drover: other, asked: again } = await longLog();
  for await (const _ of other.events({ after: 2000 })) break;
  assert.deepEqual(again, ["read 2000 false 8192"]);
});

test("between two slices of events the event loop turns, however many read", async () => {
  const { drover } = await longLog();
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  count();
  const [events] = await Promise.all(Array.from({ length: 10 }, () => eventsOf(drover)));
  isOver = true;
  const slices = 10 * Math.ceil((events ?? []).length / 128);
  assert.ok(turns >= slices - 10, `${turns} turns for ${slices} slices`);
});

test("one page is read at a time", async () => {
  const inner = createMemoryLog();
  let [open, most] = [0, 0];
  const read: Log["read"] = async function* (...asked) {
    most = Math.max(most, ++open);
    yield* inner.read(...asked);
    await fewTurns();
    open--;
  };
  const { drover } = await createTestDrover({ log: { ...inner, read } });
  for (let index = 0; index < 50; index++) await drover.submit(task(`t${index}`));
  most = 0;
  await Promise.all([0, 10, 20, 30, 40].map((after) => eventsOf(drover, after)));
  assert.equal(most, 1);
});

test("the feed can be read since an instant, of a task, and by kind; an unknown kind is refused", async () => {
  const { drover, clock, settle } = await createTestDrover({ at: 1_000_000 });
  await drover.worker({}, () => 1);
  for (const id of "abcd") {
    await drover.submit(task(id));
    await settle();
    await clock.advance(1000);
  }
  const all = await eventsOf(drover);
  const read = async (options: FeedOptions): Promise<FeedEvent[]> => {
    const found: FeedEvent[] = [];
    for await (const event of drover.events(options)) found.push(event);
    return found;
  };
  for (const since of [0, 999_999, 1_000_000, 1_000_001, 1_002_000, 1_002_500, 1_003_000, 9_000_000]) {
    const expected = all.filter(({ at }) => at >= since);
    assert.deepEqual(await read({ since }), expected, String(since));
    const behind = expected.filter(({ seq }) => seq > 5);
    assert.deepEqual(await read({ since: new Date(since).toISOString(), after: 5 }), behind);
  }
  assert.deepEqual(
    await read({ task: "c" }),
    all.filter((event) => event.task === "c"),
  );
  const ends = await read({ kind: ["task-done", "task-failed"], since: 1_001_000 });
  assert.deepEqual(
    ends.map((event) => event.task),
    ["b", "c", "d"],
  );
  assert.equal((await read({ kind: "task-submitted", task: "d" })).length, 1);
  assert.throws(() => drover.events({ kind: "task-dne" as never }), {
    code: "bad_request",
    message: /did you mean task-done\?/,
  });
});
