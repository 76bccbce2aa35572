/**
 * Every condition `why` knows, shut by a history made for it, and open in one of the others: whatever the histories of
 * why.test.ts happen to meet. A code without its history does not compile.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { taskId } from "../../src/core/base/brand.ts";
import { instant, type Why, why } from "../../src/core/index.ts";
import { groupOfPlan } from "../../src/core/lifecycle/plans.ts";
import type { WhyCode } from "../../src/core/why/conditions.ts";
import { createWorld, type World } from "../kits/conformance/world.ts";
import { PLAIN } from "../kits/laws/histories.ts";

const MINUTE = 60_000;
type Shut = { readonly config?: unknown; readonly story: (world: World) => void };

/** What has to happen so that task t finds this condition shut. Worker w is there, with one slot. */
const SHUT: Readonly<Record<WhyCode, Shut>> = {
  ended: { story: (world) => [world.submit("t"), world.finish("t")] },
  running: { story: (world) => world.submit("t") },
  approval: { story: (world) => world.submit("t", { approval: { question: "ship it?", timeoutMs: null } }) },
  children: {
    story: (world) => {
      world.submit("t", { wait: "children" });
      world.start("t");
      world.must({
        type: "submit-task",
        submission: { ...PLAIN, id: taskId("child"), parent: taskId("t") },
        ofRunning: 1,
      });
      world.finish("t");
    },
  },
  "fleet-paused": { story: (world) => [pause(world, "fleet", ""), world.submit("t")] },
  "project-paused": { story: (world) => [world.project("p"), pause(world, "project", "p"), world.submit("t")] },
  "plan-paused": {
    story: (world) => {
      world.putPlan("p", ["t"]);
      world.must({ type: "pause-plan", plan: "p", paused: true });
      world.submit("t", {}, groupOfPlan("p"));
    },
  },
  "task-paused": {
    story: (world) => [world.submit("first"), world.submit("t"), pause(world, "task", "t")],
  },
  dependency: { story: (world) => [world.submit("first"), world.submit("t", { needs: ["first"] })] },
  artifact: { story: (world) => world.submit("t", { artifact: "file" }) },
  "not-before": { story: (world) => world.submit("t", { notBefore: instant(5000) }) },
  "backing-off": { story: (world) => [world.submit("t"), world.finish("t", { outcome: "failed" })] },
  stopping: {
    story: (world) => {
      world.submit("t");
      world.start("t");
      world.cancel("t");
      world.must({ type: "retry-task", task: taskId("t") });
    },
  },
  deadline: {
    story: (world) => {
      world.submit("first");
      world.submit("t", { deadline: instant(5000) });
      world.turn(6000);
    },
  },
  "fleet-in-flight": { config: { scheduler: { maxInFlight: 1 } }, story: afterAnother({}) },
  "fleet-budget": { config: { budget: { limit: 100 } }, story: afterAnother({ estimatedTokens: 80 }) },
  "project-in-flight": { config: { projects: { default: { maxConcurrent: 1 } } }, story: afterAnother({}) },
  "project-budget": {
    config: { projects: { default: { budget: { limit: 100 } } } },
    story: afterAnother({ estimatedTokens: 80 }),
  },
  "express-lane": {
    config: { projects: { default: { maxPriority: -300 } } },
    story: (world) => {
      world.trySubmit("t", { project: "p" });
      world.trySubmit("urgent", { project: "q", priority: -300 });
    },
  },
  "project-turn": {
    story: (world) => {
      world.trySubmit("first", { project: "p" });
      world.trySubmit("t", { project: "q" });
    },
  },
  "agent-in-flight": { config: { scheduler: { maxPerAgentInFlight: 1 } }, story: afterAnother({}) },
  "agent-turn": {
    story: (world) => {
      world.trySubmit("first", { agent: "a" });
      world.trySubmit("t", { agent: "b" });
    },
  },
  position: { story: (world) => [world.submit("first"), world.submit("second"), world.submit("t")] },
  "type-limit": { config: { scheduler: { perType: { code: 1 } } }, story: afterAnother({ type: "code" }) },
  lock: { story: afterAnother({ locks: ["repo"] }) },
  provider: { story: (world) => [world.throttle("g", 5000), world.submit("t", { provider: "g" })] },
  permit: {
    story: (world) => {
      world.throttle("g", 5000);
      world.submit("t");
      world.start("t");
      world.askPermit("c1", "g", "t", 10);
    },
  },
  "no-workers": { story: (world) => [world.leave("w"), world.submit("t")] },
  "never-fits": { story: (world) => world.submit("t", { capabilities: ["gpu"] }) },
  "worker-room": {
    story: (world) => {
      world.change("w", { capabilities: ["tab:7"] });
      afterAnother({ tab: "7", capabilities: ["tab:7"] })(world);
    },
  },
  affinity: {
    config: { scheduler: { placement: { strategy: "affinity", affinityWait: "2m" } } },
    story: (world) => {
      world.submit("first");
      world.finish("first");
      world.submit("second");
      world.join("other");
      world.submit("t", { needs: ["first"] });
    },
  },
  /** A large task waits past starvationAfter and has the only worker kept free for it; a small one would fit there. */
  hold: {
    story: (world) => {
      world.change("w", { slots: 9, cpu: 4000 });
      world.submit("small", { cpu: 1000 });
      world.submit("large", { cpu: 4000 });
      world.wait(60 * MINUTE);
      world.submit("t", { project: "q", agent: "b" });
    },
  },
  tab: { story: (world) => world.submit("t", { tab: "7", capabilities: ["tab:7"] }) },
};

