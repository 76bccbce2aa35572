/**
 * A plan is put once more: what becomes of each task, under which id, and whose it is.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { instant, type TaskId } from "../../core/base/index.ts";
import { decide, emptyState, evolve } from "../../core/index.ts";
import { checkInvariants } from "../../core/invariants/index.ts";
import type { Command, Plan } from "../../core/model/index.ts";
import { TaskSkip } from "../../std/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { Handler } from "../workers/local-workers.ts";
import type { Writer } from "../writer/writer.ts";
import { createPlans } from "./plans.ts";

const sound = ({ drover }: TestDrover): void => assert.deepEqual(checkInvariants(drover.state), []);
const failing = (message: string): never => {
  throw Object.assign(new Error(message), { permanent: true });
};

/** A worker that does what `act` says of a task by its name; what it started is in the answer. */
async function working({ drover }: TestDrover, act: (name: string, signal: AbortSignal) => unknown): Promise<string[]> {
  const started: string[] = [];
  const handler: Handler = async ({ params }, { signal, usage }) => {
    started.push(String(params?.task));
    usage({ inputTokens: 10 });
    return act(String(params?.task), signal);
  };
  await drover.worker({ id: "w", slots: 10, actions: ["exec"] }, handler);
  return started;
}

test("what was cancelled stays so behind a need that stays bad", async () => {
  await using kit = await createTestDrover();
  const { plans } = kit.drover;
  let isBlocked = true;
  const started = await working(kit, (name, signal) => {
    if (name === "a") throw new TaskSkip("if: false");
    if (!isBlocked) return null;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
  });
  const document = { tasks: { a: { run: "true", if: "false" }, c: "true", b: { run: "true", needs: ["a", "c"] } } };
  await plans.put("p", document);
  await kit.settle();
  await plans.cancel("p");
  await kit.settle();
  isBlocked = false;
  const put = await plans.put("p", document);
  assert.deepEqual([put.submitted, put.retried, put.kept], [0, 1, 2]);
  await kit.settle();
  assert.deepEqual(started, ["a", "c", "c"]);
  sound(kit);
});

test("a plan that is begun anew while it runs ends what is left of the run before", async () => {
  await using kit = await createTestDrover();
  const { plans } = kit.drover;
  const { tasks } = await plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" } } });
  const fresh = await plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" } } }, { fresh: true });
  assert.deepEqual([fresh.submitted, fresh.cancelled], [2, 2]);
  for (const { taskId } of tasks) assert.equal((await kit.drover.task(taskId)).state, "cancelled");
  const started = await working(kit, () => null);
  await kit.settle();
  assert.deepEqual(started, ["a", "b"]);
  sound(kit);
});

test("a task that has got another id keeps it when the first one is free again", async () => {
  await using kit = await createTestDrover({
    config: { scheduler: { resultTtl: 1000, failedTtl: 1000, remember: 60_000 } },
  });
  const { plans } = kit.drover;
  const putBy = async (agent: string) => plans.put("p", { defaults: { agent }, tasks: { a: "true" } });
  const first = await putBy("ann");
  await putBy("bob");
  await kit.clock.advance(10_000);
  const other = await putBy("ann");
  assert.notEqual(other.tasks[0]?.taskId, first.tasks[0]?.taskId);
  await kit.clock.advance(120_000);
  const { submitted, cancelled, tasks } = await putBy("ann");
  assert.deepEqual([submitted, cancelled, tasks[0]?.taskId], [0, 0, other.tasks[0]?.taskId]);
  sound(kit);
});

test("a put is answered also where another call has the plan forgotten at once", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { plansMax: 1 } } });
  const { plans } = kit.drover;
  await working(kit, () => null);
  await plans.put("p", { tasks: { a: "true" } });
  await kit.settle();
  const [again] = await Promise.all([
    plans.put("p", { tasks: { a: "true" } }),
    plans.put("q", { tasks: { a: "true" } }),
  ]);
  assert.deepEqual([again.id, again.state, again.kept], ["p", "done", 1]);
  assert.deepEqual([...kit.drover.state.plans.keys()], ["q"]);
  sound(kit);
});

test("a task whose id a forgotten one had is run under another", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000, failedTtl: 1000 } } });
  const { plans } = kit.drover;
  const started = await working(kit, () => null);
  const put = async (run: string) => {
    const answer = await plans.put("p", { tasks: { keep: "true", a: run, b: { run: "true", needs: "a" } } });
    await kit.settle();
    return answer;
  };
  await put("v1");
  await plans.remove("p");
  await kit.clock.advance(10_000);
  await plans.put("p", { tasks: { other: "true" } });
  await kit.settle();
  const again = await put("v1");
  assert.equal(again.submitted, 3);
  assert.equal((await plans.get("p")).state, "done");
  assert.deepEqual(started, ["keep", "a", "b", "other", "keep", "a", "b"]);
  assert.equal((await put("v1")).kept, 3, "and is known again");
  sound(kit);
});

