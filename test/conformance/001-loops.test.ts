/**
 * Seed 001, "Scheduler: Loop Prioritization": score, dependencies, per-type limits, back-off, defaults.
 *
 * Each test names the section it holds Drover to; the traps (L…) are that seed's known defects, with the right
 * behaviour. Loops are tasks here, `created_at` is the instant a task became runnable.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_CONFIG, InputError, instant, score, taskId, why } from "../../src/core/index.ts";
import { createWorld, MINUTE, type World } from "../kits/conformance/world.ts";

const NOW = 100 * MINUTE;
const aged = (type: string, minutes: number, depth: number, iteration: number): number =>
  score({ type, runnableAt: NOW - minutes * MINUTE, depth, iteration }, NOW);

const scores: readonly { name: string; of: [string, number, number, number]; gives: number }[] = [
  { name: "Base Priority by Loop Type: code is 100", of: ["code", 0, 0, 1], gives: 100 },
  { name: "Base Priority by Loop Type: phase is 80", of: ["phase", 0, 0, 1], gives: 80 },
  { name: "Base Priority by Loop Type: spec is 60", of: ["spec", 0, 0, 1], gives: 60 },
  { name: "Base Priority by Loop Type: plan is 40", of: ["plan", 0, 0, 1], gives: 40 },
  { name: "Example Calculation: Loop A, code, 5 min, depth 3, iteration 1", of: ["code", 5, 3, 1], gives: 135 },
  { name: "Example Calculation: Loop B, phase, 30 min, depth 2, iteration 1", of: ["phase", 30, 2, 1], gives: 130 },
  { name: "Example Calculation: Loop C, code, 1 min, depth 3, iteration 5", of: ["code", 1, 3, 5], gives: 111 },
  { name: "Priority Calculation: age boost is whole minutes", of: ["code", 1.99, 0, 1], gives: 101 },
  { name: "Priority Calculation: age boost, max +50, one minute below", of: ["code", 49, 0, 1], gives: 149 },
  { name: "Priority Calculation: age boost, max +50, at the cap", of: ["code", 50, 0, 1], gives: 150 },
  { name: "Priority Calculation: age boost, max +50, beyond", of: ["code", 99, 0, 1], gives: 150 },
  { name: "Priority Calculation: depth boost, +10 per level", of: ["spec", 0, 7, 1], gives: 130 },
  { name: "Priority Calculation: retry penalty, -5 per failed iteration", of: ["code", 0, 0, 2], gives: 95 },
  { name: "Priority Calculation: retry penalty, max -30, at the cap", of: ["code", 0, 0, 7], gives: 70 },
  { name: "Priority Calculation: retry penalty, max -30, beyond", of: ["code", 0, 0, 50], gives: 70 },
  { name: "L2 iteration 0 is no bonus", of: ["code", 0, 0, 0], gives: 100 },
  { name: "L6 a task that becomes runnable later has no negative age", of: ["code", -30, 0, 1], gives: 100 },
];
for (const { name, of, gives } of scores) test(name, () => assert.equal(aged(...of), gives));

test("Configuration: every default of the priority section", () => {
  const { base, agePerMinute, ageMax, depthBoost, retryPenalty, retryMax } = DEFAULT_CONFIG.scheduler.priority;
  assert.deepEqual([base.plan, base.spec, base.phase, base.code], [40, 60, 80, 100]);
  assert.deepEqual([agePerMinute, ageMax, depthBoost, retryPenalty, retryMax], [1, 50, 10, 5, 30]);
});

test("Configuration: every default of the concurrency section", () => {
  const { maxInFlight, perType } = DEFAULT_CONFIG.scheduler;
  assert.equal(maxInFlight, 50, "max_loops");
  assert.equal(DEFAULT_CONFIG.gates.default.maxConcurrent, 10, "max_api_calls");
  assert.deepEqual(perType, { plan: 2, spec: 5, phase: 20, code: 50 });
});

const knobs: readonly { knob: object; of: [string, number, number, number]; gives: number }[] = [
  { knob: { base: { code: 7 } }, of: ["code", 0, 0, 1], gives: 7 },
  { knob: { agePerMinute: 2 }, of: ["code", 10, 0, 1], gives: 120 },
  { knob: { ageMax: 3 }, of: ["code", 10, 0, 1], gives: 103 },
  { knob: { depthBoost: 1 }, of: ["code", 0, 4, 1], gives: 104 },
  { knob: { retryPenalty: 1 }, of: ["code", 0, 0, 4], gives: 97 },
  { knob: { retryMax: 2 }, of: ["code", 0, 0, 9], gives: 98 },
];
for (const { knob, of, gives } of knobs)
  test(`Configuration: ${JSON.stringify(knob)} binds`, () => {
    const [type, minutes, depth, iteration] = of;
    assert.equal(score({ type, runnableAt: NOW - minutes * MINUTE, depth, iteration }, NOW, knob), gives);
  });

for (const [field, task] of [
  ["task.runnableAt", { runnableAt: Number.NaN }],
  ["task.depth", { depth: -1 }],
  ["task.iteration", { iteration: "1" }],
  ["task.type", { type: "None" }],
] as const)
  test(`score refuses a bad ${field} by name`, () => {
    const bad = { type: "code", runnableAt: 0, depth: 0, iteration: 1, ...task } as Parameters<typeof score>[0];
    assert.throws(
      () => score(bad, 0),
      (error) => error instanceof InputError && error.message.startsWith(field),
    );
  });

/** Nothing starts before everything is there: the worker comes last. */
function order(world: World): string[] {
  return world.atOnce(() => world.join("w", { slots: 50 })).map((start) => start.task);
}

