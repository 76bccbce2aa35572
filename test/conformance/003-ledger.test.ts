/**
 * Seed 003 in the running scheduler: shares and budgets as a ledger over time, not as one round.
 *
 * What a snapshot cannot show: idleness banks nothing, deleting refunds nothing, reservations hold while tasks run, and
 * a task that waits is always told why. The deficit rule is the seed's own order, chosen by `fairness.rule`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gateId, instant, permitId, projectId, taskId, why } from "../../src/core/index.ts";
import { sharesOf } from "../../src/core/turn/fairness.ts";
import { fleetSpending, projectViews } from "../../src/engine/views/stats.ts";
import { createWorld, MINUTE, type World } from "../kits/conformance/world.ts";

const wide = { scheduler: { maxInFlight: 100_000, maxPerAgentInFlight: 100_000 } };

function backlog(world: World, project: string, count: number, estimatedTokens = 100): void {
  for (let index = 0; index < count; index++) world.submit(`${project}${index}`, { project, estimatedTokens });
}
const projectsOf = (starts: readonly { readonly task: string }[]): string =>
  starts.map((start) => start.task.replace(/\d+$/, "")).join("");
const count = (text: string, letter: string): number => text.split(letter).length - 1;

test("Q1 a burst of free slots is shared, not given to one project", () => {
  const world = createWorld(wide);
  backlog(world, "A", 20);
  backlog(world, "B", 20);
  assert.equal(projectsOf(world.atOnce(() => world.join("w", { slots: 6 }))), "ABABAB");
});

test("2.5 shares follow weights: 2 to 1 over many starts", () => {
  const world = createWorld({ ...wide, projects: { A: { weight: 2 } } });
  backlog(world, "A", 60);
  backlog(world, "B", 60);
  const order = projectsOf(world.atOnce(() => world.join("w", { slots: 60 })));
  assert.deepEqual([count(order, "A"), count(order, "B")], [40, 20]);
});

test("2.5 unequal costs: shares are of tokens, not of tasks", () => {
  const world = createWorld(wide);
  backlog(world, "A", 60, 9000);
  backlog(world, "B", 60, 1000);
  const order = projectsOf(world.atOnce(() => world.join("w", { slots: 36 })));
  assert.deepEqual([count(order, "A"), count(order, "B")], [6, 30], "10 000 against 2000 a start");
});

test("2.5 the deficit rule: a project with nothing started in the window first, then share minus target", () => {
  const world = createWorld({ ...wide, scheduler: { ...wide.scheduler, fairness: { rule: "deficit" } } });
  backlog(world, "A", 9);
  world.join("w", { slots: 3 });
  backlog(world, "B", 9);
  const order = projectsOf(world.atOnce(() => world.change("w", { slots: 9 })));
  assert.equal(order, "BBBABA", "B has its guarantee and its share to catch up on");
});

test("2.5 the deficit rule puts right what was charged too much as well as what was charged too little", () => {
  const world = createWorld({ ...wide, scheduler: { ...wide.scheduler, fairness: { rule: "deficit", startCost: 0 } } });
  world.join("w");
  world.submit("A0", { project: "A", estimatedTokens: 9000 });
  world.submit("B0", { project: "B", estimatedTokens: 1000 });
  world.finish("A0", { tokens: 100 });
  world.finish("B0", { tokens: 1000 });
  const shares = sharesOf([...world.state.projects.values()], world.now());
  assert.deepEqual(
    shares.map(({ share }) => share),
    [100 / 1100, 1000 / 1100],
  );
  world.atOnce(() => {
    world.submit("B1", { project: "B", estimatedTokens: 100 });
    world.submit("A1", { project: "A", estimatedTokens: 100 });
  });
  assert.equal(running(world), "A1", "A has used a tenth of what B has");
});

for (const rule of ["level", "deficit"]) {
  test(`2.5 calls of no task count in their project's share, by the rule of ${rule}`, () => {
    const world = createWorld({ ...wide, scheduler: { ...wide.scheduler, fairness: { rule } } });
    world.join("w");
    for (const project of ["A", "B"]) {
      world.submit(`${project}0`, { project, estimatedTokens: 100 });
      world.finish(`${project}0`, { tokens: 100 });
    }
    const call = { task: null, attempt: null, project: projectId("A"), class: null, tokens: 5, askedAt: null };
    world.must({ type: "ask-permit", permit: permitId("p"), gate: gateId("llm"), ...call });
    world.must({ type: "settle-permit", permit: permitId("p"), ok: true, tokens: 900 });
    const [a, b] = projectViews(world.state, world.now());
    assert.deepEqual([a?.charged, a?.level, b?.charged, b?.level], [2000, 2000, 1100, 1100]);
    assert.deepEqual([a?.share, a?.target, a?.deficit], [2000 / 3100, 0.5, 0.5 - 2000 / 3100]);
    const order = world.atOnce(() => {
      for (const project of ["A", "B"]) world.submit(`${project}1`, { project, estimatedTokens: 100 });
    });
    assert.deepEqual(
      order.map(({ task }) => task),
      ["B1"],
    );
  });
}

test("CHARGED and LEVEL reconcile at every moment: before a start, while it runs, after it, known or not", () => {
  const world = createWorld({ projects: { A: { weight: 4 } } });
  world.join("w", { slots: 3 });
  const seen = (): unknown[] => {
    const [view] = projectViews(world.state, world.now());
    assert.equal(view?.level, (view?.charged ?? 0) / 4);
    return [view?.charged, view?.spent, view?.reserved];
  };
  world.submit("a", { project: "A", estimatedTokens: 300 });
  assert.deepEqual(seen(), [1300, 0, 300]);
  world.finish("a", { tokens: 100 });
  assert.deepEqual(seen(), [1100, 100, 0]);
  world.submit("b", { project: "A", type: "code" });
  assert.deepEqual(seen(), [12_100, 100, 0], "nothing is known of its kind: defaultTokens");
  world.finish("b", { tokens: null });
  assert.deepEqual(seen(), [12_100, 100, 0], "saying nothing is not the cheaper way");
  world.submit("c", { project: "A" });
  assert.deepEqual(seen(), [13_200, 100, 100], "the mean of its kind");
  const call = { task: null, attempt: null, project: projectId("A"), class: null, tokens: 70, askedAt: null };
  world.must({ type: "ask-permit", permit: permitId("p"), gate: gateId("llm"), ...call });
  assert.deepEqual(seen(), [13_200, 100, 170], "calls are shown as reserved");
  world.must({ type: "settle-permit", permit: permitId("p"), ok: true, tokens: 50 });
  assert.deepEqual(seen(), [13_250, 150, 100]);
});

test("2.6 a task that expects no tokens passes one that waits for its budget, and nobody else does", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000 } } } });
  world.submit("spent", { project: "A", type: "code", estimatedTokens: 600 });
  world.submit("dear", { project: "A", type: "code", estimatedTokens: 500 });
  world.submit("cheap", { project: "A", type: "code", estimatedTokens: 10 });
  world.submit("free", { project: "A", type: "shell" });
  world.submit("freed", { project: "A", agent: "other", type: "shell" });
  world.submit("learned", { project: "A", type: "code" });
  world.join("w", { slots: 9 });
  const phases = () => ["dear", "cheap", "free", "freed", "learned"].map(world.phaseOf);
  assert.deepEqual(phases(), ["queued", "queued", "assigned", "assigned", "assigned"]);
  world.finish("spent", { tokens: 600 });
  world.submit("later", { project: "A", type: "code" });
  assert.equal(world.phaseOf("later"), "queued", "its kind is known to use 600");
  world.finish("free", { tokens: 0 });
  world.submit("next", { project: "A", type: "shell" });
  assert.equal(world.phaseOf("next"), "assigned", "its kind is known to use none");
  assert.equal(world.state.tasks.get(taskId("next"))?.attempt?.charge, 1000, "and is charged for its start alone");
});

test("2.6 a budget that is used up holds up nobody who expects no tokens, until one of his kind uses some", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000 } } } });
  world.join("w", { slots: 9 });
  world.submit("spent", { project: "A", type: "code", estimatedTokens: 1000 });
  world.submit("free", { project: "A", type: "shell" });
  assert.equal(world.phaseOf("free"), "assigned");
  world.finish("free");
  assert.equal(world.state.spent.total(world.now()), 0, "it is not charged a token nobody used");
  world.submit("sly", { project: "A", type: "shell" });
  world.finish("sly", { tokens: 20 });
  world.submit("kin", { project: "A", type: "shell" });
  assert.equal(world.phaseOf("kin"), "queued", "its kind is known to use 20");
  world.finish("spent", { tokens: 5000 });
  world.submit("other", { project: "A", type: "make" });
  assert.equal(world.phaseOf("other"), "assigned", "however far the budget is overspent");
});

test("2.6 an estimate of 0 is a word: such a task expects no tokens, whatever its kind has used", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000 } } } });
  world.join("w", { slots: 9 });
  world.submit("sample", { project: "A", estimatedTokens: 600 });
  world.finish("sample", { tokens: 600 });
  world.submit("holder", { project: "A", estimatedTokens: 400 });
  world.change("w", { slots: 1 });
  world.submit("learned", { project: "A" });
  world.submit("some", { project: "A", estimatedTokens: 1 });
  world.submit("none", { project: "A", estimatedTokens: 0 });
  const answer = why(world.state, taskId("none"), instant(world.now()));
  const budget = answer.ok ? answer.value.conditions.find(({ code }) => code === "project-budget") : undefined;
  assert.deepEqual([budget?.ok, budget?.detail], [true, "none expects no tokens and asks no budget"]);
  world.change("w", { slots: 9 });
  assert.deepEqual(["learned", "some", "none"].map(world.phaseOf), ["queued", "queued", "assigned"]);
  assert.deepEqual(
    world.told("task-submitted").map(({ estimatedTokens }) => estimatedTokens),
    [600, 400, 0, 1, -1],
    "none given is a 0 in every log",
  );
  const { charge, reserve } = world.told("task-assigned").at(-1) ?? {};
  assert.deepEqual([charge, reserve], [1000, 0], "it is charged for its start alone");
  world.finish("none");
  assert.equal(world.state.spent.total(world.now()), 600, "and booked at nothing where nobody says what it used");
});

test("2.6 one with an estimate of 0 that uses tokens a budget does not have is stopped, and expects them then", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000 } } } });
  world.join("w", { slots: 9 });
  world.submit("holder", { project: "A", estimatedTokens: 1000 });
  world.submit("liar", { project: "A", estimatedTokens: 0 });
  assert.equal(world.taskOf("liar").attempt?.charge, 1000, "its start alone, though nothing is known of its kind");
  world.leave("w", true);
  assert.equal(world.taskOf("liar").estimate, -1, "a loss leaves its word as it is");
  world.join("v", { slots: 9 });
  world.must({ type: "report-usage", task: taskId("liar"), attempt: 2, tokens: 7 });
  world.finish("liar", { outcome: "failed", error: "stopped" });
  assert.deepEqual([world.taskOf("liar").estimate, world.taskOf("liar").losses], [7, 2]);
});

test("2.6 the same with the fleet's budget, by the deficit rule, and for one that has a hold", () => {
  const fairness = { rule: "deficit" };
  const world = createWorld({ budget: { limit: 1000 }, scheduler: { fairness } });
  world.join("w", { slots: 9, cpu: 4000 });
  world.submit("spent", { project: "A", type: "code", estimatedTokens: 1000 });
  world.submit("dear", { project: "A", type: "code", estimatedTokens: 10 });
  world.submit("free", { project: "B", type: "shell", cpu: 1000 });
  assert.deepEqual(["dear", "free"].map(world.phaseOf), ["queued", "assigned"]);
  world.submit("large", { project: "B", type: "shell", cpu: 4000 });
  world.wait(60 * MINUTE);
  assert.equal(world.told("hold-placed").length, 1);
  world.finish("free");
  assert.equal(world.phaseOf("large"), "assigned");
});

test("Q2 starts count, not completions: six running and none done is enough of a guarantee", () => {
  const world = createWorld({ ...wide, scheduler: { ...wide.scheduler, fairness: { rule: "deficit" } } });
  backlog(world, "A", 9);
  world.join("w", { slots: 6 });
  backlog(world, "B", 1);
  assert.equal(projectsOf(world.atOnce(() => world.change("w", { slots: 7 }))), "B");
});

test("Q5 what runs is reserved: 999 of 1000 leaves room for one token, not for four tasks", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000 } } } });
  world.join("w", { slots: 9 });
  world.submit("A0", { project: "A", estimatedTokens: 999 });
  backlogFrom(world, 1, 5);
  assert.deepEqual(
    [1, 2, 3, 4].map((index) => world.phaseOf(`A${index}`)),
    ["assigned", "queued", "queued", "queued"],
  );
});

function backlogFrom(world: World, from: number, to: number): void {
  for (let index = from; index < to; index++) world.submit(`A${index}`, { project: "A", estimatedTokens: 1 });
}

test("Q5 the fleet's budget is reserved too", () => {
  const world = createWorld({ budget: { limit: 100 } });
  world.join("w", { slots: 9 });
  world.submit("a", { project: "A", estimatedTokens: 60 });
  world.submit("b", { project: "B", estimatedTokens: 60 });
  world.submit("c", { project: "C", estimatedTokens: 40 });
  assert.deepEqual(["a", "b", "c"].map(world.phaseOf), ["assigned", "queued", "assigned"]);
});

test("2.6 a budget opens again when its window has passed", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000, window: "60m" } } } });
  world.join("w", { slots: 9 });
  world.submit("A0", { project: "A", estimatedTokens: 1000 });
  world.finish("A0", { tokens: 1000 });
  world.submit("A1", { project: "A", type: "other2", estimatedTokens: 10 });
  assert.equal(world.phaseOf("A1"), "queued");
  const answer = why(world.state, taskId("A1"), instant(world.now()));
  assert.ok(answer.ok && answer.value.earliestStart !== null);
  world.wait(answer.value.earliestStart - 1);
  assert.equal(world.phaseOf("A1"), "queued");
  world.wait(1);
  assert.equal(world.phaseOf("A1"), "assigned");
  assert.ok(world.now() >= 60 * MINUTE && world.now() < 61 * MINUTE, "a bucket expires late, never early");
});

test("Q15 a project that was idle for long comes back at the level last served: no run of starts", () => {
  const world = createWorld(wide);
  world.join("w");
  backlog(world, "A", 60);
  world.submit("B0", { project: "B", estimatedTokens: 100 });
  for (let turn = 0; turn < 30; turn++) world.finish(running(world), { tokens: 100 });
  for (let index = 1; index < 30; index++) world.submit(`B${index}`, { project: "B", estimatedTokens: 100 });
  const from = world.starts().length;
  for (let turn = 0; turn < 10; turn++) world.finish(running(world), { tokens: 100 });
  const order = projectsOf(world.starts().slice(from));
  assert.ok(!order.includes("BBB"), order);
  assert.equal(count(order, "B"), 5, order);
});

function running(world: World): string {
  const [worker] = world.state.fleet.order;
  const [attempt] = worker?.attempts ?? [];
  return attempt?.task.id ?? "";
}

test("Q16 a backlogged project that fits no worker does not bend the shares of the others", () => {
  const world = createWorld({ ...wide, projects: { A: { weight: 9 }, stuck: { weight: 90 } } });
  backlog(world, "A", 100);
  backlog(world, "B", 100);
  for (let index = 0; index < 9; index++) world.submit(`s${index}`, { project: "stuck", capabilities: ["nobody"] });
  const order = projectsOf(world.atOnce(() => world.join("w", { slots: 50 })));
  assert.deepEqual([count(order, "A"), count(order, "B")], [45, 5]);
});

test("Q18 what was used stays booked when its task is gone", () => {
  const world = createWorld({ scheduler: { resultTtl: "1s", remember: "1s" } });
  world.join("w");
  world.submit("t", { project: "A" });
  world.finish("t", { tokens: 700 });
  world.wait(10_000);
  assert.equal(world.phaseOf("t"), undefined, "forgotten altogether");
  const [project] = world.state.projects.values();
  assert.deepEqual([project?.spent.total(world.now()), project?.charged], [700, 1700], "a start costs 1000");
});

test("Q5 calls of no task reserve too: together they stay within the budget", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 3000 } } } });
  const ask = (permit: string) =>
    world.tryTo({
      type: "ask-permit",
      permit: permitId(permit),
      gate: gateId("llm"),
      ...{ task: null, attempt: null, project: projectId("A"), class: null, tokens: 2000, askedAt: null },
    });
  assert.equal(ask("p1").ok, true);
  const second = ask("p2");
  assert.equal(second.ok, false, "2000 are set aside from the moment the first was asked for");
  assert.deepEqual(!second.ok && second.failure, { type: "budget-exhausted", project: "A", limit: 3000, used: 2000 });
  world.pump();
  world.must({ type: "settle-permit", permit: permitId("p1"), ok: true, tokens: 900 });
  assert.equal(ask("p3").ok, true, "900 used and 2000 set aside fit");
});

test("Q5 what was learned from one outlier does not bar its kind from an empty budget", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000, window: "1h" } } } });
  world.join("w");
  world.submit("outlier", { project: "A", type: "code" });
  world.finish("outlier", { tokens: 50_000 });
  world.submit("next", { project: "A", type: "code" });
  assert.equal(world.phaseOf("next"), "queued", "nothing is left in this window");
  world.wait(2 * 60 * MINUTE);
  assert.equal(world.phaseOf("next"), "assigned", "an empty window is enough for it");
});

test("Q15 a paused project banks no credit either", () => {
  const world = createWorld({ projects: { A: {}, B: {} } });
  world.join("w");
  for (let index = 0; index < 40; index++) {
    for (const project of ["A", "B"]) world.submit(`${project}${index}`, { project, estimatedTokens: 100 });
  }
  const run = (count: number): string[] => {
    const ran: string[] = [];
    for (let index = 0; index < count; index++) {
      const [task] = [...world.state.tasks.values()].filter(({ attempt }) => attempt !== null);
      ran.push(task?.project.id ?? "");
      world.finish(task?.id as string, { tokens: 100 });
    }
    return ran;
  };
  world.must({ type: "set-paused", scope: "project", id: "B", paused: true });
  run(20);
  world.must({ type: "set-paused", scope: "project", id: "B", paused: false });
  const after = run(12);
  assert.ok(after.filter((project) => project === "B").length <= 7, `B takes its half and no more: ${after}`);
});

test("Q18 cancelling a running task refunds nothing it has used", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { project: "A", estimatedTokens: 500 });
  world.must({ type: "report-usage", task: taskId("t"), attempt: 1, tokens: 300 });
  world.cancel("t");
  world.finish("t", { outcome: "cancelled" });
  const [project] = world.state.projects.values();
  assert.deepEqual([project?.spent.total(0), project?.reserved], [300, 0]);
});

test("Q19 nothing undoes a finished task: a second word about it is refused", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  world.finish("t");
  const again = world.tryFinish("t", { outcome: "failed", error: "the notification failed" });
  assert.equal(again.ok, false);
  assert.equal(world.phaseOf("t"), "done");
});

test("Q20 a task that waits is told why, condition by condition, with numbers", () => {
  const world = createWorld({ projects: { A: { maxConcurrent: 1 } } });
  world.join("w", { slots: 9 });
  world.submit("first", { project: "A" });
  world.submit("second", { project: "A" });
  const answer = why(world.state, taskId("second"), instant(0));
  assert.ok(answer.ok);
  const shut = answer.value.conditions.filter((gate) => !gate.ok);
  assert.deepEqual(
    shut.map(({ code, numbers }) => [code, numbers]),
    [["project-in-flight", { inFlight: 1, maxConcurrent: 1 }]],
  );
  assert.equal(answer.value.summary, "It waits because project A has 1 in flight, and its maxConcurrent is 1.");
  assert.ok(answer.value.conditions.length > 20, "every condition is listed, open ones too");
});

test("a budget that holds says until when, to who is first in line and to who is not", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000, window: "1h" } } } });
  world.join("w", { slots: 9 });
  world.submit("spent", { project: "A", estimatedTokens: 900 });
  world.finish("spent", { tokens: 900 });
  world.submit("first", { project: "A", estimatedTokens: 500 });
  world.submit("second", { project: "A", estimatedTokens: 500 });
  const [project] = projectViews(world.state, world.now());
  assert.equal(fleetSpending(world.state, world.now()).freesAt, undefined, "the fleet has no limit");
  for (const id of ["first", "second"]) {
    const answer = why(world.state, taskId(id), instant(world.now()));
    const held = answer.ok ? answer.value.conditions.find(({ code }) => code === "project-budget") : undefined;
    const until = new Date(Number(held?.numbers.until)).toISOString();
    assert.equal(
      held?.detail,
      `900 used + 0 reserved + 500 for first exceed project A's budget of 1000 tokens until ${until}`,
    );
    assert.equal(project?.freesAt, until);
  }
});
