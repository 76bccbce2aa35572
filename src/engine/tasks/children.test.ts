/**
 * Children that a task submits while it runs: what they have from it, and where they end.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { DroverError } from "../base/index.ts";
import type { TaskContext } from "../workers/handler-runner.ts";
import type { ChildInput } from "./children.ts";
import type { TaskInput } from "./task-body.ts";

type Run = (context: TaskContext) => unknown;

/** A worker that runs a task by its name; the others are done at once. */
const withRuns = (kit: TestDrover, runs: Readonly<Record<string, Run>>): Promise<unknown> =>
  kit.drover.worker({ id: "w", slots: 8 }, ({ taskId }, context) => runs[taskId]?.(context));
const submit = (kit: TestDrover, id: string, more: Partial<TaskInput> = {}): Promise<unknown> =>
  kit.drover.submit({ id, agentId: "ann", action: "work", ...more });

/** What a body is refused with, as a child of a task that runs. */
async function refusalOf(body: unknown, parent: Partial<TaskInput> = {}): Promise<DroverError> {
  await using kit = await createTestDrover();
  let refusal: unknown = null;
  await withRuns(kit, {
    parent: async ({ submit: grow }) => {
      refusal = await grow(body as ChildInput).catch((error: unknown) => error);
    },
  });
  await submit(kit, "parent", parent);
  await kit.settle();
  assert.ok(refusal instanceof DroverError, `refused, and not ${JSON.stringify(refusal)}`);
  assert.equal((await kit.drover.tasks()).count, 1, "nothing came of it");
  return refusal;
}

test("a child of a running task runs beside it, with its project, agent, labels and priority", async () => {
  await using kit = await createTestDrover();
  const gate = Promise.withResolvers<void>();
  let seen: unknown = "nothing";
  await withRuns(kit, {
    parent: async ({ submit: grow, signal }) => {
      signal.addEventListener("abort", () => gate.resolve());
      await grow({ id: "child", action: "work", labels: { team: "ops", own: "yes" } });
      await gate.promise;
      return "late";
    },
    child: () => {
      seen = kit.drover.state.tasks.get("parent" as never)?.phase;
    },
  });
  await submit(kit, "parent", { project: "site", priority: -50, labels: { team: "web", run: "7" } });
  await kit.settle();
  const { state, parent, project, agentId, labels, priority, inputs } = (await kit.drover.task(
    "child",
  )) as never as Record<string, unknown>;
  assert.deepEqual(
    { state, parent, project, agentId, labels, priority, inputs },
    {
      state: "done",
      parent: "parent",
      project: "site",
      agentId: "ann",
      priority: -50,
      inputs: undefined,
      labels: { team: "ops", run: "7", own: "yes" },
    },
  );
  assert.match(String(seen), /assigned|running/, "its parent ran meanwhile");
  gate.resolve();
  await kit.settle();
  assert.equal((await kit.drover.task("parent")).state, "done");
});

test("a child may need others, and is not skipped when its parent fails", async () => {
  await using kit = await createTestDrover();
  const order: string[] = [];
  await withRuns(kit, {
    parent: async ({ submit: grow }) => {
      await grow({ id: "second", action: "work", needs: ["first"] }).catch(() => order.push("refused"));
      await grow({ id: "first", action: "work" });
      await grow({ id: "second", action: "work", needs: ["first"] });
      throw Object.assign(new Error("no luck"), { permanent: true });
    },
    first: () => order.push("first"),
    second: () => order.push("second"),
  });
  await submit(kit, "parent");
  await kit.settle();
  assert.deepEqual(order, ["refused", "first", "second"]);
  assert.equal((await kit.drover.task("parent")).state, "failed");
});

test("the same child again is the same task, also from a later attempt", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 } } } });
  const answers: string[] = [];
  await withRuns(kit, {
    parent: async ({ submit: grow, attempt }) => {
      answers.push((await grow({ id: "child", action: "work" })).taskId);
      if (attempt === 1) throw new Error("again");
    },
  });
  await submit(kit, "parent");
  await kit.settle();
  await kit.clock.advance(10_000);
  assert.deepEqual(answers, ["child", "child"]);
  assert.equal((await kit.drover.tasks()).count, 2);
});