test("a report is written once more when what it reports on is run again, and so is what is behind it", async () => {
  await using kit = await createTestDrover();
  const { plans } = kit.drover;
  let isBad = true;
  const started = await working(kit, (name) => (name === "build" && isBad ? failing("no") : null));
  const report = { run: "report", needs: "build", onDependencyFailure: "run" } as const;
  const document = { tasks: { build: "make", report, mail: { run: "mail", needs: "report" }, other: "true" } };
  await plans.put("p", document);
  await kit.settle();
  assert.deepEqual(started.splice(0).sort(), ["build", "mail", "other", "report"]);
  assert.deepEqual((await plans.put("p", document, { retryFailed: false })).kept, 4);
  isBad = false;
  const put = await plans.put("p", document);
  assert.deepEqual([put.retried, put.submitted, put.kept], [1, 2, 1]);
  assert.equal((await plans.put("p", document)).kept, 4, "also while they run");
  await kit.settle();
  assert.deepEqual(started, ["build", "report", "mail"]);
  assert.equal((await plans.put("p", document)).kept, 4);
  assert.deepEqual((await plans.get("p")).counts.done, 4);
  sound(kit);
});

test("the usage of a plan is that of its tasks, not of what it had before", async () => {
  await using kit = await createTestDrover();
  const { plans } = kit.drover;
  await working(kit, () => null);
  for (const options of [{}, { fresh: true }]) {
    await plans.put("p", { tasks: { a: "true", b: "true" } }, options);
    await kit.settle();
  }
  assert.equal((await plans.get("p")).usage?.inputTokens, 20);
});

test("a directory is absolute", async () => {
  await using kit = await createTestDrover();
  const put = kit.drover.plans.put("p", { tasks: { a: "true" } }, { directory: "rel/x" });
  await assert.rejects(put, { code: "bad_request", message: /directory .*must be an absolute path/ });
});

test("what a plan of its name has left is no part of a plan", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const { plans } = drover;
  let isBad = true;
  await working(kit, (name) => (name === "a" && isBad ? failing("no") : null));
  const first = await plans.put("build", { tasks: { a: "v1", c: "v1" } }, { agentId: "ann" });
  await kit.settle();
  await plans.remove("build");
  await kit.clock.advance(1);
  await drover.pause();
  isBad = false;
  const left = first.tasks[0]?.taskId ?? "";
  await drover.retry(left);
  await plans.put("build", { tasks: { b: "v1" } }, { agentId: "bob" });
  const more = await plans.put("build", { tasks: { b: "v1", c: "v1" } }, { agentId: "bob" });
  assert.deepEqual([more.submitted, more.kept, more.cancelled], [1, 1, 0], "what ann has done is not done for bob");
  assert.equal((await plans.cancel("build")).count, 2);
  await drover.resume();
  await kit.settle();
  assert.equal((await drover.task(left)).state, "done");
  sound(kit);
});

test("a plan of which a task never came into the log ends when it is cancelled", async () => {
  const state = emptyState();
  const at = instant(1);
  const writer = {
    state,
    sureNow: () => at,
    now: () => at,
    settled: async () => {},
    execute(command: Command) {
      const decided = decide(state, command, at);
      if (decided.ok) for (const event of decided.value.events) evolve(state, event);
      return decided;
    },
  } as unknown as Writer;
  const plans = createPlans({ writer, bodies: { read: async () => null }, clock: {} });
  const { tasks } = await plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" } } });
  const missing = { name: "c", id: "p.c.0.0" as TaskId };
  const { project, run } = state.plans.get("p") as Plan;
  const cutShort = (plan: string, entries: Plan["tasks"]): Command => ({
    ...{
      type: "put-plan",
      plan,
      project,
      directory: null,
      run,
      failsFast: false,
      adopted: 0,
      agent: null,
      others: [],
    },
    ...{ tasks: entries, documentHash: "0".repeat(64), documentSize: 2, cancels: [], retries: [], submissions: [] },
  });
  writer.execute(cutShort("p", [...tasks.map(({ name, taskId }) => ({ name, id: taskId as TaskId })), missing]));
  const { count, state: stands, total } = await plans.cancel("p");
  assert.deepEqual([count, stands, total], [2, "cancelled", 3]);
  assert.deepEqual(checkInvariants(state), []);
  assert.equal(state.plans.get("p")?.open, 0);
  writer.execute(cutShort("empty", [missing]));
  const none = await plans.cancel("empty");
  assert.deepEqual([none.state, none.total, none.counts.cancelled, none.counts.waiting], ["cancelled", 1, 1, 0]);
  assert.equal((await plans.get("empty")).tasks[0]?.state, "cancelled");
  assert.equal((await plans.put("empty", { tasks: { c: "true" } })).state, "running", "what is put again may come");
  assert.deepEqual(checkInvariants(state), []);
});

