/**
 * Nothing is acknowledged before it is durable, and what the disk does is never guessed.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { createLogInHand, type LogInHand } from "../../../test/kits/log-in-hand.ts";
import { fewTurns, isPending, within } from "../../../test/kits/waits.ts";
import { taskId, workerId } from "../../core/base/brand.ts";
import { emptyState } from "../../core/empty-state.ts";
import { checkInvariants } from "../../core/invariants/invariants.ts";
import { LogFailure } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/memory-log.ts";
import type { Clock } from "../../std/clock.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { DroverError } from "../base/drover-error.ts";
import { openDrover } from "../drover.ts";
import { createPlans } from "../plans/plans.ts";
import { readTaskBody } from "../tasks/task-body.ts";
import { startWriter } from "./writer.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

async function withHeldLog(): Promise<TestDrover & { hand: LogInHand }> {
  const hand = createLogInHand();
  const kit = await createTestDrover({ log: hand.log });
  hand.appends.length = 0;
  return { ...kit, hand };
}

test("an answer leaves when the events it rests on are committed, and not before", async () => {
  const { drover, hand } = await withHeldLog();
  hand.hold();
  const submitted = drover.submit(task("t"));
  assert.ok(await isPending(submitted));
  assert.equal(drover.state.tasks.size, 1, "it is applied at once");
  const views = [drover.task("t"), drover.tasks(), drover.why("t"), drover.stats(), drover.projects()];
  for (const view of views) assert.ok(await isPending(view), "what was only read waits too");
  hand.release();
  assert.equal((await submitted).taskId, "t");
  await Promise.all(views);
});

test("C16 a worker hears of an assignment only when it is durable", async () => {
  const { drover, hand, settle } = await withHeldLog();
  const heard: string[] = [];
  await drover.worker({}, ({ taskId }) => void heard.push(taskId));
  hand.hold();
  const submitted = drover.submit(task("t"));
  await fewTurns();
  assert.equal(drover.state.inFlight, 1, "it is assigned in the state that runs ahead");
  assert.deepEqual(heard, []);
  hand.release();
  await submitted;
  await settle();
  assert.deepEqual(heard, ["t"]);
});

test("a refusal waits for the events it rests on", async () => {
  const { drover, hand } = await withHeldLog();
  hand.hold();
  const first = drover.submit(task("t"));
  const refusals = [drover.submit(task("t", { action: "test" })), drover.retry("t"), drover.cancel("t")];
  refusals.push(drover.cancel("t"));
  for (const refusal of refusals) assert.ok(await isPending(refusal));
  hand.release();
  await first;
  const codes = (await Promise.allSettled(refusals)).map((one) => (one.status === "rejected" ? one.reason.code : "ok"));
  assert.deepEqual(codes, ["conflict", "conflict", "ok", "conflict"]);
});

test("one append is in flight, and what gathers meanwhile is the next batch", async () => {
  const { drover, hand, settle } = await withHeldLog();
  hand.hold();
  const answers = [drover.submit(task("t0"))];
  await fewTurns();
  for (let index = 1; index < 500; index++) answers.push(drover.submit(task(`t${index}`)));
  await fewTurns();
  assert.equal(hand.appends.length, 1);
  hand.release();
  await Promise.all(answers);
  await settle();
  assert.equal(hand.appends.length, 2, "500 commands, two batches");
  assert.equal(
    hand.appends.reduce((sum, { events }) => sum + events, 0),
    501,
    "500 tasks and a project",
  );
});

test("a listener to commits that fails stops the engine, and whoever waits for that batch is told", async () => {
  const failing = (): never => {
    throw new Error("a listener failed");
  };
  const { writer } = writerOn({ onCommitted: failing });
  await assert.rejects(within("an answer", writer.run(submit("a"))), {
    code: "log_failed",
    message: /a listener failed/,
  });
  await assert.rejects(async () => writer.execute(submit("b")), { code: "log_failed" });
});

test("D2 an append whose answer was lost is repeated under its own name, and stored once", async () => {
  for (const landed of [true, false]) {
    const { drover, hand } = await withHeldLog();
    hand.next({ type: "lose", landed }, { type: "lose", landed: false });
    await drover.submit(task("t"));
    assert.equal(new Set(hand.appends.map(({ batchId }) => batchId)).size, 1);
    assert.equal(hand.appends.length, 3);
    const kinds: string[] = [];
    for await (const { kind } of drover.events()) kinds.push(kind);
    assert.equal(kinds.filter((kind) => kind === "task-submitted").length, 1);
    assert.ok((await drover.verify()).ok);
    await drover.close();
  }
});

test("a log that never says whether it stored a batch stops the engine", async () => {
  const { drover, hand } = await withHeldLog();
  hand.next(...Array.from({ length: 10 }, () => ({ type: "lose", landed: false }) as const));
  await assert.rejects(drover.submit(task("t")), { code: "log_failed", message: /asked 10 times/ });
  assert.equal((await drover.failed).code, "log_failed");
});

test("C18 D3 a deposed writer is refused, tells its callers to try again, and starts nothing", async () => {
  const { drover, hand, settle } = await withHeldLog();
  const started: string[] = [];
  await drover.worker({ slots: 9 }, ({ taskId }) => void started.push(taskId));
  await drover.submit(task("before"));
  await settle();
  const successor = await createTestDrover({ log: createMemoryLog({ store: hand.store }) });
  const late = [drover.submit(task("late")), drover.stats(), drover.wait("late")];
  for (const answer of late) await assert.rejects(answer, { code: "deposed", retryable: true });
  assert.equal((await drover.failed).code, "deposed");
  await assert.rejects(drover.submit(task("later")), { code: "deposed" });
  assert.deepEqual(started, ["before"]);
  assert.equal((await successor.drover.task("before")).state, "done");
  await assert.rejects(successor.drover.task("late"), { code: "not_found" });
  await Promise.all([drover.close(), successor.drover.close()]);
});

test("C17 C16 when the log fails every open call is refused, and reopening finds what was acknowledged", async () => {
  const { drover, hand } = await withHeldLog();
  await drover.submit(task("kept"));
  hand.hold();
  hand.next({ type: "fail", error: new LogFailure("disk-full", "the disk is full; make room") });
  const open = [drover.submit(task("lost")), drover.task("kept").then(() => drover.cancel("kept"))];
  open.push(drover.worker({}, () => 1) as Promise<never>, drover.wait("kept") as Promise<never>);
  await fewTurns();
  open.push(drover.stats() as Promise<never>, drover.putProject("p", { weight: 2 }) as Promise<never>);
  const outcomes = Promise.allSettled(open);
  hand.release();
  for (const outcome of await outcomes) {
    assert.equal(outcome.status, "rejected");
    assert.ok(outcome.reason instanceof DroverError);
    assert.equal(outcome.reason.code, "log_failed");
    assert.equal(outcome.reason.details.log, "disk-full");
  }
  assert.equal((await drover.failed).code, "log_failed");
  await assert.rejects(drover.submit(task("after")), { code: "log_failed" });
  await drover.close();
  const { drover: reopened } = await createTestDrover({ log: createMemoryLog({ store: hand.store }) });
  assert.deepEqual(
    (await reopened.tasks()).tasks.map(({ taskId }) => taskId),
    ["kept"],
  );
  assert.deepEqual(checkInvariants(reopened.state), []);
  await reopened.close();
});

type Given = { uncommittedMax?: number; batchMax?: number; onCommitted?: () => void };
function writerOn({ onCommitted = () => {}, ...limits }: Given) {
  const hand = createLogInHand();
  const clock = createHandClock({ at: 1000 });
  const hooks = { onApplied: () => {}, isAwaited: () => false, onCommitted, onStopped: () => {} };
  const state = emptyState();
  const writer = startWriter({ state, log: hand.log, epoch: 0, clock, newId: randomUUID, hooks, ...limits });
  return { hand, writer, settle: clock.settle };
}
const submit = (id: string, more: object = {}) =>
  ({ type: "submit-task", submission: readTaskBody(task(id, more) as never).submission }) as const;

test("what is decided as one lies in one batch, and so does all of a plan", async () => {
  const { hand, writer, settle } = writerOn({ batchMax: 3 });
  const plans = createPlans({ writer, bodies: { read: async () => null }, clock: {} });
  await writer.run(submit("t"));
  hand.appends.length = 0;
  hand.hold();
  writer.execute(submit("sent"));
  await settle();
  for (const id of ["a", "b"]) writer.execute(submit(id));
  writer.execute(submit("c", { project: "new" }));
  for (const id of ["d", "e"]) writer.execute(submit(id));
  const put = plans.put("p", { tasks: { f: "true", g: "true", h: "true", i: "true" } });
  hand.release();
  await put;
  assert.deepEqual(
    hand.appends.map(({ events }) => events),
    [1, 4, 7],
    "c is the third, and comes with its project; the plan begins with the third",
  );
});

test("a batch is full once it has as many bytes as fit into what is shared with the log's thread", async () => {
  const { hand, writer, settle } = writerOn({});
  await writer.run(submit("t"));
  hand.appends.length = 0;
  hand.hold();
  writer.execute(submit("sent"));
  await settle();
  const mebibyte = "x".repeat(1024 * 1024);
  for (const id of ["a", "b", "c", "d", "e", "f"]) writer.execute(submit(id), mebibyte);
  hand.release();
  await writer.settled();
  assert.deepEqual(
    hand.appends.map(({ events }) => events),
    [1, 4, 2],
  );
});

test("where several batches wait, who comes after the first of them is answered with the last", async () => {
  const { hand, writer, settle } = writerOn({ batchMax: 1 });
  await writer.run(submit("t"));
  hand.hold();
  const early = ["a", "b"].map((id) => writer.run(submit(id)));
  await settle();
  for (const id of ["c", "d"]) writer.execute(submit(id));
  for (const _ of early) {
    hand.release();
    hand.hold();
    await settle();
  }
  await Promise.all(early);
  const late = writer.run(submit("late"));
  assert.ok(await isPending(late), "c, d and this one are not stored yet");
  hand.release();
  await late;
});

test("each is answered when its own batch is stored, though more wait behind it all the time", async () => {
  const { hand, writer, settle } = writerOn({ batchMax: 1 });
  await writer.run(submit("t"));
  hand.hold();
  const asked: Promise<unknown>[] = [];
  const ask = (id: string): void => void asked.push(writer.run(submit(id)));
  for (const id of ["a", "b", "c"]) ask(id);
  await settle();
  for (let round = 0; round < 5; round++) {
    ask(`more-${round}`);
    hand.release();
    hand.hold();
    await settle();
    assert.deepEqual(
      await Promise.all(asked.map(isPending)),
      [...asked.keys()].map((n) => n > round),
    );
  }
  hand.release();
  await Promise.all(asked);
});

test("while too much waits for the disk, what adds work is refused, and what ends work never is", async () => {
  const { hand, writer, settle } = writerOn({ uncommittedMax: 9 });
  const settings = { slots: 9, capabilities: [], cpu: null, memory: null, zone: null, status: "ready" } as const;
  const join = (worker: string) =>
    ({ type: "join-worker", worker: workerId(worker), kind: "local", settings }) as const;
  await writer.run({ ...join("w"), session: "s" });
  for (const id of ["a", "b"]) await writer.run(submit(id));
  await settle();
  hand.hold();
  for (let id = 0; id < 10; id++) assert.ok(writer.execute(submit(`t${id}`)).ok);
  for (const more of [submit("more"), { ...join("v"), session: "s" }])
    assert.throws(() => writer.execute(more), { code: "overloaded", retryable: true });
  const blank = { tokens: null, error: null, retryAfterMs: null, resultHash: null, resultSize: 0, permanent: false };
  const report = { ...blank, task: taskId("a"), attempt: 1, outcome: "done" as const };
  assert.ok(writer.execute({ type: "start-attempt", task: taskId("b"), attempt: 1 }).ok);
  assert.ok(writer.execute({ type: "finish-attempt", report }).ok);
  assert.ok(writer.execute({ type: "cancel-task", task: taskId("t1"), reason: null }).ok);
  assert.equal(writer.state.tasks.get(taskId("a"))?.phase, "done");
  hand.release();
  await writer.settled();
  assert.ok(writer.execute(submit("more")).ok);
});

test("a rule that breaks in the pump stops the engine and tells everybody, and ends no program", async () => {
  const { drover, settle } = await createTestDrover();
  await drover.worker({}, () => 1);
  const submitted = drover.submit(task("t"));
  const waiting = drover.wait("t");
  const { fleet } = drover.state;
  Object.defineProperty(drover.state, "fleet", {
    get: () => {
      throw new Error("planted");
    },
  });
  // The turn runs in a callback of the event loop: an error that left it would fail this test as uncaught.
  for (const answer of [submitted, waiting])
    await assert.rejects(answer, { code: "broken", message: /a rule of the core broke: planted/ });
  await settle();
  assert.equal((await drover.failed).code, "broken");
  Object.defineProperty(drover.state, "fleet", { value: fleet });
  await assert.rejects(drover.submit(task("u")), { code: "broken" });
  await drover.close();
});

/** A clock whose turns the test runs one by one, once it says so. */
function steppedHost(): { clock: Clock; step(): boolean; takeOver(): void } {
  const clock = createHandClock({ at: 1000 });
  const turns: (() => void)[] = [];
  let byHand = false;
  return {
    clock: { ...clock, defer: (turn) => (byHand ? void turns.push(turn) : clock.defer(turn)) },
    takeOver: () => {
      byHand = true;
    },
    step: () => {
      const turn = turns.shift();
      turn?.();
      return turn !== undefined;
    },
  };
}

