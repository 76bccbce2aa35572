/**
 * Plans: a paused one starts nothing, also one that a failure has paused; a known one keeps its records, and a snapshot
 * has all of it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Command } from "../../src/core/index.ts";
import { agentId, sentence, taskId } from "../../src/core/index.ts";
import { checkInvariants } from "../../src/core/invariants/index.ts";
import { groupOfPlan } from "../../src/core/lifecycle/plans.ts";
import { pump } from "../../src/core/pump.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { createWorld, putPlan, submission, type TaskFields, type World } from "../kits/conformance/world.ts";
import { holds, isQuick } from "../kits/laws/cases.ts";
import { bytesOf } from "../kits/laws/live.ts";

const PLANS = ["p", "q", "r"] as const;
const NAMES = ["a", "b", "c"] as const;
const steps = fc.array(
  fc.record({
    what: fc.constantFrom(
      ...(["put", "submit", "pause", "resume", "remove", "renew", "cut"] as const),
      ...(["finish", "fail", "cancel", "retry", "wait"] as const),
    ),
    plan: fc.constantFrom(...PLANS),
    name: fc.constantFrom(...NAMES),
    isFast: fc.boolean(),
    ms: fc.constantFrom(1, 500, 2000),
  }),
  { maxLength: 60 },
);
type Step = { what: string; plan: string; name: string; isFast: boolean; ms: number };

function commandOf({ what, plan, name, isFast }: Step): Command | null {
  const task = taskId(`${plan}.${name}`);
  switch (what) {
    case "put": {
      const names = NAMES.slice(0, NAMES.indexOf(name as "a") + 1).map((one) => `${plan}.${one}`);
      const others = isFast ? [taskId(`${plan}.c`)].filter((id) => !names.includes(id)) : [];
      return putPlan(plan, names, { failsFast: isFast, agent: agentId(isFast ? "a" : "b"), others });
    }
    case "submit":
      return { type: "submit-task", submission: submission(task), group: groupOfPlan(plan) };
    case "pause":
    case "resume":
      return { type: "pause-plan", plan, paused: what === "pause" };
    case "remove":
      return { type: "remove-plan", plan };
    case "renew":
      return { type: "renew-plan", plan };
    case "cut":
      return { type: "cut-plan", plan };
    case "cancel":
      return { type: "cancel-task", task, reason: null };
    case "retry":
      return { type: "retry-task", task };
    default:
      return null;
  }
}

function play(world: World, step: Step): void {
  const command = commandOf(step);
  if (command !== null) {
    world.tryTo(command);
    world.pump();
  } else if (step.what === "wait") world.wait(step.ms);
  else {
    const outcome = step.what === "finish" ? ("done" as const) : ("failed" as const);
    world.tryFinish(`${step.plan}.${step.name}`, { outcome, permanent: true });
    world.pump();
  }
}

test("a paused plan starts nothing, a known plan keeps its records, and a snapshot is the state", () => {
  let [starts, pauses, held] = [0, 0, 0];
  holds(3000, steps, (story) => {
    const scheduler = { resultTtl: 1, failedTtl: 1, remember: 100_000, planTtl: 1000, plansMax: 2 };
    const world = createWorld({ scheduler });
    world.join("w", { slots: 2 });
    const { state, log } = world;
    for (const step of story) {
      const paused = new Set([...state.plans.values()].filter((plan) => plan.paused !== null).map(({ id }) => id));
      const from = log.length;
      play(world, step);
      for (const event of log.slice(from)) {
        if (event.kind === "plan-resumed" || event.kind === "plan-put") paused.delete(event.plan);
        if (event.kind === "plan-removed") paused.delete(event.plan);
        if (event.kind === "plan-paused") {
          paused.add(event.plan);
          pauses++;
        }
        if (event.kind !== "task-assigned") continue;
        starts++;
        assert.ok(!paused.has(event.task.split(".")[0] ?? ""), `${event.task} starts while its plan is paused`);
      }
      assert.deepEqual(checkInvariants(state), []);
      for (const plan of state.plans.values())
        for (const { id } of plan.tasks) {
          const isGone = state.tombstones.has(id) && log.slice(from).some(({ kind }) => kind === "results-expired");
          assert.ok(!isGone || plan.putAt === state.at, `${id} is gone while its plan is known`);
        }
      held += state.heldByPlans;
    }
    assert.equal(bytesOf(restore(snapshotLines(state))), bytesOf(state));
  });
  const hasSeenMuch = starts > 100 && pauses > 20 && held > 20;
  assert.ok(isQuick || hasSeenMuch, `${starts} starts, ${pauses} pauses, ${held} held`);
});

const group = groupOfPlan("p");
const submitTo = (world: World, id: string, fields: TaskFields = {}): void => {
  world.tryTo({ type: "submit-task", submission: submission(id, fields), group });
};
const restored = (world: World): void => {
  assert.deepEqual(checkInvariants(world.state), []);
  assert.equal(bytesOf(restore(snapshotLines(world.state))), bytesOf(world.state));
};

test("what runs again of a paused plan, and is no part of it, starts when the plan is removed", () => {
  const world = createWorld();
  world.tryTo(putPlan("p", ["a", "b"]));
  for (const id of ["a", "b"]) submitTo(world, id);
  for (const id of ["a", "b"]) world.tryTo({ type: "cancel-task", task: taskId(id), reason: null });
  world.tryTo(putPlan("p", ["a"]));
  world.tryTo({ type: "pause-plan", plan: "p", paused: true });
  world.tryTo({ type: "retry-task", task: taskId("b") });
  world.join("w");
  world.pump();
  assert.equal(world.state.tasks.get(taskId("b"))?.phase, "queued");
  world.tryTo({ type: "remove-plan", plan: "p" });
  world.pump();
  assert.equal(world.state.tasks.get(taskId("b"))?.phase, "assigned");
  restored(world);
});

test("a paused plan banks no credit, whatever else its project is given meanwhile", () => {
  for (const isGivenMore of [false, true]) {
    const world = createWorld();
    const ids = Array.from({ length: 8 }, (_, index) => `a${index}`);
    world.tryTo(putPlan("p", ids));
    for (const id of ids) submitTo(world, id, { project: "red" });
    world.tryTo({ type: "pause-plan", plan: "p", paused: true });
    for (let index = 0; index < 20; index++)
      world.tryTo({ type: "submit-task", submission: submission(`b${index}`, { project: "blue" }) });
    world.join("w");
    const started: string[] = [];
    const step = (): void => {
      world.pump();
      const running = [...world.state.tasks.values()].find(({ phase }) => phase === "assigned");
      if (running === undefined) return;
      started.push(running.project.id);
      world.tryFinish(running.id, { outcome: "done" });
    };
    for (let index = 0; index < 10; index++) step();
    assert.deepEqual(new Set(started), new Set(["blue"]));
    if (isGivenMore) world.tryTo({ type: "submit-task", submission: submission("more", { project: "red" }) });
    world.tryTo({ type: "pause-plan", plan: "p", paused: false });
    restored(world);
    for (let index = 0; index < 8; index++) step();
    const red = started.slice(10).filter((project) => project === "red").length;
    assert.ok(red >= 3 && red <= 5, `${started.slice(10)}`);
  }
});

test("a plan that fails while somebody has paused it is paused for the failure when it goes on", () => {
  const world = createWorld();
  world.join("w");
  world.tryTo(putPlan("p", ["a", "b"], { failsFast: true }));
  for (const id of ["a", "b"]) submitTo(world, id);
  world.pump();
  world.tryTo({ type: "pause-plan", plan: "p", paused: true });
  world.tryFinish("a", { outcome: "failed", permanent: true });
  world.pump();
  const { state } = world;
  assert.equal(state.plans.get("p")?.paused, "asked");
  restored(world);
  world.tryTo({ type: "pause-plan", plan: "p", paused: false });
  restored(world);
  world.pump();
  assert.deepEqual([state.plans.get("p")?.paused, state.tasks.get(taskId("b"))?.phase], ["failed", "queued"]);
  world.tryTo({ type: "pause-plan", plan: "p", paused: false });
  world.pump();
  assert.equal(state.tasks.get(taskId("b"))?.phase, "assigned", "who lets it go on after the failure means it");
});

test("plans that have failed at once are paused in the same order by a state that was restored", () => {
  const world = createWorld();
  world.join("w", { slots: 2 });
  for (const plan of ["q", "p"]) {
    world.tryTo(putPlan(plan, [`${plan}.a`], { failsFast: true }));
    const task = submission(`${plan}.a`);
    world.tryTo({ type: "submit-task", submission: task, group: groupOfPlan(plan) });
  }
  world.pump();
  for (const plan of ["q", "p"]) world.tryFinish(`${plan}.a`, { outcome: "failed", permanent: true });
  const { state } = world;
  assert.equal(state.failedPlans.size, 2);
  assert.deepEqual(pump(state, state.at), pump(restore(snapshotLines(state)), state.at));
});

const putBy = (world: World, agent: string, plan: string, count = 1): string => {
  const names = Array.from({ length: count }, (_, index) => `${plan}.${index}`);
  const decided = world.tryTo(putPlan(plan, names, { agent: agentId(agent) }));
  return decided.ok ? "ok" : sentence(decided.failure);
};
const endAll = (world: World, plan: string): void => {
  const tasks = [...(world.state.plans.get(plan)?.tasks ?? [])];
  for (const { id } of tasks) {
    world.tryTo({ type: "submit-task", submission: submission(id), group: groupOfPlan(plan) });
    world.tryTo({ type: "cancel-task", task: id, reason: null });
  }
};
const known = ({ state }: World, first: string): number =>
  [...state.plans.keys()].filter((id) => id[0] === first).length;

test("one agent fills neither the room of plans nor that of their tasks, and costs no other a plan", () => {
  const world = createWorld({ scheduler: { plansMax: 100 } });
  assert.equal(putBy(world, "ann", "ann"), "ok");
  endAll(world, "ann");
  world.wait(1);
  for (let index = 0; index < 89; index++) assert.equal(putBy(world, "eve", `e${index}`), "ok");
  assert.match(
    putBy(world, "eve", "more"),
    /of at most 100 plans the last 10 are kept: they are for agents that have few/,
  );
  for (const agent of ["bob", "cid"]) assert.equal(putBy(world, agent, agent), "ok");
  assert.match(putBy(world, "bob", "bob2"), /the last 10 are kept/, "who has a hundredth has enough");
  endAll(world, "e7");
  assert.equal(putBy(world, "eve", "more"), "ok", "what has ended of hers gives way to her own");
  assert.deepEqual([world.state.plans.has("e7"), known(world, "e"), world.state.plans.has("ann")], [false, 88, true]);
  for (let index = 0; index < 8; index++) assert.equal(putBy(world, `a${index}`, `a${index}`), "ok");
  endAll(world, "e9");
  world.wait(1);
  endAll(world, "e8");
  world.wait(1);
  assert.equal(world.state.plans.size, 100);
  assert.equal(putBy(world, "dan", "dan"), "ok", "of who has the most, the one that ended first goes");
  assert.deepEqual([world.state.plans.has("e8"), world.state.plans.has("e9")], [true, false]);
  restored(world);
});

test("tasks of plans have a bound too: what lives stays, and an edit that has fewer is let in", () => {
  const world = createWorld();
  for (let index = 0; index < 9; index++) assert.equal(putBy(world, "eve", `e${index}`, 9_990), "ok");
  assert.match(putBy(world, "eve", "more", 100), /of at most 100000 tasks of plans the last 10000 are kept/);
  assert.equal(putBy(world, "ann", "ann", 1000), "ok");
  assert.match(putBy(world, "ann", "ann2", 10_000), /90910 of at most 100000 tasks of plans are taken/);
  assert.equal(putBy(world, "eve", "e3", 9_890), "ok", "an edit that has less");
  assert.equal(world.state.heldByPlans, 90_810);
  world.tryTo(putPlan("ended", [], { agent: agentId("eve") }));
  assert.match(putBy(world, "eve", "more", 100), /the last 10000 are kept/, "what goes would not be enough");
  assert.ok(world.state.plans.has("ended"), "so it stays");
  restored(world);
});

test("what is no part of a plan any more is held no longer", () => {
  const world = createWorld({ scheduler: { resultTtl: 1000, failedTtl: 1000 } });
  world.tryTo(putPlan("p", ["a", "b", "o"]));
  for (const id of ["a", "b", "o"]) submitTo(world, id);
  for (const id of ["a", "b", "o"]) world.tryTo({ type: "cancel-task", task: taskId(id), reason: null });
  world.tryTo(putPlan("p", ["b", "c"], { others: [taskId("o")] }));
  world.wait(1000);
  assert.deepEqual(
    [...world.state.tasks.values()].map(({ id }) => id),
    ["b", "o"],
    "one that was left out is part of it",
  );
  restored(world);
});