test("a put that changes nothing writes nothing, and keeps a plan that has ended for as long again", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { planTtl: 1000 } } });
  const { plans, state } = kit.drover;
  const file = { tasks: { a: "true", b: { run: "true", needs: "a" } } };
  await plans.put("p", file);
  const from = state.seq;
  const again = await plans.put("p", file);
  assert.deepEqual([again.kept, again.state, state.seq], [2, "running", from]);
  await plans.put("p", file, { failFast: true });
  assert.equal(state.seq, from + 1, "another rule is a change");
  await working(kit, () => null);
  await kit.settle();
  const { endedAt } = await plans.get("p");
  const ended = state.seq;
  for (let ms = 0; ms < 5000; ms += 50) {
    await kit.clock.advance(50);
    assert.equal((await plans.put("p", file, { failFast: true })).endedAt, endedAt);
  }
  const kinds: string[] = [];
  for await (const { payload } of kit.drover.events({ after: ended })) kinds.push(payload.kind);
  assert.deepEqual([new Set(kinds), kinds.length], [new Set(["plan-renewed"]), 50]);
  sound(kit);
  await kit.clock.advance(1000);
  await assert.rejects(plans.get("p"), { code: "not_found" });
});

test("a task that asks for more urgency than its project may have is told of, the first by its name", async () => {
  await using kit = await createTestDrover();
  const tasks = { one: { run: "one", priority: -200 }, two: { run: "two", priority: -300 }, three: "three" };
  const { warnings } = await kit.drover.plans.put("hurry", { tasks });
  const most = "the most urgent that project default may have (maxPriority)";
  assert.deepEqual(warnings, [`task one asks for priority -200 and has -100, ${most}, and so for 1 more`]);
  assert.deepEqual((await kit.drover.plans.put("hurry", { tasks })).warnings, [], "nothing was submitted");
});

test("a run of a plan and a plan that is called like it share no task", async () => {
  await using kit = await createTestDrover();
  const { plans, state } = kit.drover;
  await working(kit, () => null);
  const tasks = { a: "true", b: { run: "true", needs: "a" } };
  for (const [run, alike] of [
    ["c", "c.2"],
    ["d.2", "d"],
  ] as const) {
    for (const name of [run, alike]) await plans.put(name, { tasks: { a: "true" } });
    for (const name of [run, alike]) await plans.put(name, { tasks: { a: "true" } }, { fresh: true });
    for (const name of [run, alike]) await plans.put(name, { tasks });
    await kit.settle();
    const views = await Promise.all([run, alike].map((name) => plans.get(name)));
    const ids = views.flatMap((view) => view.tasks.map(({ taskId }) => taskId));
    assert.equal(new Set(ids).size, 4, ids.join(", "));
    for (const view of views) {
      assert.equal(view.state, "done");
      for (const { taskId } of view.tasks)
        assert.equal(state.tasks.get(taskId as TaskId)?.extra?.group?.group.id, view.groupId);
    }
  }
  sound(kit);
});

test("a plan is cancelled with all that its tasks have submitted, and nothing else is", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  await drover.worker({ id: "w", slots: 10, actions: ["*"] }, async ({ taskId, params }, { submit, signal }) => {
    if (taskId === "other" || taskId === "grown") await submit({ id: `${taskId}-child`, action: "x" });
    if (params?.task === "a") await submit({ id: "grown", action: "x" });
    return taskId === "other"
      ? null
      : new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
  });
  await drover.submit({ id: "other", agentId: "me", action: "x" });
  await kit.settle();
  await drover.plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" } } });
  await kit.settle();
  const { count } = await drover.plans.cancel("p");
  await kit.settle();
  const states = await Promise.all(
    ["grown", "grown-child", "other", "other-child"].map(
      async (id) => (await drover.task(id).catch(() => null))?.state,
    ),
  );
  assert.deepEqual([count, states], [4, ["cancelled", "cancelled", "done", "running"]]);
  sound(kit);
});

test("the commands of a plan wait for a worker that runs commands, whatever else is there", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const ran: string[] = [];
  const runBy =
    (id: string): Handler =>
    async ({ params, action }) =>
      void ran.push(`${id}: ${params?.task ?? action}`);
  await drover.worker({ id: "handler", slots: 10 }, runBy("handler"));
  const tasks = { a: "true", b: { run: "true", worktree: true }, c: { action: "browse" } };
  const { tasks: put } = await drover.plans.put("p", { tasks });
  await drover.submit({ id: "alone", agentId: "me", action: "exec", params: { command: "true" } });
  await drover.submit({ id: "plain", agentId: "me", action: "exec" });
  await kit.settle();
  assert.deepEqual(ran.toSorted(), ["handler: browse", "handler: exec"]);
  const waiting = ["alone", ...put.filter(({ name }) => name !== "c").map(({ taskId }) => taskId)];
  for (const id of waiting) {
    const { state } = await drover.task(id);
    const { conditions } = await drover.why(id);
    const said = conditions.find(({ code }) => code === "never-fits");
    assert.deepEqual([state, said?.ok], ["queued", false], id);
    assert.match(
      said?.detail ?? "",
      /it needs a worker that takes the commands that tasks bring \(start one: drover worker --commands\)$/,
    );
  }
  await drover.worker({ id: "runner", slots: 10, actions: ["exec(command)", "exec(worktree)"] }, runBy("runner"));
  await kit.settle();
  assert.deepEqual(ran.slice(2).toSorted(), ["runner: a", "runner: b", "runner: exec"]);
  sound(kit);
});
