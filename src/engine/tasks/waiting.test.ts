/**
 * Tasks that wait for their children: parked without a slot, and done with what they had answered.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { TaskContext } from "../workers/handler-runner.ts";
import type { TaskInput } from "./task-body.ts";

type Run = (context: TaskContext) => unknown;
type Kit = TestDrover & {
  /** Ends what waits under this name. */
  readonly open: (name: string) => Promise<void>;
  readonly submit: (id: string, more?: Partial<TaskInput>) => Promise<unknown>;
  readonly stateOf: (id: string) => Promise<string>;
};

/** A worker with so many slots; a task without a run of its own is held until it is let go. */
async function withRuns(runs: Readonly<Record<string, Run>>, slots = 8): Promise<Kit> {
  const kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 } } } });
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gate = (name: string): PromiseWithResolvers<void> => {
    const known = gates.get(name) ?? Promise.withResolvers<void>();
    gates.set(name, known);
    return known;
  };
  await kit.drover.worker({ id: "w", slots }, async ({ taskId }, context) => {
    const run = runs[taskId];
    if (run !== undefined) return run(context);
    context.signal.addEventListener("abort", () => gate(taskId).resolve());
    await gate(taskId).promise;
    if (taskId.startsWith("bad")) throw Object.assign(new Error("no luck"), { permanent: true });
    return `${taskId} is done`;
  });
  return {
    ...kit,
    [Symbol.asyncDispose]: kit[Symbol.asyncDispose],
    open: async (name) => {
      gate(name).resolve();
      await kit.settle();
    },
    submit: async (id, more) => {
      await kit.drover.submit({ id, agentId: "ann", action: "work", ...more });
      await kit.settle();
    },
    stateOf: async (id) => (await kit.drover.task(id)).state,
  };
}

const grows =
  (...ids: readonly string[]): Run =>
  async ({ submit }) => {
    for (const id of ids) await submit({ id, action: "work" });
    return { answer: 42 };
  };
const WAITS: Partial<TaskInput> = { wait: "children" };

test("it is parked without a slot until its last child has ended, and then done with its own result", async () => {
  await using kit = await withRuns({ plan: grows("a", "bad", "c") }, 3);
  await kit.submit("plan", { ...WAITS, locks: ["repo"], estimatedTokens: 100 });
  const { state, children, result, startedAt } = await kit.drover.task("plan");
  assert.deepEqual(
    { state, children, result },
    { state: "parked", children: { total: 3, open: 3 }, result: undefined },
  );
  assert.notEqual(startedAt, undefined);
  assert.equal(kit.drover.state.inFlight, 3, "its children have all three slots");
  assert.equal(kit.drover.state.shapes.locks.get("repo")?.holder ?? null, null, "its lock is free");
  const { summary, conditions } = await kit.drover.why("plan");
  assert.match(summary, /parked until 3 tasks that grew below it have ended: a \(\w+\), bad \(\w+\), c \(\w+\)\./);
  assert.deepEqual(conditions[0]?.numbers, { open: 3, children: 3 });
  await kit.open("a");
  await kit.open("bad");
  assert.equal(await kit.stateOf("plan"), "parked");
  assert.match((await kit.drover.why("plan")).summary, /until 1 task that grew below it has ended: c/);
  await kit.open("c");
  const ended = await kit.drover.task("plan");
  assert.deepEqual(
    [ended.state, ended.result, ended.attempt],
    ["done", { answer: 42 }, 1],
    "a failed child fails nothing",
  );
});

test("what needs it sees its result, once it is done", async () => {
  let inputs: unknown = null;
  const kit = await createTestDrover();
  await using _ = kit;
  const gate = Promise.withResolvers<void>();
  await kit.drover.worker({ id: "w", slots: 4 }, async (task, { submit }) => {
    if (task.taskId === "plan") await submit({ id: "child", action: "work" });
    if (task.taskId === "child") await gate.promise;
    if (task.taskId === "after") inputs = task.inputs;
    return task.taskId;
  });
  await kit.drover.submit({ id: "plan", agentId: "ann", action: "work", wait: "children" });
  await kit.drover.submit({ id: "after", agentId: "ann", action: "work", needs: { it: "plan" } });
  await kit.settle();
  assert.equal(inputs, null);
  gate.resolve();
  await kit.settle();
  assert.deepEqual(inputs, { it: { taskId: "plan", state: "done", result: "plan" } });
});

