/**
 * A life that follows shows what the leader has had committed, refuses what would write, and ends for all who wait.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createLogInHand, type LogInHand } from "../../test/kits/log-in-hand.ts";
import { fewTurns, isPending, until } from "../../test/kits/waits.ts";
import type { Seq } from "../core/base/index.ts";
import { seq } from "../core/base/index.ts";
import { emptyState } from "../core/empty-state.ts";
import { evolve } from "../core/evolve.ts";
import type { Event } from "../core/model/index.ts";
import { snapshotLines } from "../core/snapshot/snapshot.ts";
import { decodeEvent } from "../log/format/index.ts";
import type { ReadBatch } from "../log/log.ts";
import { createMemoryLog } from "../log/memory/memory-log.ts";
import { nextTurn } from "../std/clock.ts";
import { createHandClock } from "../std/hand-clock.ts";
import { createTestDrover, type TestDrover } from "../testing/index.ts";
import { DroverError } from "./base/drover-error.ts";
import { apiOf, type Drover } from "./drover-api.ts";
import { dropLife, type Life, startLife } from "./life.ts";
import { startFollower } from "./writer/follower.ts";
import { recover } from "./writer/recovery.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const isNoLeader = (error: unknown): boolean =>
  error instanceof DroverError && error.code === "no_leader" && error.retryable;

type World = TestDrover & { hand: LogInHand; life: Life; follower: Drover; caughtUp(): Promise<void> };

/** A leader, and a life over the same store that follows it. */
async function world(context: TestContext): Promise<World> {
  const hand = createLogInHand();
  const kit = await createTestDrover({ log: hand.log });
  const log = createMemoryLog({ store: hand.store });
  const life = await startLife({
    ...(await recover(log)),
    log,
    role: { type: "follower", follow: (after, signal) => committed(hand, after, signal) },
    clock: kit.clock as never,
    newId: () => "an id",
    onWarning: (message) => assert.fail(message),
  });
  const caughtUp = (): Promise<void> =>
    until("the follower", () => life.writer.committedSeq() === hand.store.head.seq && kit.drover.state.seq > 0);
  context.after(() => dropLife(life, new DroverError("closed", "the test is over")));
  return { ...kit, hand, life, follower: apiOf(life), caughtUp };
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function* committed({ store }: LogInHand, from: Seq, signal: AbortSignal): AsyncGenerator<ReadBatch> {
  const log = createMemoryLog({ store });
  for (let after = from; !signal.aborted; await nextTurn())
    for await (const batch of log.read(after)) {
      yield batch;
      after = seq(batch.firstSeq + batch.records.length - 1);
    }
}

test("a follower answers as the leader does, and its state is the same byte for byte", async (context) => {
  const { drover, follower, caughtUp, settle, clock } = await world(context);
  const answers: unknown[] = [];
  await drover.worker({ slots: 2 }, async ({ taskId }) => {
    if (taskId === "bad") throw new Error("no");
    return { made: taskId };
  });
  const waiting = follower.wait("good").catch((error: unknown) => error);
  const feed = follower.events({ follow: true });
  const heard: string[] = [];
  void (async () => {
    for await (const { kind } of feed) heard.push(kind);
  })();
  for (const id of ["good", "bad"]) await drover.submit(task(id, { maxAttempts: 1 }));
  await drover.submit(task("later", { needs: ["good"], notBefore: clock.now() + 60_000 }));
  await settle();
  await caughtUp();
  assert.ok((await waiting) instanceof DroverError, "nobody waits for a task that is not there yet");
  for (const { task: read, tasks, wait, why, stats, queue, projects, workers, usage, head } of [drover, follower])
    answers.push(
      await Promise.all([
        ...[read("good"), read("bad"), read("later"), wait("good"), tasks(), why("later"), stats(), queue()],
        ...[projects(), workers(), usage(), head()],
      ]),
    );
  assert.deepEqual(answers[1], answers[0]);
  assert.deepEqual([...snapshotLines(follower.state)], [...snapshotLines(drover.state)]);
  await until("each event in the feed", () => heard.length >= drover.state.seq);
  assert.equal(heard.filter((kind) => kind === "task-submitted").length, 3);
  assert.equal(heard.length, drover.state.seq, "each event once");
});

test("C16 what is not committed is applied on no follower", async (context) => {
  const { drover, follower, caughtUp, hand } = await world(context);
  await caughtUp();
  hand.hold();
  const submitted = drover.submit(task("t"));
  await fewTurns();
  assert.equal(drover.state.tasks.size, 1);
  assert.equal(follower.state.tasks.size, 0);
  hand.release();
  await submitted;
  await caughtUp();
  assert.equal(follower.state.tasks.size, 1);
});

test("whatever would write is refused by a follower, and may be tried again", async (context) => {
  const { drover, follower, caughtUp } = await world(context);
  await drover.submit(task("t"));
  await caughtUp();
  const before = follower.state.seq;
  const calls: Record<string, () => Promise<unknown>> = {
    submit: () => follower.submit(task("u")),
    batch: () => follower.submitBatch({ agentId: "ann", tasks: [{ action: "build" }] }),
    cancel: () => follower.cancel("t"),
    pause: () => follower.pause(),
    patchConfig: () => follower.patchConfig({ maxInFlight: 1 }),
    project: () => follower.putProject("p", { weight: 2 }),
    worker: () => follower.worker({}, () => {}),
    join: () => follower.remote.join({ id: "w" }),
    permit: () => follower.permits.ask({ gate: "g" }),
    withPermit: () => follower.withPermit("g", () => {}),
    schedule: () => follower.schedules.put("s", { cron: "0 0 * * *", task: { agentId: "ann", action: "build" } }),
    plan: () => follower.plans.put("p", { tasks: { one: { run: "true" } } }),
    artifacts: () => follower.lookForArtifacts(),
  };
  for (const [name, call] of Object.entries(calls)) await assert.rejects(call(), isNoLeader, name);
  assert.equal(follower.state.seq, before);
});

test("a life that ends rejects who waits and ends the feed; the next goes on from its state", async (context) => {
  const { drover, follower, life, caughtUp, hand, settle } = await world(context);
  await drover.submit(task("t"));
  await caughtUp();
  const waiting = follower.wait("t");
  const feed = all(follower.events({ follow: true }));
  const ended = new DroverError("no_leader", "it takes the lead");
  assert.ok(await isPending(waiting));
  const [outcome] = await Promise.allSettled([waiting, dropLife(life, ended)]);
  assert.equal(outcome.status === "rejected" && outcome.reason, ended);
  assert.ok((await feed).length > 0);
  await drover.submit(task("unseen"));
  await settle();
  assert.equal(follower.state.tasks.size, 1, "an ended life applies nothing more");
  const { state } = life.writer;
  const [, next] = [await drover.close(), await startNext(hand, state as never)];
  assert.equal((await next.task("unseen")).state, "queued");
  assert.equal(await next.submit(task("last")).then(({ state: phase }) => phase), "queued");
  await next.close();
});

test("a life may begin in the middle of a batch, where the one before it ended", async (context) => {
  const { drover, hand, life } = await world(context);
  await drover.submitBatch({ agentId: "ann", tasks: ["a", "b", "c"].map((id) => ({ id, action: "build" })) });
  const state = emptyState();
  const batches = await all(hand.log.read(seq(0)));
  const events = batches
    .flatMap(({ records }) => records)
    .map(({ bytes }, at) => decodeEvent(bytes, seq(at + 1)).event);
  for (const event of events.slice(0, -1)) evolve(state, event);
  assert.ok((batches.at(-1)?.records.length ?? 0) > 1, "its last batch has several events");
  const ended = Promise.withResolvers<void>();
  const hooks = { onApplied: () => {}, onCommitted: () => ended.resolve(), onStopped: () => {} };
  const last = async function* (): AsyncGenerator<ReadBatch> {
    yield* batches.slice(-1);
  };
  startFollower({ state, follow: last, clock: createHandClock({ at: state.at }), hooks });
  await ended.promise;
  await until("the other follower", () => life.writer.committedSeq() === state.seq);
  assert.deepEqual([...snapshotLines(state)], [...snapshotLines(life.writer.state)]);
});

/** A leader over the hot state, once it has caught up. */
async function startNext(hand: LogInHand, state: Life["writer"]["state"] & ReturnType<typeof emptyState>) {
  const log = createMemoryLog({ store: hand.store });
  const clock = createHandClock({ at: state.at });
  const shared = { log, state, snapshotSeq: seq(0), clock, newId: () => `next-${state.seq}`, onWarning: assert.fail };
  const role = {
    type: "follower",
    follow: (after: Seq, signal: AbortSignal) => committed(hand, after, signal),
  } as const;
  const behind = await startLife({ ...shared, role });
  await until("the next", () => behind.writer.committedSeq() === hand.store.head.seq);
  await dropLife(behind, new DroverError("no_leader", "it takes the lead"));
  const { epoch } = await log.acquireLead("next", 1000 as never);
  return apiOf(await startLife({ ...shared, role: { type: "leader", epoch, config: null } }));
}

test("once the lead is not sure any more nothing is started and nothing granted", async () => {
  const log = createMemoryLog();
  const clock = createHandClock({ at: 1_000_000 });
  let isSure = true;
  let ids = 0;
  const granted: Event[] = [];
  const life = await startLife({
    log,
    state: emptyState(),
    snapshotSeq: seq(0),
    clock,
    newId: () => `id-${++ids}`,
    onWarning: assert.fail,
    role: { type: "leader", epoch: 0, config: null, holds: () => isSure },
  });
  const drover = apiOf(life);
  drover.watch((batch) => granted.push(...batch.map(({ event }) => event).filter(({ kind }) => STARTS.has(kind))));
  await drover.worker({}, () => new Promise(() => {}));
  isSure = false;
  await drover.submit(task("t"));
  const call = drover.withPermit("g", () => {}).catch((error: unknown) => error);
  const asked = await drover.permits.ask({ gate: "g" });
  await clock.settle();
  assert.equal(asked.status, "queued");
  assert.deepEqual(granted, []);
  const deposed = new DroverError("deposed", "another node leads; try again");
  await dropLife(life, deposed);
  assert.equal(await call, deposed);
});

const STARTS: ReadonlySet<string> = new Set(["task-assigned", "permit-granted"]);