test("D10 a burst of starts is cut into slices of at most 256 a turn", async () => {
  const { clock, step, takeOver } = steppedHost();
  const drover = await openDrover({
    clock,
    config: {
      scheduler: { maxInFlight: 1000, maxPerAgentInFlight: 1000 },
      projects: { default: { maxConcurrent: 1000 } },
    },
  });
  await drover.pause();
  await Promise.all(Array.from({ length: 700 }, (_, index) => drover.submit(task(`t${index}`))));
  await drover.worker({ slots: 1000 }, () => new Promise(() => {}));
  takeOver();
  const resumed = drover.resume();
  const slices: number[] = [];
  for (let before = 0; drover.state.inFlight < 700; before = drover.state.inFlight) {
    assert.ok(step(), "the next slice is a turn of its own");
    slices.push(drover.state.inFlight - before);
  }
  assert.ok(slices.length > 2 && Math.max(...slices) <= 256, `${slices}`);
  await resumed;
});

test("a slice of the pump is over when its time is, however few its steps were", async () => {
  const { clock, step, takeOver } = steppedHost();
  let passedMs = 0;
  const stopwatch = (): number => {
    passedMs += 0.2;
    return passedMs;
  };
  const drover = await openDrover({
    clock: { ...clock, stopwatch },
    config: { scheduler: { maxPerAgentInFlight: 20 } },
  });
  await drover.pause();
  await Promise.all(Array.from({ length: 10 }, (_, index) => drover.submit(task(`t${index}`))));
  await drover.worker({ slots: 10 }, () => new Promise(() => {}));
  takeOver();
  const resumed = drover.resume();
  const slices: number[] = [];
  while (drover.state.inFlight < 10) {
    const before = drover.state.inFlight;
    assert.ok(step(), "the next slice is a turn of its own");
    slices.push(drover.state.inFlight - before);
  }
  assert.deepEqual(slices, [4, 4, 2]);
  await resumed;
});

