/**
 * Seed 004's traps: what implementations of the scheduling spec got wrong, each under its id.
 *
 * The sections of the seed itself are in 004-workers.test.ts. C16–C18 are held here as far as the core goes: deciding
 * applies nothing, the log gives the state, an attempt's number fences; epochs and hashes are the log's.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide, emptyState, evolve, instant, shouldAccept, taskId, why } from "../../src/core/index.ts";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { createWorld, placedBy, reasonOf, submitAll, workerOf } from "../kits/conformance/world.ts";

const load = { queued: 0, inFlight: 0, workers: 2, maxQueue: 10, rejectThreshold: 0.8, throttleAt: 0.5 };

test("C1 ids come from the log: the same commands name the same tasks and workers", () => {
  const ids = (): (string | undefined)[] => {
    const world = createWorld();
    return [world.submit(null).id, world.submit(null).id];
  };
  assert.deepEqual(ids(), ids());
  assert.notEqual(ids()[0], ids()[1]);
});

test("C2 the sequence number is the logical time and never repeats", () => {
  const world = createWorld();
  world.join("w", { slots: 9 });
  submitAll(world, "abc");
  assert.equal(world.state.seq, world.log.length);
  const seqs = [..."abc"].map((id) => world.taskOf(id).seq);
  assert.equal(new Set(seqs).size, 3);
});

test("C3 one unplaceable task blocks nobody, and is said to fit never", () => {
  const world = createWorld();
  world.join("w", { slots: 9 });
  const decision = world.submit("huge", { capabilities: ["quantum"] });
  world.submit("small");
  assert.deepEqual(["huge", "small"].map(world.phaseOf), ["queued", "assigned"]);
  assert.equal(decision.warnings?.[0]?.type, "never-fits");
  const answer = why(world.state, taskId("huge"), instant(0));
  const gate = answer.ok ? answer.value.conditions.find(({ code }) => code === "never-fits") : undefined;
  assert.ok(gate?.ok === false && gate.detail.includes("no worker offers quantum"), gate?.detail);
});

test("C3 without any worker a task is accepted, with a warning", () => {
  assert.equal(createWorld().submit("t").warnings?.[0]?.type, "no-workers");
});

test("C4 deciding reserves: a burst is spread over workers, not heaped on one", () => {
  const world = createWorld();
  submitAll(world, "abcdef");
  const starts = world.atOnce(() => {
    for (const id of ["w1", "w2", "w3"]) world.join(id, { slots: 9 });
  });
  assert.deepEqual(
    starts.map((start) => start.worker),
    ["w1", "w2", "w3", "w1", "w2", "w3"],
  );
});

test("C5 round-robin is a cursor over stable ids: it turns whether or not anything completes", () => {
  const world = createWorld(placedBy("round-robin"));
  for (const id of ["w1", "w2", "w3"]) world.join(id, { slots: 9 });
  submitAll(world, "abcd");
  world.finish("b");
  world.leave("w2");
  world.submit("e");
  const turns = world.starts();
  assert.deepEqual(
    turns.map((start) => start.worker),
    ["w1", "w2", "w3", "w1", "w3"],
  );
});

test("C6 random hashes task and attempt, not the number of workers alone: it spreads, and repeats itself", () => {
  const run = (): unknown[] => {
    const world = createWorld(placedBy("random"));
    for (const id of ["w1", "w2", "w3"]) world.join(id, { slots: 40 });
    for (let index = 0; index < 30; index++) world.submit(`t${index}`);
    return world.starts().map((start) => start.worker);
  };
  assert.deepEqual(run(), run());
  assert.equal(new Set(run()).size, 3);
});

test("C7 a preferred worker that is busy is waited for at most affinityWait, then any worker will do", () => {
  const world = createWorld(placedBy("affinity", { affinityWait: "30s" }));
  world.join("w1");
  world.submit("parent");
  world.finish("parent");
  world.submit("blocker");
  world.join("w2");
  world.submit("child", { parent: "parent" });
  assert.equal(world.phaseOf("child"), "queued");
  const answer = why(world.state, taskId("child"), instant(0));
  assert.ok(answer.ok && answer.value.earliestStart === 30_000);
  world.wait(29_999);
  assert.equal(world.phaseOf("child"), "queued");
  world.wait(1);
  assert.equal(workerOf(world, "child"), "w2");
});

test("C7 a busy worker of the task's zone is waited for like the others", () => {
  const world = createWorld(placedBy("affinity", { affinityWait: "30s" }));
  world.join("near", { zone: "eu" });
  world.submit("blocker");
  world.join("far", { zone: "us" });
  world.submit("t", { zone: "eu" });
  world.submit("u", { zone: "eu" });
  assert.deepEqual([world.phaseOf("t"), world.phaseOf("u")], ["queued", "queued"]);
  const answer = why(world.state, taskId("t"), instant(0));
  assert.ok(answer.ok && answer.value.earliestStart === 30_000);
  assert.match(answer.value.summary, /waits for a worker in its zone eu/);
  assert.deepEqual(checkInvariants(restore(snapshotLines(world.state))), []);
  world.wait(10_000);
  world.finish("blocker");
  assert.equal(workerOf(world, "t"), "near");
  assert.deepEqual(reasonOf(world, "t"), { type: "affinity", reason: "same-zone" });
  world.wait(20_000);
  assert.equal(workerOf(world, "u"), "far", "its wait is over");
});

test("C7 a zone is waited for while somebody is there, whoever it is", () => {
  const world = createWorld(placedBy("affinity", { affinityWait: "30s" }));
  for (const id of ["near", "second"]) world.join(id, { zone: "eu" });
  for (const id of ["a", "b"]) world.submit(id, { zone: "eu" });
  world.join("far", { zone: "us" });
  world.submit("t", { zone: "eu" });
  world.change("near", { zone: "eu", status: "draining" });
  assert.equal(world.phaseOf("t"), "queued");
  world.change("second", { zone: "us" });
  assert.equal(workerOf(world, "t"), "far", "nobody of its zone is left to wait for");
  world.submit("v", { zone: "mars" });
  world.finish("t");
  assert.equal(workerOf(world, "v"), "far", "a zone of nobody is not waited for");
});

test("C7 no affinity at all places as least-loaded does", () => {
  const world = createWorld(placedBy("affinity"));
  world.join("w1", { slots: 2 });
  world.join("w2", { slots: 2 });
  world.submit("t");
  assert.deepEqual(reasonOf(world, "t"), { type: "least-loaded", queueDepth: 0 });
});

test("C8 parallel edges and a repeated completion enqueue once", () => {
  const world = createWorld();
  world.join("w", { slots: 9 });
  world.submit("a");
  world.submit("b", { parent: "a", needs: ["a", "a"] });
  world.finish("a");
  const again = world.tryFinish("a");
  assert.equal(again.ok ? "" : again.failure.type, "attempt-stale");
  assert.equal(world.told("task-queued").filter((event) => event.task === "b").length, 1);
});

test("C9 a node that failed for good skips what depends on it; before that it is tried again", () => {
  const world = createWorld();
  world.join("w");
  world.submit("a", { maxAttempts: 2 });
  world.submit("b", { needs: ["a"] });
  world.finish("a", { outcome: "failed" });
  assert.deepEqual(["a", "b"].map(world.phaseOf), ["queued", "waiting"]);
  world.wait(5000);
  world.finish("a", { outcome: "failed" });
  assert.deepEqual(["a", "b"].map(world.phaseOf), ["failed", "skipped"]);
});

test("C10 an unknown dependency and a cycle are refused", () => {
  const world = createWorld();
  const unknown = world.trySubmit("t", { needs: ["ghost"] });
  assert.deepEqual(unknown.ok ? null : unknown.failure, {
    ...{ type: "dependency-unknown", field: "needs", dependency: "ghost" },
  });
});

test("C12 capacity is who can take work: unreachable, draining and overloaded workers do not count", () => {
  const world = createWorld({ scheduler: { backpressure: { perWorker: 1, rejectThreshold: 1 } } });
  world.join("w1");
  world.join("w2", { status: "draining" });
  world.join("w3");
  world.leave("w3", true);
  assert.equal(world.trySubmit("a").ok, true);
  const refused = world.trySubmit("b");
  assert.equal(refused.ok ? "" : refused.failure.type, "backpressure");
});

test("C12 with no worker work is accepted unless acceptWithoutWorkers is false", () => {
  assert.equal(createWorld().trySubmit("t").ok, true);
  const strict = createWorld({ scheduler: { backpressure: { acceptWithoutWorkers: false } } });
  const refused = strict.trySubmit("t");
  assert.equal(refused.ok ? "" : refused.failure.type, "no-workers");
  assert.deepEqual(
    [shouldAccept({ ...load, workers: 0 }), shouldAccept({ ...load, workers: 0, acceptWithoutWorkers: false })],
    [true, false],
  );
});

test("C13 one limit for one queue: maxQueue, whatever the workers hold", () => {
  const world = createWorld({ scheduler: { maxQueue: 3 } });
  submitAll(world, "abc");
  const full = world.trySubmit("d");
  assert.equal(full.ok ? "" : full.failure.type, "queue-full");
});

test("C15 an unreachable worker loses its tasks: queued again under a new number, its late answer refused", () => {
  const world = createWorld();
  world.join("w1");
  world.submit("t");
  world.leave("w1", true);
  world.join("w2");
  assert.deepEqual([workerOf(world, "t"), world.taskOf("t").attempts], ["w2", 2]);
  const late = world.tryFinish("t", { attempt: 1 });
  assert.deepEqual(late.ok ? null : late.failure, { type: "attempt-stale", task: "t", attempt: 1, current: 2 });
});

test("C16 deciding applies nothing: only evolve does, so an append that fails loses nothing", () => {
  const world = createWorld();
  world.submit("t");
  world.join("w", { status: "draining" });
  const decided = decide(world.state, { type: "cancel-task", task: taskId("t"), reason: null }, instant(0));
  assert.ok(decided.ok && decided.value.events.length === 1);
  assert.equal(world.phaseOf("t"), "queued");
});

test("C17 state comes from the log: replaying it gives the same next decisions", () => {
  const world = createWorld();
  world.join("w1", { slots: 2 });
  submitAll(world, "abcde");
  world.finish("a");
  const next = emptyState();
  for (const event of world.log) evolve(next, event);
  const report = { task: taskId("b"), attempt: 1, outcome: "done", error: null, tokens: null } as const;
  const rest = { retryAfterMs: null, resultHash: null, resultSize: 0, permanent: false };
  for (const state of [world.state, next]) {
    const done = decide(state, { type: "finish-attempt", report: { ...report, ...rest } }, instant(9));
    if (done.ok) for (const event of done.value.events) evolve(state, event);
  }
  const pump = { type: "pump" } as const;
  assert.deepEqual(decide(next, pump, instant(9)), decide(world.state, pump, instant(9)));
});

test("C18 an attempt's number is its fencing token: only the newest one's word counts", () => {
  const world = createWorld();
  world.join("w1");
  world.join("w2");
  world.submit("t");
  world.leave("w1", true);
  for (const command of [
    { type: "start-attempt", task: taskId("t"), attempt: 1 },
    { type: "report-usage", task: taskId("t"), attempt: 1, tokens: 5 },
  ] as const) {
    const stale = world.tryTo(command);
    assert.equal(stale.ok ? "" : stale.failure.type, "attempt-stale");
  }
});

test("C19 a worker that says what it said before leaves nothing in the log", () => {
  const world = createWorld();
  world.join("w", { slots: 2 });
  const before = world.log.length;
  assert.equal(world.change("w", { slots: 2 }).repeated, true);
  assert.equal(world.log.length, before);
});
