/**
 * `why` is exact: it agrees with the pump on every state of histories nobody thought of.
 *
 * Before each step of the pump every task is asked why it has not started. If the pump then starts one, that one
 * had every condition met and no other had; if the pump has nothing left to do, every waiting task has one unmet.
 * Few ids, small limits and short waits on purpose: that is where conditions are unmet. That each of them is met and
 * unmet somewhere is said by why-conditions.test.ts, without any luck.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Command,
  decide,
  gateId,
  instant,
  nextInstant,
  projectId,
  STRATEGIES,
  taskId,
  type Why,
  why,
  workerId,
} from "../../src/core/index.ts";
import type { Takes } from "../../src/core/model/events.ts";
import { configOf, createWorld, submission, type World, workerSettings } from "../kits/conformance/world.ts";

const RUNS = process.env.DROVER_QUICK === "1" ? 100 : 3000;
const TASKS = Array.from({ length: 20 }, (_, index) => `t${index}`);
const WORKERS = ["w0", "w1", "w2"] as const;
const PROJECTS = ["p0", "p1", "p2"] as const;
const pick = <Value>(...values: readonly Value[]): fc.Arbitrary<Value> => fc.constantFrom(...values);

type Step = { readonly pauseMs: number; readonly act: (world: World) => Command | null };

const submit: fc.Arbitrary<Step["act"]> = fc
  .record({
    id: pick(...TASKS),
    project: pick(...PROJECTS),
    agent: pick("a", "b"),
    action: pick("", "exec"),
    type: pick("code", "plan", "other"),
    capabilities: pick<string[]>([], [], ["gpu"], ["gpu", "ssd"]),
    cpu: pick(0, 0, 1000, 3000),
    locks: pick<string[]>([], [], ["repo:x"], ["repo:x", "repo:y"]),
    provider: pick(null, null, "anthropic/default"),
    priority: pick(null, null, -300, -100, 100),
    estimatedTokens: pick(null, 0, 10, 400, 5000),
    needs: pick<string[]>([], [], [], [], ["t0"], ["t0", "t1"]),
    parent: pick(null, null, null, null, "t0"),
    artifact: pick(null, null, null, null, null, "file"),
    tab: pick(null, null, null, null, null, "7"),
    after: pick(0, 0, 0, 5000),
    within: pick(0, 0, 20_000),
  })
  .map(({ id, tab, capabilities, after, within, ...fields }) => (world) => ({
    type: "submit-task",
    submission: submission(id, {
      ...fields,
      tab,
      capabilities: tab === null ? capabilities : [...capabilities, `tab:${tab}`],
      notBefore: after === 0 ? null : instant(world.now() + after),
      deadline: within === 0 ? null : instant(world.now() + within),
    }),
  }));

const settings = fc
  .record({
    slots: pick(1, 2, 3),
    capabilities: pick<string[]>([], ["gpu"], ["gpu", "ssd", "tab:7"]),
    cpu: pick(null, 1500, 4000),
    zone: pick(null, "eu"),
    status: pick("ready" as const, "ready" as const, "ready" as const, "overloaded" as const, "draining" as const),
  })
  .map(workerSettings);

const takes: fc.Arbitrary<Takes | null> = pick(
  null,
  null,
  null,
  { actions: ["ex*"], types: null, projects: null },
  { actions: null, types: ["code"], projects: null },
  { actions: null, types: null, projects: ["p1"] },
);

const config = fc
  .record({
    maxInFlight: pick(1, 3, 50),
    maxPerAgentInFlight: pick(1, 2, 10),
    rule: pick("level", "deficit"),
    agents: pick("fair", "none"),
    strategy: pick(...STRATEGIES),
    preferLocality: fc.boolean(),
    maxQueuePerWorker: pick(0, 0, 1),
    starvationAfter: pick("10s", "60m"),
    budget: pick(null, null, 6000),
    critical: pick(1, 5),
  })
  .map((knobs) => ({
    scheduler: {
      ...{ maxInFlight: knobs.maxInFlight, maxPerAgentInFlight: knobs.maxPerAgentInFlight },
      perType: { plan: 1 },
      critical: { maxInFlight: knobs.critical },
      priority: { starvationAfter: knobs.starvationAfter },
      fairness: { rule: knobs.rule, agents: knobs.agents },
      placement: {
        ...{ strategy: knobs.strategy, preferLocality: knobs.preferLocality, affinityWait: "8s" },
        maxQueuePerWorker: knobs.maxQueuePerWorker,
      },
    },
    budget: { limit: knobs.budget, window: "20s" },
    projects: { p1: { maxConcurrent: 1, maxPriority: -300 }, p2: { weight: 3, budget: { limit: 900, window: "15s" } } },
  }));

const ofAttempt = (world: World, id: string): number => world.state.tasks.get(taskId(id))?.attempts ?? 0;

const command: fc.Arbitrary<Step["act"]> = fc.oneof(
  { weight: 8, arbitrary: submit },
  {
    weight: 2,
    arbitrary: fc.tuple(pick(...WORKERS), settings, takes).map(
      ([id, given, taken]) =>
        (): Command => ({
          ...{ type: "join-worker", worker: workerId(id), kind: "pull", session: "s", settings: given, takes: taken },
        }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(pick(...WORKERS), settings).map(
      ([id, given]) =>
        (): Command => ({
          ...{ type: "change-worker", worker: workerId(id), settings: given },
        }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(pick(...WORKERS), fc.boolean()).map(
      ([id, lost]) =>
        (): Command => ({
          ...{ type: "leave-worker", worker: workerId(id), lost },
        }),
    ),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(fc.nat(9), pick("done" as const, "done" as const, "failed" as const, "requeue" as const), fc.nat(600))
      .map(([place, outcome, tokens]) => (world: World): Command | null => {
        const live = [...world.state.tasks.values()].filter((task) => task.attempt !== null);
        const task = live[place % Math.max(1, live.length)];
        if (task === undefined) return null;
        const report = { task: task.id, attempt: task.attempts, outcome, tokens, error: null, retryAfterMs: null };
        const rest = { resultHash: null, resultSize: 0, permanent: false };
        return { type: "finish-attempt", report: { ...report, ...rest } };
      }),
  },
  {
    weight: 2,
    arbitrary: pick(...TASKS).map(
      (id) =>
        (world: World): Command => ({
          ...{ type: "start-attempt", task: taskId(id), attempt: ofAttempt(world, id) },
        }),
    ),
  },
  { weight: 1, arbitrary: pick(...TASKS).map((id) => (): Command => ({ type: "retry-task", task: taskId(id) })) },
  {
    weight: 1,
    arbitrary: pick(...TASKS).map((id) => (): Command => ({ type: "cancel-task", task: taskId(id), reason: null })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(pick("fleet" as const, "project" as const, "task" as const), pick("p0", "t0", "t1"), fc.boolean())
      .map(
        ([scope, id, paused]) =>
          (): Command => ({ type: "set-paused", scope, id, paused }),
      ),
  },
  { weight: 1, arbitrary: fc.constant((): Command => ({ type: "artifact-ready", artifact: "file" })) },
  {
    weight: 1,
    arbitrary: fc.constant(
      (): Command => ({
        ...{ type: "throttle-gate", gate: gateId("anthropic/default"), permit: null, retryAfterMs: 3000 },
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constant((): Command => ({ type: "reset-gate", gate: gateId("anthropic/default") })),
  },
  { weight: 1, arbitrary: config.map((given) => (): Command => ({ type: "set-config", config: configOf(given) })) },
  {
    weight: 1,
    arbitrary: fc.tuple(pick(...PROJECTS), pick(null, 700)).map(
      ([id, limit]) =>
        (world: World): Command => ({
          type: "put-project",
          project: projectId(id),
          settings: { ...world.state.config.projects.default, budget: { limit, window: 10_000 } },
        }),
    ),
  },
);

const history = fc.array(fc.record({ act: command, pauseMs: pick(0, 0, 10, 1500, 9000) }), {
  ...{ minLength: 8, maxLength: 60, size: "max" },
});

/** A world with a worker in it; what the history does to it is its own affair. */
function newWorld(): World {
  const world = createWorld({ projects: { p1: { maxPriority: -300 } } });
  world.join("w0", { slots: 2, cpu: 4000, capabilities: ["gpu"] });
  return world;
}