test("old results that fall due one after the other go together, and the first of them when it is due", async () => {
  const hand = createLogInHand();
  const config = { scheduler: { resultTtl: 1000 } };
  const { drover, clock, settle } = await createTestDrover({ log: hand.log, config });
  await drover.worker({}, () => "well");
  for (let index = 0; index < 5; index++) {
    await drover.submit(task(`t${index}`));
    await settle();
    await clock.advance(1);
  }
  await clock.advance(994);
  assert.equal(drover.state.tasks.size, 5);
  hand.appends.length = 0;
  await clock.advance(1);
  assert.equal(drover.state.tasks.size, 4, "one that is due alone goes when it is due");
  await clock.advance(49);
  assert.equal(drover.state.tasks.size, 4);
  await clock.advance(1);
  assert.equal(drover.state.tasks.size, 0, "those that fall due just behind it go in one batch");
  assert.equal(hand.appends.length, 2);
  await drover.close();
});

test("what is due goes along with the next turn, whoever takes it", async () => {
  const hand = createLogInHand();
  const { drover, clock, settle } = await createTestDrover({
    log: hand.log,
    config: { scheduler: { resultTtl: 1000 } },
  });
  const worker = await drover.worker({}, () => "well");
  for (let index = 0; index < 5; index++) {
    await drover.submit(task(`t${index}`));
    await settle();
    await clock.advance(1);
  }
  await worker.close();
  await clock.advance(999);
  hand.appends.length = 0;
  await drover.submit(task("next"));
  assert.deepEqual(
    [...drover.state.tasks.values()].map(({ id }) => id),
    ["next"],
  );
  assert.equal(hand.appends.length, 1, "in the batch of the submit");
  await drover.close();
});

