/**
 * Seed 002, "Scheduler Architecture" (PinchTab): the queue and state rules that live in the core.
 *
 * Admission limits, fairness among agents, priority within an agent, states, cancelling, deadlines, retention,
 * counters, batches, reload. The HTTP half of the seed is held where the server is.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { agentId, batchOrder, DEFAULT_CONFIG, instant, readConfig, taskId, why } from "../../src/core/index.ts";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { createWorld, type World } from "../kits/conformance/world.ts";

const startsOf = (world: World, slots: number): string[] =>
  world.atOnce(() => world.join("w", { slots })).map((start) => start.task);

test("Admission And Limits: the global queue size", () => {
  const world = createWorld({ scheduler: { maxQueue: 2 } });
  world.submit("a");
  world.submit("b", { needs: ["a"] });
  const full = world.trySubmit("c", { agent: "other" });
  assert.deepEqual(full.ok ? null : full.failure, {
    ...{ type: "queue-full", limit: "maxQueue", agent: "other", queued: 2, maxQueue: 2, maxPerAgent: 10_000 },
  });
});

test("Admission And Limits: the queue size per agent", () => {
  const world = createWorld({ scheduler: { maxPerAgent: 1 } });
  world.submit("a");
  const full = world.trySubmit("b");
  assert.equal(full.ok ? "" : full.failure.type === "queue-full" && full.failure.limit, "maxPerAgent");
  assert.equal(world.trySubmit("c", { agent: "other" }).ok, true);
});

test("Admission And Limits: max global in-flight count", () => {
  const world = createWorld({ scheduler: { maxInFlight: 2 } });
  for (const id of "abc") world.submit(id);
  assert.deepEqual(startsOf(world, 9), ["a", "b"]);
});

test("Admission And Limits: max per-agent in-flight count, and others pass", () => {
  const world = createWorld({ scheduler: { maxPerAgentInFlight: 1 } });
  for (const id of "ab") world.submit(id, { agent: "x" });
  world.submit("c", { agent: "y" });
  assert.deepEqual(startsOf(world, 9), ["a", "c"]);
});

test("Admission And Limits: naming another project lifts no limit of an agent", () => {
  const world = createWorld({ scheduler: { maxPerAgentInFlight: 1, maxPerAgent: 3 } });
  for (const id of "abc") world.submit(id, { agent: "x", project: `of ${id}` });
  const full = world.trySubmit("d", { agent: "x", project: "of d" });
  assert.equal(full.ok || (full.failure.type === "queue-full" && full.failure.queued), 3);
  assert.equal(world.trySubmit("e", { agent: "y", project: "of e" }).ok, true);
  world.join("w", { slots: 9 });
  assert.deepEqual(
    world.starts().map(({ task }) => task),
    ["a", "e"],
  );
});

test("P5 an agent at its limit that ends a task in one project goes on in another, also after a restart", () => {
  const world = createWorld({ scheduler: { maxPerAgentInFlight: 2 } });
  world.join("w", { slots: 9 });
  for (const id of "abcd") world.submit(id, { agent: "x", project: `of ${id}` });
  const restored = restore(snapshotLines(world.state));
  assert.deepEqual(checkInvariants(restored), []);
  assert.equal(restored.loads.get(agentId("x"))?.isFull, true);
  assert.deepEqual(
    [...restored.projects.values()].map(({ turn }) => turn.size),
    [0, 0, 0, 0],
  );
  world.finish("a");
  assert.deepEqual([world.phaseOf("c"), world.phaseOf("d")], ["assigned", "queued"]);
  world.configure({ scheduler: { maxPerAgentInFlight: 3 } });
  assert.equal(world.phaseOf("d"), "assigned");
});

test("TaskQueue: within an agent the lower priority value wins, equal ones are first in, first out", () => {
  const world = createWorld();
  for (const [id, priority] of [
    ["a", 5],
    ["b", 1],
    ["c", 5],
    ["d", -1],
  ] as const) {
    world.submit(id, { priority });
    world.wait(1);
  }
  assert.deepEqual(startsOf(world, 9), ["d", "b", "a", "c"]);
});

test("TaskQueue: across agents the one with the fewest in flight is chosen first", () => {
  const world = createWorld();
  for (const id of "abcd") world.submit(id, { agent: "busy" });
  for (const id of "xy") world.submit(id, { agent: "calm" });
  assert.deepEqual(startsOf(world, 6), ["a", "x", "b", "y", "c", "d"]);
});

test("Dispatch Lifecycle: queued → assigned → running → done", () => {
  const world = createWorld();
  world.submit("t");
  assert.equal(world.phaseOf("t"), "queued");
  world.join("w");
  assert.equal(world.phaseOf("t"), "assigned");
  world.start("t");
  assert.equal(world.phaseOf("t"), "running");
  world.finish("t");
  assert.equal(world.phaseOf("t"), "done");
});

test("Dispatch Lifecycle: running → failed when no attempt is left; a tab's task has one", () => {
  const world = createWorld();
  world.join("w", { capabilities: ["tab:1"] });
  world.submit("t", { tab: "1", capabilities: ["tab:1"] });
  world.finish("t", { outcome: "failed", error: "the click missed" });
  assert.deepEqual([world.phaseOf("t"), world.taskOf("t").end?.error], ["failed", "the click missed"]);
});

test("Error Model: tab-to-instance resolution failure", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { tab: "9", capabilities: ["tab:9"] });
  world.wait(59_999);
  assert.equal(world.phaseOf("t"), "queued");
  const answer = why(world.state, taskId("t"), instant(world.now()));
  assert.equal(answer.ok && answer.value.conditions.find((gate) => gate.code === "tab")?.numbers.failsAt, 60_000);
  world.wait(1);
  assert.deepEqual([world.phaseOf("t"), world.taskOf("t").end?.error], ["failed", "no worker owns tab 9"]);
});

test("Cancellation Model: a queued task is cancelled at once, a running one too and its worker is told", () => {
  const world = createWorld();
  world.join("w");
  world.submit("run");
  world.submit("wait");
  world.cancel("wait");
  world.cancel("run");
  assert.deepEqual(["run", "wait"].map(world.phaseOf), ["cancelled", "cancelled"]);
  assert.equal(world.taskOf("run").attempt?.state, "stopping");
  const again = world.tryTo({ type: "cancel-task", task: taskId("run"), reason: null });
  assert.equal(again.ok ? "" : again.failure.type, "task-ended");
});

test("Deadline Handling: queued task expiry says `deadline exceeded while queued`", () => {
  const world = createWorld();
  world.submit("t", { deadline: instant(1000) });
  world.wait(999);
  assert.equal(world.phaseOf("t"), "queued");
  world.wait(1);
  assert.deepEqual([world.phaseOf("t"), world.taskOf("t").end?.error], ["failed", "deadline exceeded while queued"]);
  assert.deepEqual([world.state.totals.expired, world.state.totals.failed], [1, 1]);
});

test("Deadline Handling: a running task past its deadline is stopped and failed", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { deadline: instant(1000) });
  world.wait(1000);
  assert.deepEqual([world.phaseOf("t"), world.taskOf("t").end?.error], ["failed", "deadline exceeded"]);
  assert.deepEqual([world.state.totals.expired, world.taskOf("t").attempt?.state], [0, "stopping"]);
});

test("Result Retention: terminal snapshots are evicted after the TTL", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  world.finish("t");
  world.wait(299_999);
  assert.equal(world.state.tasks.has(taskId("t")), true);
  world.wait(1);
  assert.deepEqual([world.state.tasks.has(taskId("t")), world.phaseOf("t")], [false, "done"]);
});

test("Metrics: submitted, completed, failed, cancelled, expired, dispatches and their latency, also per agent", () => {
  const world = createWorld();
  for (const id of "abcd")
    world.submit(id, { agent: "x", maxAttempts: 1, ...(id === "d" ? { deadline: instant(9) } : {}) });
  world.cancel("c");
  world.wait(5);
  world.join("w", { slots: 2 });
  world.finish("a");
  world.wait(4);
  world.finish("b", { outcome: "failed" });
  const { submitted, completed, failed, cancelled, expired, starts, waitMs } = world.state.totals;
  assert.deepEqual([submitted, completed, failed, cancelled, expired, starts, waitMs], [4, 1, 2, 1, 0, 3, 15]);
  const [agent] = [...world.state.projects.values()].flatMap((project) => [...project.agents.values()]);
  assert.deepEqual(agent?.totals, { submitted: 4, completed: 1, failed: 2, cancelled: 1 });
});

test("Batch Submission: at most 50, items may need each other in any order, partial failure", () => {
  assert.equal(DEFAULT_CONFIG.scheduler.maxBatch, 50);
  const item = (id: string, ...needs: string[]) => ({ id, parent: null, needs });
  const { order, refused } = batchOrder([
    item("c", "b"),
    item("b", "a"),
    item("a"),
    item("x", "y"),
    item("y", "x"),
    item("z", "x"),
  ]);
  assert.deepEqual(order, [2, 1, 0]);
  assert.deepEqual([...refused].map(([index, { type }]) => [index, type]).sort(), [
    [3, "cycle"],
    [4, "cycle"],
    [5, "dependency-refused"],
  ]);
});

test("Batch Submission: queue limits apply per task: the accepted ones stay", () => {
  const world = createWorld({ scheduler: { maxQueue: 2 } });
  assert.deepEqual(
    [..."abc"].map((id) => world.trySubmit(id).ok),
    [true, true, false],
  );
  assert.equal(world.state.queued, 2);
});

test("Config Hot-Reload: queue limits, in-flight limits and TTL bind at once", () => {
  const world = createWorld({ scheduler: { maxInFlight: 1, maxQueue: 2, resultTtl: "10s" } });
  world.join("w", { slots: 9 });
  for (const id of "abc") world.submit(id);
  assert.equal(world.trySubmit("d").ok, false);
  world.configure({ scheduler: { maxInFlight: 2, maxQueue: 5, resultTtl: "1s" } });
  assert.equal(world.phaseOf("b"), "assigned");
  assert.equal(world.trySubmit("d").ok, true);
  world.finish("a");
  world.wait(1000);
  assert.equal(world.state.tasks.has(taskId("a")), false);
});

test("P1 cancelling or expiring a queued task frees no slot it never had", () => {
  const world = createWorld({ scheduler: { maxInFlight: 1 } });
  world.join("w", { slots: 9 });
  for (const id of "abc") world.submit(id, { deadline: id === "c" ? instant(10) : null });
  world.cancel("b");
  world.wait(10);
  world.submit("d");
  assert.deepEqual([world.state.inFlight, world.phaseOf("d")], [1, "queued"]);
});

test("P2 cancelling a running task ends it once, whatever its worker says after", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  world.cancel("t");
  world.finish("t", { outcome: "done" });
  assert.equal(world.phaseOf("t"), "cancelled");
  const ends = world.log.filter((event) => ["task-done", "task-failed", "task-cancelled"].includes(event.kind));
  assert.deepEqual([ends.length, world.state.totals.cancelled, world.state.totals.completed], [1, 1, 0]);
  assert.equal(world.state.inFlight, 0);
});

test("P4 the pump fills every free slot, however many came at once", () => {
  const world = createWorld();
  for (let index = 0; index < 40; index++) world.submit(`t${index}`, { agent: `a${index % 8}` });
  assert.equal(startsOf(world, 40).length, 40);
});

test("P5 any change of capacity wakes: another agent's end, a raised limit, a resumed project", () => {
  const world = createWorld({ scheduler: { maxInFlight: 1 } });
  world.join("w", { slots: 9 });
  world.submit("a", { agent: "x" });
  world.submit("b", { agent: "y" });
  world.finish("a");
  assert.equal(world.phaseOf("b"), "assigned");
  world.submit("c");
  world.configure({ scheduler: { maxInFlight: 2 } });
  assert.equal(world.phaseOf("c"), "assigned");
});

test("P7 one in-flight limit: with slots for fifty, maxInFlight alone decides", () => {
  const world = createWorld({ scheduler: { maxInFlight: 30 } });
  for (let index = 0; index < 60; index++) world.submit(`t${index}`, { agent: `a${index % 10}` });
  assert.equal(startsOf(world, 50).length, 30);
});

test("P8 agents that tie go by who was served least recently, then by id", () => {
  const world = createWorld();
  world.join("w");
  for (const agent of ["c", "a", "b"]) for (const turn of [1, 2]) world.submit(`${agent}${turn}`, { agent });
  for (const id of ["c1", "a1", "b1", "c2", "a2"]) world.finish(id);
  assert.deepEqual(
    world.starts().map((start) => start.task),
    ["c1", "a1", "b1", "c2", "a2", "b2"],
  );
});

test("P10 a position is computed when asked", () => {
  const world = createWorld();
  world.submit("a");
  world.submit("b");
  const ahead = (): number | null => {
    const answer = why(world.state, taskId("b"), instant(0));
    return answer.ok ? answer.value.ahead.count : null;
  };
  assert.equal(ahead(), 1);
  world.cancel("a");
  assert.equal(ahead(), 0);
});

test("P12 a deadline is exact, and checked before anything starts", () => {
  const world = createWorld();
  world.submit("t", { deadline: instant(1000) });
  world.turn(1000);
  world.atOnce(() => world.join("w"));
  assert.deepEqual([world.phaseOf("t"), world.starts().length], ["failed", 0]);
  assert.equal(world.told("task-failed")[0]?.at, 1000);
});

test("P14 a reload is whole or not at all: zero is refused by name, what is absent has its default", () => {
  const zero = readConfig({ scheduler: { maxQueue: 0 } });
  assert.equal(zero.ok ? "" : "field" in zero.failure && zero.failure.field, "scheduler.maxQueue");
  const partial = readConfig({ scheduler: { maxInFlight: 7 } });
  assert.ok(partial.ok);
  assert.deepEqual([partial.value.scheduler.maxInFlight, partial.value.scheduler.maxQueue], [7, 100_000]);
});

test("P21 refused tasks leave nothing behind in the core", () => {
  const world = createWorld({ scheduler: { maxQueue: 1 } });
  world.submit("a");
  const before = [world.state.seq, world.state.tasks.size];
  for (let index = 0; index < 100; index++)
    world.trySubmit(`r${index}`, { agent: `agent${index}`, project: `p${index}` });
  assert.deepEqual([world.state.seq, world.state.tasks.size, world.state.projects.size], [...before, 1]);
});