test("it is told apart from tasks that ask somebody", async () => {
  const gate = Promise.withResolvers<void>();
  await using kit = await withRuns({ plan: grows("child"), child: () => gate.promise });
  await kit.submit("plan", WAITS);
  await kit.submit("asks", { approval: true });
  const { state, tasks } = kit.drover;
  const idsOf = async (asking: boolean): Promise<string[]> =>
    (await tasks({ asking, order: "newest" })).tasks.map(({ taskId }) => taskId);
  assert.deepEqual([await idsOf(true), await idsOf(false)], [["asks"], ["child", "plan"]]);
  assert.deepEqual([state.parked, state.awaiting], [2, 1]);
  gate.resolve();
  await kit.settle();
  assert.deepEqual([state.parked, state.awaiting], [1, 0]);
});

test("without open children it is done at once, and without wait it does not wait", async () => {
  await using kit = await withRuns({ plan: grows(), other: grows("child") });
  await kit.submit("plan", WAITS);
  await kit.submit("other");
  assert.deepEqual([await kit.stateOf("plan"), await kit.stateOf("other")], ["done", "done"]);
  await kit.open("child");
});

test("children of children count, at any depth, also those that come while it waits", async () => {
  const more = Promise.withResolvers<void>();
  await using kit = await withRuns({
    plan: grows("child"),
    child: async ({ submit }) => {
      await more.promise;
      await submit({ id: "grandchild", action: "work" });
    },
  });
  await kit.submit("plan", WAITS);
  assert.equal(await kit.stateOf("plan"), "parked");
  more.resolve();
  await kit.settle();
  assert.deepEqual([await kit.stateOf("child"), await kit.stateOf("plan")], ["done", "parked"]);
  assert.match((await kit.drover.why("plan")).summary, /grandchild/);
  await kit.open("grandchild");
  assert.equal(await kit.stateOf("plan"), "done");
});

test("cancelled while it waits it has ended, and its children go on; cancelled by root, all do", async () => {
  await using kit = await withRuns({ plan: grows("a"), other: grows("b") });
  await kit.submit("plan", WAITS);
  await kit.submit("other", WAITS);
  await kit.drover.cancel("plan");
  await kit.settle();
  assert.deepEqual([await kit.stateOf("plan"), await kit.stateOf("a")], ["cancelled", "running"]);
  assert.deepEqual(await kit.drover.cancelWhere({ root: "other" }), { status: "cancelled", count: 2 });
  await kit.settle();
  assert.deepEqual([await kit.stateOf("other"), await kit.stateOf("b")], ["cancelled", "cancelled"]);
  await kit.open("a");
  assert.equal(await kit.stateOf("plan"), "cancelled");
});

test("its deadline ends it while it waits", async () => {
  await using kit = await withRuns({ plan: grows("a") });
  await kit.submit("plan", { ...WAITS, deadline: kit.clock.now() + 60_000 });
  await kit.clock.advance(60_000);
  const { state, error } = await kit.drover.task("plan");
  assert.deepEqual([state, error], ["failed", "deadline exceeded while its children had not ended"]);
  assert.equal(await kit.stateOf("a"), "running");
});

test("retried after it failed, it waits for the children of all its attempts", async () => {
  let tries = 0;
  await using kit = await withRuns({
    plan: async ({ submit }) => {
      tries++;
      await submit({ id: `child${tries}`, action: "work" });
      if (tries === 1) throw Object.assign(new Error("no luck"), { permanent: true });
      return "second";
    },
  });
  await kit.submit("plan", WAITS);
  assert.equal(await kit.stateOf("plan"), "failed", "one that fails does not wait");
  await kit.drover.retry("plan");
  await kit.settle();
  await kit.open("child2");
  assert.equal(await kit.stateOf("plan"), "parked");
  await assert.rejects(kit.drover.retry("plan"), { code: "conflict" });
  await kit.open("child1");
  assert.deepEqual([await kit.stateOf("plan"), (await kit.drover.task("plan")).result], ["done", "second"]);
});