for (const [field, body] of [
  ["project", { action: "work", project: "other" }],
  ["agentId", { action: "work", agentId: "eve" }],
  ["parent", { action: "work", parent: "else" }],
  ["action", {}],
  ["labels", { action: "work", labels: 7 }],
  ["(body)", null],
] as const)
  test(`a child with a ${field} that is not right is refused by that field`, async () => {
    const { message } = await refusalOf(body);
    assert.ok(message.startsWith(field), message);
  });

test("labels of parent and child together are at most 32", async () => {
  const labels = Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`k${index}`, "v"]));
  const { message } = await refusalOf({ action: "work", labels: { more: "v" } }, { labels });
  assert.match(message, /^labels /);
});

test("an attempt that is over submits nothing more", async () => {
  await using kit = await createTestDrover();
  const contexts: TaskContext[] = [];
  await withRuns(kit, { parent: (context) => contexts.push(context) });
  await submit(kit, "parent");
  await kit.settle();
  const [context] = contexts;
  await assert.rejects(context?.submit({ action: "work" }) ?? Promise.resolve(), { code: "stale_attempt" });
  await assert.rejects(kit.drover.submitChild("parent", 2, { action: "work" }), { code: "stale_attempt" });
  await assert.rejects(kit.drover.submitChild("nobody", 1, { action: "work" }), { code: "not_found" });
  await assert.rejects(kit.drover.submitChildren("parent", 1, { tasks: [] }), { code: "stale_attempt" });
});

test("children of children end 16 levels down", async () => {
  await using kit = await createTestDrover();
  const refusals: string[] = [];
  await kit.drover.worker({ id: "w", slots: 40 }, async ({ action }, { submit: grow }) => {
    await grow({ action: String(Number(action) + 1) }).catch((error: Error) => refusals.push(error.message));
  });
  await kit.drover.submit({ agentId: "ann", action: "0" });
  await kit.settle();
  const depths = (await kit.drover.tasks()).tasks.map(({ action }) => Number(action));
  assert.deepEqual(
    depths,
    Array.from({ length: 17 }, (_, depth) => depth),
  );
  assert.deepEqual(refusals.length, 1);
  assert.match(refusals[0] ?? "", /16 levels/);
});

test("a task has at most 1000 children, however often they end", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { resultTtl: 1, remember: 1, maxBatch: 1000 } } });
  const gate = Promise.withResolvers<void>();
  await withRuns(kit, {
    parent: ({ signal }) => {
      signal.addEventListener("abort", () => gate.resolve());
      return gate.promise;
    },
  });
  await submit(kit, "parent");
  await kit.settle();
  const tasks = Array.from({ length: 1000 }, () => ({ action: "work" }));
  const { accepted, groupId } = await kit.drover.submitChildren("parent", 1, { tasks });
  assert.equal(accepted, 1000);
  assert.match(groupId ?? "", /^grp_/);
  await kit.settle();
  await kit.clock.advance(10_000);
  assert.equal((await kit.drover.tasks()).count, 1, "all of them are over, and their records gone");
  await assert.rejects(kit.drover.submitChild("parent", 1, { action: "work" }), /1000 children of parent/);
  gate.resolve();
});

test("in a batch of children a bad one turns away itself alone", async () => {
  await using kit = await createTestDrover();
  let answer: unknown = null;
  await withRuns(kit, {
    parent: async () => {
      const tasks = [
        { action: "work", id: "a" },
        { action: "work", project: "other" },
        7,
        { action: "work", needs: ["a"] },
      ];
      answer = await kit.drover.submitChildren("parent", 1, { tasks: tasks as never });
    },
  });
  await submit(kit, "parent");
  await kit.settle();
  const { tasks } = answer as { tasks: { state: string; error?: string }[] };
  assert.deepEqual(
    tasks.map(({ state, error }) => (state === "rejected" ? error?.split(" ")[0] : "taken")),
    ["taken", "project", "tasks[2]", "taken"],
  );
});
