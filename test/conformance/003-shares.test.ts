/**
 * Seed 003, "Scheduler and Budget Specification": the round on a snapshot, shares, budgets, windows.
 *
 * §2 through `planRound`, §3 through the pieces, §4 through `createWindow` (its edges are in
 * src/core/gate/usage-window.test.ts). `letter` is the policy that follows the seed to the letter; the default takes
 * its traps
 * (Q…) out. Where a trap concerns the running scheduler too, a story shows that as well.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createWindow,
  deficits,
  globalExhausted,
  InputError,
  limitWindow,
  planRound,
  projectExhausted,
  type RoundPolicy,
  type RoundProject,
  type RoundSnapshot,
  type RoundTask,
  type RoundWorker,
  readConfig,
  targetRatios,
} from "../../src/core/index.ts";

const letter: RoundPolicy = { charge: "none", guarantee: "completed" };
const project = (id: string, fields: Partial<RoundProject> = {}): RoundProject => ({
  ...{ id, status: "active", weight: 1, maxConcurrent: 10 },
  ...fields,
});
const task = (id: string, of = "A", fields: Partial<RoundTask> = {}): RoundTask => ({
  ...{ id, project: of, status: "queued" },
  ...fields,
});
const worker = (id: string, fields: Partial<RoundWorker> = {}): RoundWorker => ({ id, status: "idle", ...fields });
const many = <Row>(count: number, make: (index: number) => Row): Row[] =>
  Array.from({ length: count }, (_, i) => make(i));
const workers = (count: number): RoundWorker[] => many(count, (index) => worker(`w${index}`));
const tasks = (of: string, count: number, fields: Partial<RoundTask> = {}): RoundTask[] =>
  many(count, (index) => task(`${of}${index}`, of, fields));

const snapshot = (fields: Partial<RoundSnapshot> = {}): RoundSnapshot => ({
  ...{ now: 0, projects: [project("A"), project("B")], tasks: [], workers: workers(1) },
  ...{ usage: {}, active: {}, started: {}, completed: {} },
  ...fields,
});
const plan = (fields: Partial<RoundSnapshot>, policy: RoundPolicy = letter): string[] =>
  planRound(snapshot(fields), policy).map((start) => `${start.task}@${start.worker}`);
const shares = (fields: Partial<RoundSnapshot>, policy?: RoundPolicy): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const start of planRound(snapshot(fields), policy)) counts[start.project] = (counts[start.project] ?? 0) + 1;
  return counts;
};

const two = [...tasks("A", 2), ...tasks("B", 2)];
const rounds: readonly { name: string; of: Partial<RoundSnapshot>; gives: string[]; policy?: RoundPolicy }[] = [
  { name: "2.1 nothing known, nothing planned", of: { projects: [], workers: [] }, gives: [] },
  {
    name: "2.3 one worker and one task appear at most once",
    of: { tasks: tasks("A", 3), workers: workers(2) },
    gives: ["A0@w0", "A1@w1"],
  },
  {
    name: "2.4 step 1: a global budget that is used up stops everything",
    of: { tasks: two, globalBudget: 10, globalUsed: 10 },
    gives: [],
  },
  {
    name: "2.4 step 1: one token below it does not",
    of: { tasks: two, globalBudget: 10, globalUsed: 9 },
    gives: ["A0@w0"],
  },
  {
    name: "2.4 step 1: no global budget never stops",
    of: { tasks: two, globalBudget: null, globalUsed: 1e9 },
    gives: ["A0@w0"],
  },
  {
    name: "2.4 step 2: no idle worker, no assignment",
    of: { tasks: two, workers: [worker("w", { status: "busy" })] },
    gives: [],
  },
  {
    name: "2.4 step 3: only ready tasks",
    of: { tasks: [task("x", "A", { status: "running" }), task("y")] },
    gives: ["y@w0"],
  },
  {
    name: "2.4 step 4: the lower priority value first",
    of: { tasks: [task("x", "A", { priority: 5 }), task("y", "A", { priority: -5 })] },
    gives: ["y@w0"],
  },
  {
    name: "2.4 step 5: a paused project is not eligible",
    of: { projects: [project("A", { status: "paused" }), project("B")], tasks: two },
    gives: ["B0@w0"],
  },
  {
    name: "2.4 step 7: workers in list order",
    of: { tasks: tasks("A", 2), workers: [worker("z"), worker("a")] },
    gives: ["A0@z", "A1@a"],
  },
  {
    name: "2.5 a project with nothing completed in the window goes first",
    of: { tasks: two, usage: { A: 1, B: 999 }, completed: { A: 1 } },
    gives: ["B0@w0"],
  },
  {
    name: "2.5 in one tier the project furthest below its target goes first",
    of: { tasks: two, usage: { A: 60, B: 40 }, completed: { A: 1, B: 1 } },
    gives: ["B0@w0"],
  },
  {
    name: "2.5 target is weight ÷ total weight",
    of: {
      projects: [project("A", { weight: 2 }), project("B")],
      tasks: two,
      usage: { A: 60, B: 40 },
      completed: { A: 1, B: 1 },
    },
    gives: ["A0@w0"],
  },
  {
    name: "2.5 with no tokens used every share is 0, so the greater weight goes first",
    of: { projects: [project("A"), project("B", { weight: 2 })], tasks: two },
    gives: ["B0@w0"],
  },
  {
    name: "2.6 a project at its budget is skipped",
    of: { projects: [project("A", { budgetLimit: 5 }), project("B")], tasks: two, usage: { A: 5 } },
    gives: ["B0@w0"],
  },
  {
    name: "2.6 one token below its budget it is not",
    of: { projects: [project("A", { budgetLimit: 5 }), project("B")], tasks: two, usage: { A: 4, B: 9 } },
    gives: ["A0@w0"],
  },
  {
    name: "2.6 a project at max_concurrent is skipped",
    of: { projects: [project("A", { maxConcurrent: 2 }), project("B")], tasks: two, active: { A: 2 } },
    gives: ["B0@w0"],
  },
  {
    name: "2.6 this round's starts count for max_concurrent",
    of: {
      projects: [project("A", { maxConcurrent: 1 }), project("B")],
      tasks: two,
      workers: workers(3),
      completed: { B: 1 },
    },
    gives: ["A0@w0", "B0@w1", "B1@w2"],
  },
  {
    name: "2.7 a project whose tasks are all assigned is skipped",
    of: { tasks: [task("A0"), ...tasks("B", 1)], workers: workers(3) },
    gives: ["A0@w0", "B0@w1"],
  },
  {
    name: "5 equal sort keys keep the order of the list",
    of: { projects: [project("B"), project("A")], tasks: two },
    gives: ["B0@w0"],
  },
];
for (const { name, of, gives, policy } of rounds) test(name, () => assert.deepEqual(plan(of, policy), gives));

test("2.1 a round changes nothing it was given, and is the same every time", () => {
  const given = snapshot({ tasks: two, workers: workers(3), active: { A: 1 }, usage: { A: 5 } });
  const before = structuredClone(given);
  const first = planRound(Object.freeze(given));
  assert.deepEqual(given, before);
  assert.deepEqual(planRound(given), first);
});

test("2.3 a row names task, worker, project and the reason", () => {
  assert.deepEqual(planRound(snapshot({ tasks: [task("x", "B")], workers: workers(1) })), [
    { task: "x", worker: "w0", project: "B", reason: { type: "only-worker-available" } },
  ]);
  const [row] = planRound(snapshot({ tasks: [task("x")], workers: workers(2) }));
  assert.deepEqual(row?.reason, { type: "least-loaded", queueDepth: 0 });
});

test("3.2 target ratios: 2 and 1 give 0.667 and 0.333, and sum to 1", () => {
  const ratios = targetRatios({ A: 2, B: 1 });
  assert.deepEqual(ratios, { A: 2 / 3, B: 1 / 3 });
  assert.deepEqual(targetRatios({ A: 0, B: 0 }), {}, "all zero");
  assert.deepEqual(targetRatios({}), {});
});

test("3.3 deficits: positive is behind; with nothing used they are the targets", () => {
  assert.deepEqual(deficits({ A: 1, B: 1 }, { A: 75, B: 25 }), { A: -0.25, B: 0.25 });
  assert.deepEqual(deficits({ A: 3, B: 1 }, {}), { A: 0.75, B: 0.25 });
});

for (const [name, exhausted] of [
  ["3.4 global", globalExhausted],
  ["3.5 project", projectExhausted],
] as const)
  test(`${name} budget is exhausted from its limit on, and never without one`, () => {
    assert.deepEqual(
      [exhausted(10, 9), exhausted(10, 10), exhausted(10, 11), exhausted(null, 1e9)],
      [false, true, true, false],
    );
  });

test("4.2 window durations, and nothing else", () => {
  assert.deepEqual((["per_minute", "per_hour", "per_day"] as const).map(limitWindow), [60_000, 3_600_000, 86_400_000]);
  assert.throws(() => limitWindow("per_week" as "per_day"), /per_week/);
});

test("4.3–4.6 a fixed window: record, exceeded, seconds until reset, restart at the first use after expiry", () => {
  const window = createWindow({ kind: "fixed", max: 100, windowMs: 60_000 });
  assert.deepEqual([window.exceeded(0), window.untilReset(0)], [false, 0]);
  window.record(60, 1000);
  window.record(40, 2000);
  assert.deepEqual([window.exceeded(2000), window.untilReset(2000), window.used(2000)], [true, 59_000, 100]);
  assert.equal(window.exceeded(61_000), false);
  window.record(1, 90_000);
  assert.deepEqual([window.used(90_000), window.untilReset(90_000)], [1, 60_000]);
});

test("Q1 each start is charged before the next is chosen: idle workers do not all go to one project", () => {
  const given = { tasks: [...tasks("A", 9), ...tasks("B", 9)], workers: workers(6), started: { A: 1, B: 1 } };
  assert.deepEqual(shares(given), { A: 3, B: 3 });
  assert.deepEqual(shares({ ...given, usage: { B: 1 } }, letter), { A: 6 }, "the letter of the seed does");
});

test("Q1 unequal weights share one round by weight", () => {
  const projects = [project("A", { weight: 2 }), project("B")];
  assert.deepEqual(shares({ projects, tasks: [...tasks("A", 9), ...tasks("B", 9)], workers: workers(6) }), {
    A: 4,
    B: 2,
  });
});

test("Q2 the guarantee counts starts: a project with six running and none done does not keep winning", () => {
  const given = { tasks: two, started: { A: 6 }, usage: {} };
  assert.deepEqual(plan(given, {}), ["B0@w0"]);
  assert.deepEqual(plan(given, { guarantee: "completed" }), ["A0@w0"]);
});

test("Q3 shares and targets are over the same projects", () => {
  const projects = [project("A"), project("B"), project("idle", { weight: 8 })];
  const usage = { A: 60, B: 40, idle: 1_000_000 };
  assert.deepEqual(plan({ projects, tasks: two, usage, completed: { A: 1, B: 1 } }), ["B0@w0"]);
  assert.deepEqual(deficits({ A: 1, B: 1 }, usage), { A: 0.5 - 0.6, B: 0.5 - 0.4 });
});

for (const weight of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "1"])
  test(`Q4 a weight of ${String(weight)} (${typeof weight}) is refused by name`, () => {
    refuses({ projects: [project("A", { weight: weight as number })] }, "projects[0].weight");
    assert.equal(readConfig({ projects: { p: { weight } } }).ok, false);
  });

test("Q5 999 of 1000 used: one more may start, not four", () => {
  const projects = [project("A", { budgetLimit: 1000 })];
  const given = { projects, tasks: tasks("A", 4), workers: workers(4), usage: { A: 999 } };
  assert.deepEqual(plan(given, {}), ["A0@w0"]);
  assert.deepEqual(plan({ ...given, tasks: tasks("A", 4, { estimatedTokens: 2 }) }, {}), []);
  const fleet = { ...given, projects: [project("A")], globalBudget: 1000, globalUsed: 999 };
  assert.deepEqual(plan(fleet, {}), ["A0@w0"], "the global budget too");
});

test("Q5 the budget is judged on the task next in line, which nobody of its project overtakes", () => {
  const projects = [project("A", { budgetLimit: 100 }), project("B")];
  const big = [task("big", "A", { estimatedTokens: 101 }), task("small", "A", { estimatedTokens: 1, priority: 1 })];
  assert.deepEqual(plan({ projects, tasks: [...big, task("b", "B")], workers: workers(3) }, {}), ["b@w0"]);
});

test("Q5 one that expects no tokens passes a task that waits for its budget, while a token is left", () => {
  const given = {
    projects: [project("A", { budgetLimit: 100 })],
    tasks: [task("big", "A", { estimatedTokens: 90 }), task("free", "A", { estimatedTokens: 0 }), task("plain", "A")],
    workers: workers(3),
  };
  assert.deepEqual(plan({ ...given, usage: { A: 98 } }, {}), ["free@w0", "plain@w1"]);
  assert.deepEqual(plan({ ...given, usage: { A: 99 } }, {}), ["free@w0"]);
  assert.deepEqual(plan({ ...given, usage: { A: 100 } }, {}), []);
});

test("Q6 first in, first out by runnable time, then by list order, never by id", () => {
  const given = [
    task("a", "A", { runnableAt: 9 }),
    task("z", "A", { runnableAt: 1 }),
    task("m", "A", { runnableAt: 9 }),
  ];
  assert.deepEqual(plan({ tasks: given, workers: workers(3), now: 10 }), ["z@w0", "a@w1", "m@w2"]);
});

test("Q8 a per-type limit counts what runs and what this round starts", () => {
  const running = task("r", "A", { status: "running", type: "plan" });
  const given = {
    tasks: [running, ...tasks("A", 3, { type: "plan" }), task("c", "A", { type: "code" })],
    workers: workers(5),
  };
  assert.deepEqual(plan(given, { perType: { plan: 2 } }), ["A0@w0", "c@w1"]);
});

test("Q9 nothing reads a clock: the same snapshot and the same `now` give the same plan and the same window", () => {
  const given = snapshot({ tasks: two, now: 5 });
  assert.deepEqual(planRound(given), planRound(given));
  const window = createWindow({ kind: "sliding", max: 1, windowMs: 10 });
  window.record(1, 0);
  assert.deepEqual([window.exceeded(9), window.exceeded(10), window.exceeded(9)], [true, false, true]);
});

test("Q14 the first worker does not take the only task a later one could run", () => {
  const given = [worker("rare", { capabilities: ["gpu"] }), worker("plain")];
  const both = [task("any"), task("gpu", "A", { capabilities: ["gpu"] })];
  assert.deepEqual(plan({ tasks: both, workers: given }, {}), ["any@plain", "gpu@rare"]);
});

test("Q14 a worker is spared for the task that has no other, though it is less loaded or offers no more", () => {
  const loaded = [worker("rare", { capabilities: ["gpu"] }), worker("plain", { slots: 4, inFlight: 2 })];
  const both = [task("any"), task("gpu", "A", { capabilities: ["gpu"] })];
  assert.deepEqual(plan({ tasks: both, workers: loaded }, {}), ["any@plain", "gpu@rare"]);
  const equal = [worker("ab", { capabilities: ["a", "b"] }), worker("ac", { capabilities: ["a", "c"] })];
  const needs = [task("a", "A", { capabilities: ["a"] }), task("b", "A", { capabilities: ["b"] })];
  assert.deepEqual(plan({ tasks: needs, workers: equal }, {}), ["a@ac", "b@ab"]);
});

test("Q16 a project that cannot be placed does not bend its neighbours' shares", () => {
  const wide = { maxConcurrent: 50 };
  const projects = [project("A", { weight: 9, ...wide }), project("B", wide), project("stuck", { weight: 90 })];
  const stuck = tasks("stuck", 3, { capabilities: ["nobody-has-this"] });
  const given = { projects, tasks: [...tasks("A", 30), ...tasks("B", 30), ...stuck], workers: workers(20) };
  assert.deepEqual(shares(given), { A: 18, B: 2 });
});

for (const type of ["None", "null", ""])
  test(`Q17 the word ${JSON.stringify(type)} as a type is refused, never matched`, () =>
    refuses({ tasks: [task("t", "A", { type })] }, "tasks[0].type"));

const refused: readonly [field: string, of: object][] = [
  ["projects[1].id", { projects: [project("A"), project("A")] }],
  ["tasks[1].id", { tasks: [task("t"), task("t")] }],
  ["workers[1].id", { workers: [worker("w"), worker("w")] }],
  ["tasks[0].project", { tasks: [task("t", "nobody")] }],
  ["projects[0].maxConcurrent", { projects: [project("A", { maxConcurrent: -1 })] }],
  ["projects[0].budgetLimit", { projects: [project("A", { budgetLimit: Number.NaN })] }],
  ["projects[0].status", { projects: [project("A", { status: "ACTIVE" as "active" })] }],
  ["tasks[0].estimatedTokens", { tasks: [task("t", "A", { estimatedTokens: -5 })] }],
  ["tasks[0].priority", { tasks: [task("t", "A", { priority: 1.5 })] }],
  ["workers[0].status", { workers: [worker("w", { status: "asleep" as "idle" })] }],
  ["workers[0].slots", { workers: [worker("w", { slots: -1 })] }],
  ["usage.A", { usage: { A: -1 } }],
  ["active", { active: 3 }],
  ["globalUsed", { globalUsed: Number.NaN }],
  ["now", { now: "today" }],
  ["tasks", { tasks: null }],
];
for (const [field, of] of refused)
  test(`a snapshot with a bad ${field} is refused by that name`, () => refuses(of, field));

test("a policy with an unknown field or value is refused by name", () => {
  for (const [policy, field] of [
    [{ chrage: "none" }, "policy.chrage"],
    [{ charge: "some" }, "policy.charge"],
  ] as const)
    assert.throws(() => planRound(snapshot(), policy as object), named(field));
});

for (const [name, call, field] of [
  ["targetRatios", () => targetRatios({ A: Number.NaN }), "weights.A"],
  ["deficits", () => deficits({ A: 1 }, { A: -1 }), "usage.A"],
  ["globalExhausted", () => globalExhausted(-1, 0), "budget"],
  ["projectExhausted", () => projectExhausted(1, Number.NaN), "used"],
] as const)
  test(`${name} refuses a bad ${field} by name`, () => assert.throws(call, named(field)));

function named(field: string): (error: unknown) => boolean {
  return (error) => error instanceof InputError && "field" in error.refusal && error.refusal.field === field;
}
function refuses(of: object, field: string): void {
  assert.throws(() => planRound(snapshot(of as Partial<RoundSnapshot>)), named(field));
}