test("a child that is retried while it waits is waited for again", async () => {
  await using kit = await withRuns({ plan: grows("bad", "b") });
  await kit.submit("plan", WAITS);
  await kit.open("bad");
  await kit.drover.retry("bad");
  await kit.open("b");
  // The worker held it the first time; the second time it ends at once, since its name was let go.
  await kit.settle();
  assert.deepEqual([await kit.stateOf("bad"), await kit.stateOf("plan")], ["failed", "done"]);
});

test("rounds of a loop do not wait, only the last one does", async () => {
  let round = 0;
  await using kit = await withRuns({
    plan: async ({ submit }) => {
      round++;
      await submit({ id: `child${round}`, action: "work" });
      return round < 3 ? { again: true, note: "more" } : "good";
    },
  });
  await kit.submit("plan", { ...WAITS, loop: { max: 5 } });
  const { state, rounds } = await kit.drover.task("plan");
  assert.deepEqual([state, rounds?.map(({ outcome }) => outcome)], ["parked", ["again", "again", "done"]]);
  for (const name of ["child1", "child2", "child3"]) await kit.open(name);
  assert.equal(await kit.stateOf("plan"), "done");
});

test("no person is asked: an approval of one that waits for its children is a conflict", async () => {
  await using kit = await withRuns({ plan: grows("a") });
  await kit.submit("plan", { ...WAITS, approval: { question: "go?" } });
  await kit.drover.approve("plan");
  await kit.settle();
  assert.equal(await kit.stateOf("plan"), "parked");
  await assert.rejects(kit.drover.approve("plan"), {
    code: "conflict",
    message: /parked until its children have ended/,
  });
  await kit.open("a");
  assert.equal(await kit.stateOf("plan"), "done");
});

test("an attempt that is over submits no late child", async () => {
  await using kit = await withRuns({ plan: grows("a") });
  await kit.submit("plan", WAITS);
  await assert.rejects(kit.drover.submitChild("plan", 1, { action: "late" }), { code: "stale_attempt" });
  await kit.open("a");
});

test("below one that waits a child needs only what is done or grew there too: no circle can come of it", async () => {
  const said: string[] = [];
  const tried = Promise.withResolvers<void>();
  await using kit = await withRuns({
    plan: async ({ submit }) => {
      const tryTo = async (id: string, ...needs: string[]): Promise<void> => {
        await submit({ id, action: "work", needs }).catch(({ code, message }) =>
          said.push(`${id} ${code}: ${message}`),
        );
      };
      await submit({ id: "one", action: "work", wait: "children" });
      await tryTo("self", "plan");
      await tryTo("outside", "elsewhere");
      await tryTo("sibling", "one");
      await tryTo("after", "ready");
      tried.resolve();
    },
    one: async ({ submit }) => {
      await tried.promise;
      await submit({ id: "deep", action: "work", needs: ["sibling"] }).catch(({ message }) => said.push(message));
    },
    ready: () => "here",
  });
  await kit.submit("ready");
  await kit.submit("elsewhere");
  await kit.submit("plan", WAITS);
  assert.equal(said.length, 3, said.join("\n"));
  assert.match(said[0] ?? "", /^self \w+: needs .*plan.* or that grew below plan too/);
  assert.match(said[1] ?? "", /^outside \w+: needs .*elsewhere/);
  assert.match(said[2] ?? "", /grew below one too/, "a sibling of one that waits may itself wait for it");
  for (const name of ["sibling", "after", "elsewhere"]) await kit.open(name);
  assert.deepEqual(
    [await kit.stateOf("sibling"), await kit.stateOf("after"), await kit.stateOf("plan")],
    ["done", "done", "done"],
  );
});

test("where a tree is 16 levels deep and every level waits, the ends go up one by one", async () => {
  await using kit = await createTestDrover();
  const gate = Promise.withResolvers<void>();
  await kit.drover.worker({ id: "w", slots: 2 }, async ({ action }, { submit }) => {
    const level = Number(action);
    if (level === 16) return gate.promise;
    await submit({ action: String(level + 1), wait: "children" });
    return level;
  });
  const { taskId } = await kit.drover.submit({ agentId: "ann", action: "0", wait: "children" });
  await kit.settle();
  assert.equal(kit.drover.state.parked, 16);
  gate.resolve();
  await kit.settle();
  const { tasks } = await kit.drover.tasks({ root: taskId });
  assert.deepEqual([tasks.length, new Set(tasks.map(({ state }) => state))], [17, new Set(["done"])]);
});