/** A chain of ended ancestors, so that the next one under it has that depth. */
function chain(world: World, depth: number): string | null {
  let parent: string | null = null;
  for (let level = 0; level < depth; level++) {
    const id = `up${level}of${depth}`;
    world.submit(id, { parent, type: "other" });
    world.finish(id);
    parent = id;
  }
  return parent;
}

test("Example Calculation: Order: A (135) → B (130) → C (111)", () => {
  const world = createWorld({ scheduler: { resultTtl: "2h" } });
  world.join("w");
  const [three, two] = [chain(world, 3), chain(world, 2)];
  world.leave("w");
  world.submit("B", { type: "phase", parent: two });
  world.wait(25 * MINUTE);
  world.submit("A", { type: "code", parent: three });
  world.wait(4 * MINUTE);
  world.submit("C", { type: "code", parent: three, iteration: 5 });
  world.wait(1 * MINUTE);
  assert.deepEqual(order(world), ["A", "B", "C"]);
  assert.deepEqual(
    world
      .told("task-assigned")
      .slice(-3)
      .map((event) => event.rank.score),
    [135, 130, 111],
  );
});

test("Design Principles 2: depth-first execution, inner loops before new outer ones", () => {
  const world = createWorld();
  world.join("w");
  const parent = chain(world, 1);
  world.leave("w");
  world.submit("outer", { type: "code" });
  world.submit("inner", { type: "code", parent });
  assert.deepEqual(order(world), ["inner", "outer"]);
});

test("Design Principles 3: FIFO within priority", () => {
  const world = createWorld();
  for (const id of ["x", "c", "a"]) {
    world.submit(id, { type: "code" });
    world.wait(1);
  }
  assert.deepEqual(order(world), ["x", "c", "a"]);
});

test("Dependency Resolution 1: only a pending loop runs; a cancelled one does not", () => {
  const world = createWorld();
  world.submit("t");
  world.cancel("t");
  assert.deepEqual(order(world), []);
});

test("Dependency Resolution 2: a child waits until its parent is complete", () => {
  const world = createWorld();
  world.join("w", { slots: 5 });
  world.submit("parent");
  world.submit("child", { parent: "parent" });
  assert.equal(world.phaseOf("child"), "waiting");
  world.finish("parent");
  assert.equal(world.phaseOf("child"), "assigned");
});

test("Dependency Resolution 3: a loop waits for its artifact", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { artifact: "spec.md" });
  assert.equal(world.phaseOf("t"), "waiting");
  world.must({ type: "artifact-ready", artifact: "spec.md" });
  assert.equal(world.phaseOf("t"), "assigned");
});

test("Scheduler Implementation: nothing is selected with no slot available", () => {
  const world = createWorld();
  world.submit("t");
  assert.deepEqual(world.pump(), []);
});

test("Scheduler Implementation: no more is selected than there are slots, best first", () => {
  const world = createWorld();
  for (const type of ["plan", "code", "spec", "phase"]) world.submit(type, { type });
  assert.deepEqual(
    world.atOnce(() => world.join("w", { slots: 2 })).map((start) => start.task),
    ["code", "phase"],
  );
});

for (const [type, limit] of Object.entries(DEFAULT_CONFIG.scheduler.perType))
  test(`Configuration: at most ${limit} of type ${type} run, and another type passes them`, () => {
    const world = createWorld({
      scheduler: { maxInFlight: 100, maxPerAgentInFlight: 100 },
      projects: { p: { maxConcurrent: 100 } },
    });
    for (let index = 0; index <= limit; index++) world.submit(`${type}${index}`, { type });
    world.submit("other");
    const started = world.atOnce(() => world.join("w", { slots: 100 })).map((start) => start.task);
    assert.equal(started.length, limit + 1);
    assert.ok(started.includes("other"));
  });

test("Rate Limit Coordination: no loop of a blocked provider starts, and others do", () => {
  const world = createWorld();
  world.throttle("anthropic/default", 30_000);
  world.submit("held", { provider: "anthropic/default" });
  world.submit("other", { provider: "openai/default" });
  world.submit("none");
  assert.deepEqual(order(world), ["other", "none"]);
  world.wait(29_999);
  assert.equal(world.phaseOf("held"), "queued");
  world.wait(1);
  assert.equal(world.phaseOf("held"), "assigned");
});