function answers(world: World): Why[] {
  const asked: Why[] = [];
  for (const task of world.state.tasks.values()) {
    const answer = why(world.state, task.id, instant(world.now()));
    assert.ok(answer.ok && answer.value.conditions.length > 0 && answer.value.summary.length > 0);
    if (task.phase === "waiting" || task.phase === "queued") asked.push(answer.value);
  }
  return asked;
}

const isOpen = (answer: Why): boolean => answer.conditions.every((gate) => gate.ok);

/** Steps the pump to rest and holds every step against what `why` said just before it. */
function pumpAndCompare(world: World): number {
  let starts = 0;
  for (let turns = 0; turns < 1000; turns++) {
    const { byKey, idle } = world.state.shapes;
    const before = [byKey.size, idle];
    const asked = answers(world);
    assert.deepEqual([byKey.size, world.state.shapes.idle], before, "asking leaves no mark");
    const decided = decide(world.state, { type: "pump" }, instant(world.now()));
    assert.ok(decided.ok);
    const [event] = decided.value.events;
    if (event?.kind === "task-assigned") {
      starts++;
      assert.deepEqual(
        asked.filter(isOpen).map((answer) => answer.task),
        [event.task],
      );
      const open = asked.find((answer) => answer.task === event.task);
      assert.match(open?.summary ?? "", /starts with the next pump/);
      assert.equal(open?.earliestStart, world.now());
    } else if (event === undefined || event.kind === "hold-placed" || event.kind === "permit-granted") {
      assert.deepEqual(asked.filter(isOpen), [], "nothing that could start is left waiting");
    }
    if (event === undefined) return starts;
    world.tryTo({ type: "pump" });
  }
  throw new Error("the pump never comes to rest");
}

