/**
 * The traps of our own design (D…), as far as they concern the core.
 *
 * D1–D4, D10 and D12 belong to the host, the log and the gate and are held there.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_CONFIG,
  decide,
  gateId,
  instant,
  nextInstant,
  permitId,
  projectId,
  taskId,
  why,
} from "../../src/core/index.ts";
import { createWorld, MINUTE, type World } from "../kits/conformance/world.ts";

function loseOnce(world: World, task: string): void {
  const worker = world.starts().findLast((start) => start.task === task)?.worker ?? "";
  world.leave(worker, true);
  world.join(worker);
}

test("D5 a task that kills its worker is queued again maxLosses times at most, then failed", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  for (let loss = 1; loss < 5; loss++) loseOnce(world, "t");
  assert.deepEqual([world.phaseOf("t"), world.taskOf("t").losses], ["assigned", 4]);
  loseOnce(world, "t");
  assert.equal(world.phaseOf("t"), "failed");
  assert.match(world.taskOf("t").end?.error ?? "", /^lost-too-often/);
});

test("D5 losses and own failures are counted apart", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { maxAttempts: 2 });
  loseOnce(world, "t");
  loseOnce(world, "t");
  world.finish("t", { outcome: "failed" });
  assert.deepEqual([world.phaseOf("t"), world.taskOf("t").losses, world.taskOf("t").ownFailures], ["queued", 2, 1]);
});

test("D6 a budget stop raises the estimate to what was used, so it does not start into the same wall", () => {
  const world = createWorld({ projects: { p: { budget: { limit: 1000 } } } });
  world.join("w");
  world.submit("t", { estimatedTokens: 100 });
  world.must({ type: "report-usage", task: taskId("t"), attempt: 1, tokens: 1100 });
  assert.equal(world.taskOf("t").attempt?.stopCause, "budget");
  world.finish("t", { outcome: "failed", tokens: 1100 });
  assert.deepEqual([world.taskOf("t").estimate, world.taskOf("t").losses, world.taskOf("t").ownFailures], [1100, 1, 0]);
  const rests = why(world.state, taskId("t"), instant(world.now()));
  assert.ok(rests.ok);
  assert.match(
    rests.value.summary,
    /^It waits because its estimate of 1100 .* exceeds project p's budget.* \(and 1 more/,
  );
  const rest = rests.value.conditions.find(({ code }) => code === "backing-off");
  assert.match(rest?.detail ?? "", /^it is backing off until \S+ after a stop by its budget$/);
  world.wait(10 * MINUTE);
  assert.deepEqual([world.phaseOf("t"), world.starts().length], ["queued", 1]);
  const answer = why(world.state, taskId("t"), instant(world.now()));
  const gate = answer.ok ? answer.value.conditions.find(({ code }) => code === "project-budget") : undefined;
  assert.deepEqual([gate?.ok, gate?.numbers.needed, gate?.numbers.limit], [false, 1100, 1000]);
});

test("D6 one that has ended well by the time its budget stops it is done, and does not run again", () => {
  const world = createWorld({ projects: { p: { budget: { limit: 1000 } } } });
  world.join("w");
  world.submit("t", { estimatedTokens: 100 });
  world.must({ type: "report-usage", task: taskId("t"), attempt: 1, tokens: 1100 });
  assert.equal(world.taskOf("t").attempt?.stopCause, "budget");
  world.finish("t", { outcome: "done", tokens: 1100 });
  assert.deepEqual([world.phaseOf("t"), world.starts().length], ["done", 1]);
});

test("D6 a task that its budget stops too often does not end as one whose workers died", () => {
  const world = createWorld({
    ...{ projects: { p: { budget: { limit: 1000 } } }, scheduler: { retry: { maxLosses: 1 } } },
  });
  world.join("w");
  world.submit("t", { estimatedTokens: 100 });
  world.must({ type: "report-usage", task: taskId("t"), attempt: 1, tokens: 1100 });
  world.finish("t", { outcome: "failed", tokens: 1100 });
  assert.equal(world.taskOf("t").end?.error, "stopped-by-its-budget (lost once, last: budget)");
});

test("one of a kind is told as one", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  const rested = (): string => {
    const answer = why(world.state, taskId("t"), instant(world.now()));
    const found = answer.ok ? answer.value.conditions.find(({ code }) => code === "backing-off") : undefined;
    return (found?.detail ?? "").replace(/until \S+ /, "");
  };
  loseOnce(world, "t");
  world.finish("t", { outcome: "failed" });
  assert.equal(rested(), "it is backing off after 1 failure, 1 loss");
  world.wait(10 * MINUTE);
  loseOnce(world, "t");
  world.finish("t", { outcome: "failed" });
  assert.equal(rested(), "it is backing off after 2 failures, 2 losses");
});

test("D7 a large overdue task takes a hold on a worker, and gets it when it is empty", () => {
  const world = createWorld();
  world.join("w", { slots: 4, cpu: 4000 });
  for (const id of ["s1", "s2"]) world.submit(id, { agent: "small", cpu: 1000 });
  world.submit("large", { agent: "big", cpu: 4000 });
  world.wait(60 * MINUTE);
  assert.equal(world.told("hold-placed")[0]?.task, "large");
  world.submit("s3", { agent: "small", cpu: 1000 });
  assert.equal(world.phaseOf("s3"), "queued", "nothing else is placed there until it fits");
  const blocked = why(world.state, taskId("s3"), instant(world.now()));
  assert.ok(blocked.ok && blocked.value.conditions.some((gate) => gate.code === "hold" && !gate.ok));
  world.finish("s1");
  world.finish("s2");
  assert.equal(world.phaseOf("large"), "assigned");
});

test("D7 one millisecond before starvationAfter there is no hold yet", () => {
  const world = createWorld();
  world.join("w", { slots: 4, cpu: 4000 });
  world.submit("s1", { agent: "small", cpu: 1000 });
  world.submit("large", { agent: "big", cpu: 4000 });
  world.wait(60 * MINUTE - 1);
  assert.equal(world.told("hold-placed").length, 0);
});

test("D7 the alarm is set for the next task to become overdue, though an older one waits for something else", () => {
  const world = createWorld();
  world.join("w", { slots: 4, cpu: 4000 });
  world.submit("small", { project: "S", cpu: 1000 });
  world.submit("a", { project: "A", cpu: 4000 });
  world.must({ type: "set-paused", scope: "project", id: "A", paused: true });
  world.wait(10 * MINUTE);
  world.submit("b", { project: "B", cpu: 4000 });
  world.wait(55 * MINUTE);
  assert.equal(nextInstant(world.state, instant(world.now())), 70 * MINUTE);
  world.wait(5 * MINUTE);
  assert.deepEqual(
    world.told("hold-placed").map((event) => event.task),
    ["b"],
  );
});

test("D8 finished tasks are bounded by resultMax, tombstones by `remember`", () => {
  const world = createWorld({ scheduler: { resultMax: 3, remember: "1h" } });
  world.join("w");
  for (let index = 0; index < 10; index++) {
    world.submit(`t${index}`);
    world.finish(`t${index}`);
  }
  assert.deepEqual([world.state.tasks.size, world.state.tombstones.size], [3, 7]);
  world.wait(60 * MINUTE);
  assert.deepEqual([world.state.tasks.size, world.state.tombstones.size], [0, 0]);
});

test("D9 two causes shut one shape: it opens when the last of them ends, in either order", () => {
  for (const firstEnded of ["lock", "type"] as const) {
    const world = createWorld({ scheduler: { perType: { build: 1 } } });
    world.join("w", { slots: 9 });
    world.submit("lock", { locks: ["repo:x"] });
    world.submit("type", { type: "build" });
    world.submit("t", { type: "build", locks: ["repo:x"] });
    world.finish(firstEnded);
    assert.equal(world.phaseOf("t"), "queued");
    world.finish(firstEnded === "lock" ? "type" : "lock");
    assert.equal(world.phaseOf("t"), "assigned");
  }
});

test("D9 a blocked provider and full workers are two causes too", () => {
  const world = createWorld();
  world.join("w");
  world.submit("busy");
  world.throttle("g", 5000);
  world.submit("t", { provider: "g" });
  world.finish("busy");
  assert.equal(world.phaseOf("t"), "queued");
  world.wait(5000);
  assert.equal(world.phaseOf("t"), "assigned");
});

for (const [reported, permitted, charged] of [
  [300, 500, 500],
  [500, 300, 500],
] as const)
  test(`D11 permits of ${permitted} and a report of ${reported} are charged as the larger, once`, () => {
    const world = createWorld();
    world.join("w");
    world.submit("t", { estimatedTokens: 100 });
    world.askPermit("c1", "g", "t", 50);
    world.must({
      type: "settle-permit",
      permit: permitId("c1"),
      ok: true,
      tokens: permitted,
    });
    world.finish("t", { tokens: reported });
    const [project] = world.state.projects.values();
    assert.deepEqual([project?.spent.total(0), world.state.spent.total(0), project?.reserved], [charged, charged, 0]);
  });

test("D11 unknown usage is charged at the reservation: a budget fails closed", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t", { estimatedTokens: 100 });
  world.finish("t", { tokens: null });
  assert.equal(world.state.spent.total(0), 100);
});

test("D13 `needs` on a task that finished an hour ago is met by its tombstone", () => {
  const world = createWorld();
  world.join("w");
  world.submit("good");
  world.finish("good");
  world.submit("bad", { maxAttempts: 1 });
  world.finish("bad", { outcome: "failed" });
  world.wait(60 * MINUTE);
  assert.equal(world.state.tasks.has(taskId("good")), false);
  world.submit("a", { needs: ["good"] });
  world.submit("b", { needs: ["bad"] });
  world.submit("c", { parent: "good" });
  assert.deepEqual(["a", "b", "c"].map(world.phaseOf), ["assigned", "skipped", "queued"]);
  assert.equal(world.taskOf("c").depth, 1);
});

test("D13 an id stays taken while its tombstone is there: same body, same task; other body, conflict", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  world.finish("t");
  world.wait(60 * MINUTE);
  assert.equal(world.submit("t").repeated, true);
  const other = world.trySubmit("t", { bodyHash: "another" });
  assert.equal(other.ok ? "" : other.failure.type, "task-exists");
  const ended = why(world.state, taskId("t"), instant(world.now()));
  assert.ok(ended.ok && ended.value.state === "done" && ended.value.conditions[0]?.code === "ended");
});

test("why refuses an id nobody has, and names worker and attempt of what runs", () => {
  const world = createWorld();
  world.join("w");
  world.submit("t");
  const unknown = why(world.state, taskId("ghost"), instant(0));
  assert.deepEqual(unknown.ok ? null : unknown.failure, { type: "task-unknown", task: "ghost" });
  const runs = why(world.state, taskId("t"), instant(0));
  assert.ok(runs.ok && runs.value.summary === "The task is assigned already, attempt 1 on worker w.");
  assert.equal(decide(world.state, { type: "pump" }, instant(0)).ok, true);
});

test("D6 a task that its budget can never bear blocks nobody, and starts when the budget is raised", () => {
  const world = createWorld({ projects: { A: { budget: { limit: 1000, window: "1h" } } } });
  world.join("w", { slots: 9 });
  world.submit("grows", { project: "A", estimatedTokens: 100 });
  world.must({ type: "report-usage", task: taskId("grows"), attempt: 1, tokens: 1100 });
  world.finish("grows", { outcome: "failed", error: "stopped", tokens: 1100 });
  world.submit("next", { project: "A", estimatedTokens: 100 });
  world.wait(2 * 60 * MINUTE);
  assert.deepEqual([world.phaseOf("grows"), world.phaseOf("next")], ["queued", "assigned"]);
  const answer = why(world.state, taskId("grows"), instant(world.now()));
  assert.ok(answer.ok);
  assert.deepEqual(
    answer.value.conditions.filter((gate) => !gate.ok).map(({ code }) => code),
    ["project-budget"],
  );
  const settings = { ...DEFAULT_CONFIG.projects.default, budget: { limit: 10_000, window: 3_600_000 } };
  world.must({ type: "put-project", project: projectId("A"), settings });
  assert.equal(world.phaseOf("grows"), "assigned");
});

test("D6 one that overran is stopped; one within its reservation goes on", () => {
  const world = createWorld({ budget: { limit: 1000 } });
  world.join("w", { slots: 9 });
  world.submit("bad", { project: "A", estimatedTokens: 100 });
  world.submit("good", { project: "B", estimatedTokens: 500 });
  world.must({ type: "report-usage", task: taskId("bad"), attempt: 1, tokens: 700 });
  world.must({ type: "report-usage", task: taskId("good"), attempt: 1, tokens: 1 });
  const stateOf = (task: string) => world.state.tasks.get(taskId(task))?.attempt?.state;
  assert.deepEqual([stateOf("bad"), stateOf("good")], ["stopping", "assigned"]);
});

test("D7 no worker is held for a task that its budget forbids, and a hold ends when the budget does", () => {
  const world = createWorld({ projects: { big: { budget: { limit: 1000, window: "24h" } } } });
  world.join("w", { slots: 9, cpu: 4000 });
  world.submit("filler", { project: "small", cpu: 1000 });
  world.submit("spender", { project: "big", estimatedTokens: 900 });
  world.finish("spender", { tokens: 900 });
  world.submit("large", { project: "big", cpu: 4000, estimatedTokens: 500 });
  world.wait(3 * 60 * MINUTE);
  assert.equal(world.state.holds.size, 0);
  world.submit("other", { project: "small", cpu: 1000 });
  assert.equal(world.phaseOf("other"), "assigned", "the room is free for others");
});

test("D7 a hold ends when its agent is full elsewhere: others may have the worker", () => {
  const world = createWorld({ scheduler: { maxPerAgentInFlight: 3 } });
  world.join("w1", { slots: 4, cpu: 4000, capabilities: ["big"] });
  world.join("w2", { slots: 50, capabilities: ["other"] });
  for (const id of ["f1", "f2"]) world.submit(id, { agent: id, cpu: 1500, capabilities: ["big"] });
  world.submit("large", { project: "P", agent: "A", cpu: 4000, capabilities: ["big"] });
  world.wait(60 * MINUTE);
  assert.deepEqual(world.told("hold-placed").length, 1);
  for (const id of ["q1", "q2", "q3"]) world.submit(id, { project: "Q", agent: "A", capabilities: ["other"] });
  assert.equal(world.told("hold-released").length, 1);
  world.finish("f1");
  world.finish("f2");
  world.submit("small", { agent: "another", cpu: 100, capabilities: ["big"] });
  assert.equal(world.phaseOf("small"), "assigned");
  world.finish("q1");
  assert.equal(world.told("hold-placed").length, 2, "it takes a hold again as soon as it may start");
  world.finish("small");
  assert.equal(world.phaseOf("large"), "assigned");
});

test("D7 a gate that is well, or recovers, is not slowed down by a reset", () => {
  const world = createWorld();
  let calls = 0;
  const call = (): void => {
    const permit = permitId(`c${calls++}`);
    const asks = { task: null, attempt: null, project: projectId("p"), class: null, tokens: 0, askedAt: null };
    world.must({ type: "ask-permit", permit, gate: gateId("g"), ...asks });
    world.must({ type: "settle-permit", permit, ok: true, tokens: 0 });
  };
  const standing = () => world.state.gates.get(gateId("g"));
  const reset = () => world.must({ type: "reset-gate", gate: gateId("g") });
  world.throttle("g");
  assert.equal(reset().repeated ?? false, false, "there was something to forgive");
  assert.deepEqual([standing()?.blockedUntil, standing()?.slowStart], [null, 1]);
  for (let count = 0; count < 2; count++) call();
  const recovering = standing()?.slowStart;
  assert.deepEqual([reset().repeated, standing()?.slowStart], [true, recovering]);
  for (let count = 0; count < 8; count++) call();
  assert.deepEqual([reset().repeated, standing()?.slowStart], [true, null]);
});