const pause = (world: World, scope: "fleet" | "project" | "task", id: string) =>
  world.must({ type: "set-paused", scope, id, paused: true });

/** Another of the same kind runs already. */
function afterAnother(fields: Parameters<World["submit"]>[1]): (world: World) => void {
  return (world) => {
    world.submit("first", fields);
    world.submit("t", fields);
  };
}

function askedAfter({ config, story }: Shut): Why["conditions"] {
  const world = createWorld(config);
  world.join("w");
  story(world);
  const answer = why(world.state, taskId("t"), instant(world.now()));
  assert.ok(answer.ok);
  return answer.value.conditions;
}

/** A task that has ended or runs is told so, and nothing else: there is no such condition to be open. */
const ONLY_SHUT: readonly WhyCode[] = ["ended", "running", "approval", "children", "permit"];

for (const [code, shut] of Object.entries(SHUT))
  test(`${code} is seen shut`, () => {
    const conditions = askedAfter(shut);
    const seen = conditions.filter(({ ok }) => !ok).map((condition) => condition.code);
    assert.ok(seen.includes(code as WhyCode), `its history shuts only ${seen.join(", ") || "nothing"}`);
  });

test("every condition is seen open", () => {
  const open = new Set(
    Object.values(SHUT)
      .flatMap((shut) => askedAfter(shut).filter(({ ok }) => ok))
      .map(({ code }) => code),
  );
  const never = Object.keys(SHUT).filter((code) => !open.has(code as WhyCode));
  assert.deepEqual(never, ONLY_SHUT, `never seen open: ${never.join(", ")}`);
});

test("of a task that runs it says which of its calls wait for a permit, how far in line and until when", () => {
  const world = createWorld({ gates: { g: { maxConcurrent: 1 } } });
  world.join("w");
  world.submit("t");
  world.start("t");
  const asked = (): Why => {
    const answer = why(world.state, taskId("t"), instant(world.now()));
    assert.ok(answer.ok);
    return answer.value;
  };
  const running = "The task is running already, attempt 1 on worker w.";
  for (const permit of ["out", "next", "last"]) world.askPermit(permit, "g", "t", 10);
  assert.deepEqual(
    asked().conditions.map(({ code, numbers }) => [code, numbers.permit, numbers.position]),
    [
      ["running", undefined, undefined],
      ["permit", "next", 1],
      ["permit", "last", 2],
    ],
  );
  assert.equal(asked().summary, `${running} A call of it waits for a permit of gate g; it is next.`);
  world.throttle("g", 5000);
  assert.match(asked().summary, /waits for a permit of gate g, which lets nothing out until \d{4}-.*; it is next\.$/);
});

test("of a task whose estimate alone exceeds a budget it says that it never starts, however busy all else is", () => {
  for (const [config, whose] of [
    [{ budget: { limit: 100 } }, "the fleet"],
    [{ projects: { default: { budget: { limit: 100 } } } }, "project default"],
  ] as const) {
    const world = createWorld({ ...config, scheduler: { maxInFlight: 1 } });
    world.join("w");
    world.submit("first", { project: "default", estimatedTokens: 60 });
    world.finish("first", { tokens: 60 });
    world.submit("second", { project: "default", estimatedTokens: 1 });
    world.submit("t", { project: "default", estimatedTokens: 101 });
    const answer = why(world.state, taskId("t"), instant(world.now()));
    assert.ok(answer.ok);
    const { summary, conditions, earliestStart } = answer.value;
    const said = `its estimate of 101 tokens alone exceeds ${whose}'s budget of 100: it never starts under this limit`;
    assert.ok(summary.startsWith(`It waits because ${said}`), summary);
    const shut = conditions.find(({ code, ok }) => code.endsWith("-budget") && !ok);
    assert.deepEqual([shut?.detail, shut?.numbers.nextExpiry, earliestStart], [said, null, null]);
  }
});