test("a task has every condition open exactly when the pump starts it next", () => {
  let starts = 0;
  fc.assert(
    fc.property(history, (steps) => {
      const world = newWorld();
      for (const { act, pauseMs } of steps) {
        const asked = act(world);
        if (asked !== null) world.tryTo(asked);
        starts += pumpAndCompare(world);
        world.turn(pauseMs);
        starts += pumpAndCompare(world);
      }
    }),
    { numRuns: RUNS },
  );
  assert.ok(starts > RUNS, `only ${starts} starts were compared`);
});

test("when only the clock is in the way, the instant lies ahead, a gate names it, and the alarm rings by then", () => {
  fc.assert(
    fc.property(history, (steps) => {
      const world = newWorld();
      for (const { act } of steps) {
        const asked = act(world);
        if (asked !== null) world.tryTo(asked);
        world.pump();
      }
      const timed = answers(world).filter((answer) => answer.earliestStart !== null);
      for (const answer of timed) {
        const at = answer.earliestStart as number;
        assert.ok(at > world.now(), "an instant in the past opens nothing");
        const alarm = nextInstant(world.state, instant(world.now()));
        assert.ok(alarm !== null && alarm <= at, `the alarm (${alarm}) rings by then (${at})`);
        assert.ok(answer.conditions.some((gate) => !gate.ok && gate.numbers.until === answer.earliestStart));
      }
    }),
    { numRuns: RUNS },
  );
});

test("that no worker fits is said before whose turn it is; that somebody paused it, before both", () => {
  const world = createWorld();
  const asks = (task: string): Why => {
    const answer = why(world.state, taskId(task), instant(world.now()));
    assert.ok(answer.ok);
    return answer.value;
  };
  const shutIn = ({ conditions }: Why): string[] => conditions.filter(({ ok }) => !ok).map(({ code }) => code);
  world.trySubmit("t0");
  world.trySubmit("t1", { capabilities: ["gpu"] });
  assert.match(asks("t1").summary, /^It waits because no worker is known; start one/);
  const settings = workerSettings();
  world.tryTo({ type: "join-worker", worker: workerId("w"), kind: "pull", session: "s", settings });
  assert.deepEqual(shutIn(asks("t1")), ["position", "never-fits", "worker-room"]);
  assert.match(
    asks("t1").summary,
    /^It waits because no worker here could ever run it: it needs gpu.*2 more conditions\)\.$/,
  );
  world.tryTo({ type: "set-paused", scope: "fleet", id: "", paused: true });
  assert.match(asks("t1").summary, /^It waits because the whole fleet is paused/);
});