for (const [throttles, backoff] of [
  [1, 2],
  [2, 4],
  [3, 8],
  [6, 64],
  [7, 64],
] as const)
  test(`Rate Limit Coordination: throttle ${throttles} backs off 2^min(throttles, 6) = ${backoff} s`, () => {
    const world = createWorld();
    let until = 0;
    for (let throttle = 0; throttle < throttles; throttle++) {
      until = throttleOnce(world) - world.now();
      world.wait(until);
    }
    assert.equal(until, backoff * 1000);
  });

function throttleOnce(world: World): number {
  world.throttle("g");
  const [gate] = world.state.gates.values();
  return gate?.blockedUntil ?? 0;
}

test("L1 a plan past starvationAfter goes before every fresh code loop of its agent", () => {
  const world = createWorld();
  world.submit("plan", { type: "plan" });
  world.wait(59 * MINUTE);
  world.submit("early", { type: "code" });
  world.wait(MINUTE);
  world.submit("late", { type: "code" });
  assert.deepEqual(order(world), ["plan", "early", "late"]);
});

test("L1 one millisecond before starvationAfter the score still decides", () => {
  const world = createWorld();
  world.submit("plan", { type: "plan" });
  world.wait(60 * MINUTE - 1);
  world.submit("code", { type: "code" });
  assert.deepEqual(order(world), ["code", "plan"]);
});

test("L3 the per-type limit counts what is running", () => {
  const world = createWorld();
  world.join("w", { slots: 10 });
  for (const id of ["a", "b", "c"]) world.submit(id, { type: "plan" });
  assert.deepEqual(["a", "b", "c"].map(world.phaseOf), ["assigned", "assigned", "queued"]);
  world.finish("b");
  assert.equal(world.phaseOf("c"), "assigned");
});

test("L4 equal scores go by runnable time, then by sequence", () => {
  const world = createWorld();
  for (const id of ["z", "y", "x"]) world.submit(id, { type: "code" });
  assert.deepEqual(order(world), ["z", "y", "x"]);
});

test("L5 a score depends on nothing but its arguments", () => {
  assert.equal(aged("code", 5, 3, 1), aged("code", 5, 3, 1));
  assert.equal(score({ type: "code", runnableAt: 0, depth: 0, iteration: 1 }, 60_000), 101);
});

test("L6 age counts from becoming runnable, not while blocked", () => {
  const world = createWorld();
  world.join("w");
  world.submit("parent");
  world.submit("child", { parent: "parent" });
  world.wait(30 * MINUTE);
  world.finish("parent");
  const [assigned] = world.told("task-assigned").filter((event) => event.task === "child");
  assert.equal(assigned?.rank.score, 110, "base 100, depth 10, no age");
});

test("L7 a cycle is refused at submit", () => {
  const world = createWorld();
  const self = world.trySubmit("t", { needs: ["t"] });
  assert.deepEqual(self.ok ? null : self.failure, { type: "cycle", path: ["t", "t"] });
  const unknown = world.trySubmit("u", { parent: "nobody" });
  assert.equal(unknown.ok ? null : unknown.failure.type, "dependency-unknown");
});

test("L8 a later, smaller retry-after never shortens the back-off", () => {
  const world = createWorld();
  world.throttle("g", 60_000);
  world.wait(1000);
  world.throttle("g", 1000);
  const [gate] = world.state.gates.values();
  assert.equal(gate?.blockedUntil, 60_000);
});

test("L9 six 429s of one burst are one throttle", () => {
  const world = createWorld();
  for (let call = 0; call < 6; call++) world.throttle("g", 500);
  const [gate] = world.state.gates.values();
  assert.deepEqual([gate?.throttles, gate?.blockedUntil], [1, 2000]);
});

test("L13 children of a failed parent are skipped, with the reason", () => {
  const world = createWorld();
  world.join("w");
  world.submit("parent", { maxAttempts: 1 });
  world.submit("child", { parent: "parent" });
  world.submit("grandchild", { parent: "child" });
  world.finish("parent", { outcome: "failed", error: "broke" });
  assert.deepEqual(["child", "grandchild"].map(world.phaseOf), ["skipped", "skipped"]);
  assert.equal(world.taskOf("child").end?.error, "its dependency parent is failed");
});

test("L13 onDependencyFailure: run starts the child all the same", () => {
  const world = createWorld();
  world.join("w");
  world.submit("parent", { maxAttempts: 1 });
  world.submit("child", { parent: "parent", onDependencyFailure: "run" });
  world.finish("parent", { outcome: "failed" });
  assert.equal(world.phaseOf("child"), "assigned");
});

test("L14 an artifact is there when an event says so; deciding looks at nothing else", () => {
  const world = createWorld();
  world.join("w");
  world.submit("ready", { artifact: "a", artifactReady: true });
  world.submit("waits", { artifact: "b" });
  assert.deepEqual(["ready", "waits"].map(world.phaseOf), ["assigned", "waiting"]);
  const answer = why(world.state, taskId("waits"), instant(0));
  assert.ok(answer.ok && answer.value.summary.includes("artifact b"));
});