test("the clock may be set back, the log's time never is, and no deadline waits for the clock", async () => {
  const { drover, clock } = await createTestDrover({ at: 5_000_000 });
  const ends: string[] = [];
  await drover.submit(task("a", { deadline: 5_010_000 }));
  await clock.set(1_000_000);
  await drover.submit(task("b", { deadline: 5_010_000 }));
  await assert.rejects(drover.submit(task("c", { deadline: 4_999_999 })), { code: "bad_request" });
  // Log time is an hour and more ahead now, and goes on at half the pace.
  await clock.advance(19_999);
  assert.equal((await drover.task("a")).state, "queued");
  await clock.advance(1);
  for (const id of ["a", "b"]) ends.push((await drover.task(id)).state);
  assert.deepEqual(ends, ["failed", "failed"]);
  let last = 0;
  for await (const { at } of drover.events()) {
    assert.ok(at >= last);
    last = at;
  }
  assert.equal(last, 5_010_000);
});

test("close waits for what was asked before, and is the same when repeated", async () => {
  const { drover, hand } = await withHeldLog();
  hand.hold();
  const submitted = drover.submit(task("t"));
  const closed = drover.close();
  assert.equal(drover.close(), closed);
  assert.ok(await isPending(closed));
  hand.release();
  assert.equal((await submitted).taskId, "t");
  await closed;
  for (const call of [() => drover.submit(task("u")), () => drover.wait("t"), () => drover.task("t")])
    await assert.rejects(call, { code: "closed" });
});