test("a thousand children are waited for, and the thousand and first is refused", async () => {
  const kit = await createTestDrover({ config: { scheduler: { maxBatch: 1000 } } });
  await using _ = kit;
  let refusal = "";
  await kit.drover.worker({ id: "w", slots: 100 }, async ({ taskId, attempt }) => {
    if (taskId !== "plan") return;
    const tasks = Array.from({ length: 1000 }, () => ({ action: "work" }));
    assert.equal((await kit.drover.submitChildren(taskId, attempt, { tasks })).accepted, 1000);
    await kit.drover.submitChild(taskId, attempt, { action: "x" }).catch(({ message }) => {
      refusal = message;
    });
  });
  await kit.drover.submit({ id: "plan", agentId: "ann", action: "work", wait: "children" });
  await kit.settle();
  assert.match(refusal, /1000 children of plan/);
  const { state, children } = await kit.drover.task("plan");
  assert.deepEqual([state, children], ["done", { total: 1000, open: 0 }]);
});

test("tasks are found by parent and by root, each cost by what is there", async () => {
  await using kit = await withRuns({ plan: grows("a", "b"), a: grows("a1", "a2") });
  await kit.submit("plan", WAITS);
  await kit.submit("stranger");
  const ids = async (filter: object): Promise<string[]> =>
    (await kit.drover.tasks(filter)).tasks.map(({ taskId }) => taskId);
  assert.deepEqual(await ids({ parent: "plan" }), ["a", "b"]);
  const tree = await ids({ root: "plan" });
  assert.deepEqual([tree[0], tree.toSorted()], ["plan", ["a", "a1", "a2", "b", "plan"]]);
  assert.deepEqual(await ids({ root: "a", state: "running" }), ["a1", "a2"]);
  assert.deepEqual(await ids({ root: "plan", order: "newest", limit: 2 }), tree.slice(-2).reverse());
  assert.deepEqual([await ids({ parent: "nobody" }), await ids({ root: "nobody" })], [[], []]);
  const first = await kit.drover.tasks({ root: "plan", limit: 3 });
  const rest = await kit.drover.tasks({ root: "plan", limit: 3, cursor: first.nextCursor ?? "" });
  assert.deepEqual([first.count, rest.count, rest.nextCursor], [3, 2, undefined]);
  for (const name of ["a1", "a2", "b", "stranger"]) await kit.open(name);
  assert.equal(await kit.stateOf("plan"), "done");
});

test("its result is read from the log when its record is gone; records above what lives stay", async () => {
  const kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000 } } });
  await using _ = kit;
  const gates = { slow: Promise.withResolvers<void>(), leaf: Promise.withResolvers<void>() };
  const children: Readonly<Record<string, readonly string[]>> = { plan: ["mid", "slow"], mid: ["low"], low: ["leaf"] };
  await kit.drover.worker({ id: "w", slots: 8 }, async ({ taskId }, { submit }) => {
    for (const id of children[taskId] ?? []) await submit({ id, action: "work" });
    if (taskId === "slow" || taskId === "leaf") await gates[taskId].promise;
    return `${taskId} is done`;
  });
  await kit.drover.submit({ id: "plan", agentId: "ann", action: "work", wait: "children" });
  await kit.settle();
  await kit.clock.advance(10_000);
  const known = [...kit.drover.state.tasks.values()].map(({ id }) => String(id));
  assert.deepEqual(known.sort(), ["leaf", "low", "mid", "plan", "slow"], "mid and low hang between leaf and plan");
  gates.slow.resolve();
  await kit.settle();
  await kit.clock.advance(10_000);
  assert.equal((await kit.drover.task("plan")).state, "parked");
  gates.leaf.resolve();
  await kit.settle();
  await kit.clock.advance(100_000);
  assert.equal(kit.drover.state.tasks.has("plan" as never), false, "its record has gone");
  const { state, result } = await kit.drover.task("plan");
  assert.deepEqual([state, result], ["done", "plan is done"]);
});
