/**
 * Plans: a paused one starts nothing, also one that a failure has paused; a known one keeps its records, and a snapshot
 * has all of it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Command } from "../../src/core/index.ts";
import { taskId } from "../../src/core/index.ts";
import { checkInvariants } from "../../src/core/invariants/index.ts";
import { groupOfPlan } from "../../src/core/lifecycle/plans.ts";
import { restore, snapshotLines } from "../../src/core/snapshot/snapshot.ts";
import { createWorld, putPlan, submission, type World } from "../kits/conformance/world.ts";
import { holds, isQuick } from "../kits/laws/cases.ts";
import { bytesOf } from "../kits/laws/live.ts";

const PLANS = ["p", "q"] as const;
const NAMES = ["a", "b", "c"] as const;
const steps = fc.array(
  fc.record({
    what: fc.constantFrom("put", "submit", "pause", "resume", "remove", "finish", "fail", "cancel", "retry", "wait"),
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
      return putPlan(plan, names, { failsFast: isFast });
    }
    case "submit":
      return { type: "submit-task", submission: submission(task), group: groupOfPlan(plan) };
    case "pause":
    case "resume":
      return { type: "pause-plan", plan, paused: what === "pause" };
    case "remove":
      return { type: "remove-plan", plan };
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
