/**
 * Seed 004, "Scheduling System Specification": DAG nodes to workers, deterministic and with reasons.
 *
 * Nodes are tasks, edges are `needs`. The seed's cluster mode (Raft) is the log's affair: here only what
 * makes it possible is held: the same log gives the same decisions. The traps (C…) are in 004-decisions.test.ts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RollingSum } from "../../src/core/gate/usage-window.ts";
import {
  type Decided,
  type Event,
  evolve,
  InputError,
  instant,
  shouldAccept,
  shouldThrottle,
  taskId,
  workerId,
} from "../../src/core/index.ts";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { recentCharge } from "../../src/core/turn/fairness.ts";
import { why } from "../../src/core/why/why.ts";
import {
  createWorld,
  placedBy,
  reasonOf,
  submitAll,
  type World,
  workerOf,
  workerSettings,
} from "../kits/conformance/world.ts";

test("Principles 1: same state, same assignment: two runs of one history agree event by event", () => {
  const run = (): readonly Event[] => {
    const world = createWorld(placedBy("random"));
    for (const id of ["w1", "w2", "w3"]) world.join(id, { slots: 2 });
    submitAll(world, "abcdefgh");
    world.finish("a");
    world.leave("w2", true);
    return world.log;
  };
  assert.deepEqual(run(), run());
});

test("Principles 2: every assignment is an event, with worker, instant, reason and the numbers of its rank", () => {
  const world = createWorld();
  world.join("w");
  world.wait(7);
  world.submit("t");
  const [event] = world.told("task-assigned");
  assert.deepEqual([event?.task, event?.worker, event?.at, event?.attempt], ["t", "w", 7, 1]);
  assert.deepEqual(event?.reason, { type: "only-worker-available" });
  assert.deepEqual([event?.rank.priority, event?.rank.score, event?.rank.weight], [0, 100, 1]);
});

test("Principles 3: a task goes only where CPU and memory are left", () => {
  const world = createWorld();
  world.join("w", { slots: 9, cpu: 1000, memory: 500 });
  world.submit("a", { cpu: 600, memory: 100 });
  world.submit("b", { cpu: 600, memory: 100 });
  world.submit("c", { cpu: 400, memory: 401 });
  world.submit("d", { cpu: 400, memory: 400 });
  assert.deepEqual(["a", "b", "c", "d"].map(world.phaseOf), ["assigned", "queued", "queued", "assigned"]);
});

test("Principles 4: never before its dependencies complete", () => {
  const world = createWorld();
  world.join("w", { slots: 9 });
  submitAll(world, "ab");
  world.submit("c", { needs: ["a", "b"] });
  world.finish("a");
  assert.equal(world.phaseOf("c"), "waiting");
  world.finish("b");
  assert.equal(world.phaseOf("c"), "assigned");
});

const reasons: readonly { name: string; strategy: string; workers: string[]; gives: unknown }[] = [
  { name: "OnlyWorkerAvailable", strategy: "least-loaded", workers: ["w1"], gives: { type: "only-worker-available" } },
  {
    name: "LeastLoaded",
    strategy: "least-loaded",
    workers: ["w1", "w2"],
    gives: { type: "least-loaded", queueDepth: 0 },
  },
  {
    name: "ResourceFit",
    strategy: "best-fit",
    workers: ["w1", "w2"],
    gives: { type: "resource-fit", availableCpu: 1000, requiredCpu: 100 },
  },
  { name: "round-robin", strategy: "round-robin", workers: ["w1", "w2"], gives: { type: "round-robin" } },
  { name: "random", strategy: "random", workers: ["w1", "w2"], gives: { type: "random" } },
];
for (const { name, strategy, workers, gives } of reasons)
  test(`Scheduling Decision: reasoning ${name}`, () => {
    const world = createWorld(placedBy(strategy));
    for (const id of workers) world.join(id, { cpu: 1000 });
    world.submit("t", { cpu: 100 });
    assert.deepEqual(reasonOf(world, "t"), gives);
  });

test("Scheduling Decision: reasoning Affinity, DataLocality: where its parent ran", () => {
  const world = createWorld(placedBy("affinity"));
  world.join("w1", { slots: 2 });
  world.submit("parent");
  world.join("w0", { slots: 2 });
  world.finish("parent");
  world.submit("child", { parent: "parent" });
  assert.equal(workerOf(world, "child"), "w1");
  assert.deepEqual(reasonOf(world, "child"), { type: "affinity", reason: "data-locality" });
});

test("Scheduling Decision: reasoning Affinity, PreviouslyExecuted: where it ran before", () => {
  const world = createWorld(placedBy("affinity"));
  world.join("w1", { slots: 2 });
  world.submit("t");
  world.join("w0", { slots: 2 });
  world.finish("t", { outcome: "failed" });
  world.wait(5000);
  assert.deepEqual([workerOf(world, "t"), world.taskOf("t").attempts], ["w1", 2]);
  assert.deepEqual(reasonOf(world, "t"), { type: "affinity", reason: "previously-executed" });
});

test("Scheduling Decision: reasoning Affinity, SameZone", () => {
  const world = createWorld(placedBy("affinity"));
  world.join("w1", { zone: "us" });
  world.join("w2", { zone: "eu" });
  world.submit("t", { zone: "eu" });
  assert.equal(workerOf(world, "t"), "w2");
  assert.deepEqual(reasonOf(world, "t"), { type: "affinity", reason: "same-zone" });
});

test("Scheduling Decision: DataLocality outlives the result: a tombstone knows who ran it", () => {
  const world = createWorld({ scheduler: { resultTtl: "1s", placement: { strategy: "affinity" } } });
  world.join("w1", { slots: 2 });
  world.submit("parent");
  world.submit("need");
  world.join("w0", { slots: 2 });
  for (const id of ["parent", "need"]) world.finish(id);
  world.wait(2000);
  assert.equal(world.state.tasks.size, 0, "only tombstones are left");
  const restored = restore(snapshotLines(world.state));
  assert.equal(restored.tombstones.get(taskId("parent"))?.lastWorker, "w1");
  world.submit("child", { parent: "parent" });
  world.submit("user", { needs: ["need"] });
  for (const id of ["child", "user"]) {
    assert.equal(workerOf(world, id), "w1");
    assert.deepEqual(reasonOf(world, id), { type: "affinity", reason: "data-locality" });
  }
});

test("a snapshot of a version that did not know who ran a tombstone is read", () => {
  const world = createWorld({ scheduler: { resultTtl: "1s" } });
  world.join("w1");
  world.submit("t");
  world.finish("t");
  world.wait(2000);
  const old = [...snapshotLines(world.state)].map((line) => {
    const row = JSON.parse(line) as unknown[];
    return row[0] === "tombstone" ? JSON.stringify(row.slice(0, -1)) : line;
  });
  assert.equal(restore(old).tombstones.get(taskId("t"))?.lastWorker, null);
});

test("SchedulerConfig: prefer_locality makes affinity the first tie-break of another strategy", () => {
  for (const [preferLocality, gives] of [
    [false, "w0"],
    [true, "w1"],
  ] as const) {
    const world = createWorld(placedBy("least-loaded", { preferLocality }));
    world.join("w1", { slots: 2 });
    world.submit("parent");
    world.finish("parent");
    world.join("w0", { slots: 2 });
    world.submit("child", { parent: "parent" });
    assert.equal(workerOf(world, "child"), gives);
  }
});

test("SchedulerConfig: max_queue_per_worker lets tasks queue on a busy worker, so many and no more", () => {
  const world = createWorld(placedBy("least-loaded", { maxQueuePerWorker: 2 }));
  world.join("w");
  submitAll(world, "abcd");
  assert.deepEqual([..."abcd"].map(world.phaseOf), ["assigned", "assigned", "assigned", "queued"]);
});

const statuses = [
  ["ready", "assigned"],
  ["overloaded", "queued"],
  ["draining", "queued"],
] as const;
for (const [status, gives] of statuses)
  test(`Worker State: is_available: a ${status} worker ${gives === "assigned" ? "takes" : "takes no"} work`, () => {
    const world = createWorld();
    world.join("w", { status });
    world.submit("t");
    assert.equal(world.phaseOf("t"), gives);
  });

test("Worker State: is_available: a busy worker with a free slot takes work, an unreachable one none", () => {
  const world = createWorld();
  world.join("w", { slots: 3 });
  submitAll(world, "ab");
  assert.equal(world.phaseOf("b"), "assigned");
  world.leave("w", true);
  world.submit("c");
  assert.deepEqual([..."abc"].map(world.phaseOf), ["queued", "queued", "queued"]);
});

test("Worker State: has_capabilities: all that are needed", () => {
  const world = createWorld();
  world.join("w1", { capabilities: ["a"] });
  world.join("w2", { capabilities: ["a", "b"] });
  world.submit("t", { capabilities: ["a", "b"] });
  assert.equal(workerOf(world, "t"), "w2");
});

test("Worker State: queue_depth: what a worker holds, then fewest spare capabilities, then id", () => {
  const world = createWorld();
  world.join("w1", { slots: 9, capabilities: ["gpu"] });
  world.join("w2", { slots: 9 });
  world.join("w3", { slots: 9 });
  submitAll(world, "abcd");
  assert.deepEqual(
    [..."abcd"].map((id) => workerOf(world, id)),
    ["w2", "w3", "w1", "w2"],
  );
});

const load = { queued: 0, inFlight: 0, workers: 2, maxQueue: 10, rejectThreshold: 0.8, throttleAt: 0.5 };
test("Backpressure: should_accept below reject_threshold, from it on not", () => {
  assert.deepEqual(
    [7, 8, 9].map((queued) => shouldAccept({ ...load, queued })),
    [true, false, false],
  );
});
test("Backpressure: should_throttle above one half", () => {
  assert.deepEqual(
    [5, 6].map((queued) => shouldThrottle({ ...load, queued })),
    [false, true],
  );
});
test("Backpressure: with perWorker the larger of both usages counts", () => {
  const busy = { ...load, queued: 2, inFlight: 6, perWorker: 5 };
  assert.deepEqual([shouldAccept(busy), shouldAccept({ ...busy, workers: 4 })], [false, true]);
});
for (const [field, bad] of [
  ["load.maxQueue", { maxQueue: 0 }],
  ["load.queued", { queued: -1 }],
  ["load.workers", { workers: Number.NaN }],
  ["load.rejectThreshold", { rejectThreshold: "1" }],
] as const)
  test(`Backpressure: a bad ${field} is refused by name`, () =>
    assert.throws(
      () => shouldAccept({ ...load, ...bad } as typeof load),
      (error) => error instanceof InputError && error.message.startsWith(field),
    ));

test("a tab that two own, as an older log may say, is his who names it again, though nothing else changes", () => {
  const world = createWorld();
  world.join("A", { capabilities: ["tab:T"] });
  world.join("B", { capabilities: ["other"] });
  const joined = world.told("worker-joined")[0];
  assert.ok(joined !== undefined);
  evolve(world.state, { ...joined, worker: workerId("B") });
  const owners = (): string[] =>
    world.state.fleet.order.filter(({ capabilities }) => capabilities.includes("tab:T")).map(({ id }) => id);
  assert.deepEqual(owners(), ["A", "B"]);
  world.change("A", { capabilities: ["tab:T"] });
  assert.deepEqual(owners(), ["A"]);
  assert.equal(world.change("A", { capabilities: ["tab:T"] }).repeated, true);
  world.change("B", { capabilities: ["tab:T"] });
  assert.deepEqual(owners(), ["B"]);
});

const filter = (world: World, id: string, actions: readonly string[]): Decided =>
  world.tryTo({
    ...{ type: "join-worker", worker: workerId(id), kind: "pull", session: "s" },
    ...{ settings: workerSettings({ slots: 9 }), takes: { actions, types: null, projects: null } },
  });

test("a filter that is heard first or last moves the queued tasks it refuses, alike or not, and no index lags", () => {
  const world = createWorld();
  for (const id of ["d1", "d2", "d3"]) world.submit(id, { agent: "ann", action: "deploy" });
  for (const [id, action] of [
    ["e1", "exec"],
    ["d4", "deploy"],
    ["e2", "exec"],
  ] as const)
    world.submit(id, { agent: "bob", action });
  const queuedWith = (agent: string): number[] =>
    [...(world.state.projects.get(world.taskOf("d1").project.id)?.agents.values() ?? [])]
      .filter(({ id }) => id === agent)
      .flatMap(({ groups }) => groups.map(({ tasks }) => tasks.size));
  const [moved] = [world.taskOf("d1").group];
  assert.deepEqual([queuedWith("ann"), queuedWith("bob")], [[3], [3]]);
  world.atOnce(() => {
    filter(world, "x", ["exec"]);
    assert.deepEqual(checkInvariants(world.state), []);
    assert.deepEqual([queuedWith("ann"), queuedWith("bob").sort()], [[3], [1, 2]]);
    assert.equal(world.taskOf("d1").group, moved, "a group of one mind moves as a whole");
    world.leave("x");
    assert.deepEqual(checkInvariants(world.state), []);
    assert.deepEqual([queuedWith("ann"), queuedWith("bob")], [[3], [3]]);
    filter(world, "x", ["exec"]);
  });
  assert.deepEqual(
    world.starts().map(({ task }) => task),
    ["e1", "e2"],
  );
});

test("what a worker takes, by patterns of types and projects, decides whether a task can ever run, and why", () => {
  const world = createWorld();
  world.tryTo({
    ...{ type: "join-worker", worker: workerId("w"), kind: "pull", session: "s" },
    settings: workerSettings({ slots: 9 }),
    takes: { actions: null, types: ["code-*", "*spec"], projects: ["web-*"] },
  });
  const rows: [id: string, type: string, project: string, refused: string][] = [
    ["a", "code-review", "web-1", ""],
    ["b", "spec", "web-", ""],
    ["c", "code", "web-1", "type code"],
    ["d", "code-x", "web", "project web"],
    ["e", "plan", "other", "type plan, project other"],
  ];
  for (const [id, type, project] of rows) world.submit(id, { type, project });
  for (const [id, , , refused] of rows) {
    assert.equal(world.taskOf(id).phase, refused === "" ? "assigned" : "queued", id);
    if (refused === "") continue;
    const said = why(world.state, taskId(id), instant(world.now()));
    const [never] = said.ok ? said.value.conditions.filter(({ code, ok }) => code === "never-fits" && !ok) : [];
    assert.match(never?.detail ?? "", new RegExp(`it needs a worker that takes ${refused}`), id);
  }
});

test("a fleet has at most 256 different filters; those it has already may be used by more workers", () => {
  const world = createWorld();
  for (let count = 0; count < 256; count++) assert.ok(filter(world, `w${count}`, [`a${count}`]).ok);
  const refused = filter(world, "more", ["other"]);
  assert.deepEqual(refused.ok ? null : refused.failure, {
    ...{ type: "too-many", what: "different filters (takes) of workers", max: 256 },
  });
  assert.ok(filter(world, "more", ["a7"]).ok);
  world.leave("w3");
  assert.ok(filter(world, "yet-more", ["other"]).ok);
});

test("a snapshot of format 3 counts no charge twice, and one that waits again has not begun", () => {
  const world = createWorld();
  world.join("w");
  world.submit("a", { estimatedTokens: 300 });
  world.finish("a", { tokens: 300 });
  world.wait(5000);
  world.submit("b", { estimatedTokens: 500 });
  world.start("b");
  world.leave("w");
  world.join("w");
  world.submit("c", { estimatedTokens: 700 });
  const [attempt, waiting] = world.taskOf("b").attempt === null ? ["c", "b"] : ["b", "c"];
  const charge = world.taskOf(attempt).attempt?.charge ?? 0;
  const older = [...snapshotLines(world.state)].map((line) => {
    const row = JSON.parse(line);
    if (row[0] === "drover") row[1] = 3;
    // As that format had it: charged when it starts, and the instant of the last start kept.
    if (row[0] === "project") {
      const recent = RollingSum.fromFacts(row[8]);
      recent.add(charge, world.now());
      row[8] = recent.facts();
      row[6] -= charge;
    }
    if (row[0] === "task" && row[1] === waiting)
      row[14] = [...(row[14] ?? [false, 0, 0, 0, -1, -1, null, 0, null, -1, null, null])];
    if (row[0] === "task" && row[1] === waiting) row[14][7] = 5000;
    return JSON.stringify(row);
  });
  const copy = restore(older);
  const [mine, its] = [world.state, copy].map(({ projects }) => [...projects.values()][0]);
  assert.ok(mine !== undefined && its !== undefined && charge > 0);
  assert.equal(recentCharge(its, world.now()), recentCharge(mine, world.now()));
  assert.equal(its.charged, mine.charged);
  assert.equal(copy.tasks.get(taskId(waiting))?.startedAt, -1);
  assert.ok((copy.tasks.get(taskId(attempt))?.attempt ?? null) !== null);
});
