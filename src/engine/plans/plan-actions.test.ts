/**
 * Tasks of a plan that are no commands: any worker takes them by their action, and sees its params filled in.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { join, one } from "../../../test/kits/hand-worker.ts";
import { readPlanValue } from "../../plan/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";

const expression = (text: string): string => `\${{ ${text} }}`;
const value = (text: string): string => `\${${text}}`;

/** Workers that answer what `answers` has for a name, and note the params they see. */
async function working({ drover }: TestDrover, answers: Readonly<Record<string, unknown>>) {
  const seen: [string, unknown][] = [];
  await drover.worker({ id: "commands", actions: ["exec"] }, ({ params }) => answers[String(params?.task)]);
  await drover.worker({ id: "browser", actions: ["browse"], slots: 10 }, ({ params, type = "" }) => {
    seen.push([type, params]);
  });
  return seen;
}

async function stateOf({ drover }: TestDrover, name: string): Promise<unknown> {
  const { tasks = [] } = await drover.plans.get("p");
  const { state, reason } = tasks.find((task) => task.name === name) ?? {};
  return reason === undefined ? state : [state, reason];
}

test("its params are filled in from its needs: a text that is one expression becomes the value itself", async () => {
  await using kit = await createTestDrover();
  const seen = await working(kit, { find: { pages: ["a", "b"], count: 2, title: "x $(y)" } });
  const params = {
    pages: expression("needs.find.result.pages"),
    all: [{ count: expression("needs.find.result.count"), isMany: expression("needs.find.result.count > 1") }],
    title: `${value("lang")}: ${expression("needs.find.result.title")} (${expression("needs.find.result.count")})`,
    plain: 7,
    own: `$${expression("not mine")}`,
  };
  const tasks = {
    find: { run: "true", worktree: false },
    read: { action: "browse", needs: "find", for: { lang: ["en"] }, params },
    plain: { action: "browse", type: "own", params: { url: "https://example.com" } },
  };
  await kit.drover.plans.put("p", { defaults: { env: { TOKEN: "x" }, worktree: true }, tasks });
  await kit.settle();
  assert.deepEqual(seen, [
    ["own", { url: "https://example.com" }],
    [
      "browse",
      {
        pages: ["a", "b"],
        all: [{ count: 2, isMany: true }],
        title: "en: x $(y) (2)",
        plain: 7,
        own: expression("not mine"),
      },
    ],
  ]);
  assert.equal((await kit.drover.plans.get("p")).state, "done");
  const edited = await kit.drover.plans.put("p", { defaults: { env: { TOKEN: "y" }, cwd: "sub" }, tasks });
  assert.deepEqual([edited.submitted, edited.kept], [2, 1], "what is said of commands is nothing to an action");
});

test("a condition that does not hold skips it, and a value that is not there fails it for good", async () => {
  await using kit = await createTestDrover();
  const seen = await working(kit, { a: { ok: false }, large: "x".repeat(250_000), larger: "y".repeat(250_000) });
  await kit.drover.plans.put("p", {
    tasks: {
      a: "true",
      large: "true",
      larger: "true",
      off: { action: "browse", if: "false" },
      on: { action: "browse", if: "1 == 1" },
      skipped: { action: "browse", needs: "a", if: "needs.a.result.ok" },
      missing: { action: "browse", needs: "a", attempts: 5, params: { x: [expression("needs.a.result.no.such")] } },
      big: { action: "browse", needs: ["large", "larger"], params: { x: expression("needs.larger.result") } },
      state: { action: "browse", needs: ["large", "larger"], params: { x: expression("needs.larger.state") } },
    },
  });
  await kit.settle();
  assert.deepEqual(seen, [
    ["browse", {}],
    ["browse", { x: "done" }],
  ]);
  assert.deepEqual(await stateOf(kit, "off"), ["skipped", "if: false"]);
  assert.deepEqual(await stateOf(kit, "skipped"), ["skipped", "if: needs.a.result.ok"]);
  assert.deepEqual(await stateOf(kit, "missing"), ["failed", "needs.a.result.no.such is not there"]);
  assert.match(
    String(await stateOf(kit, "big")),
    /^failed,needs\.larger\.result is part of a result of 25\d+ bytes, too/,
  );
});

test("a short plan does not stand for more than a task may have", async () => {
  await using kit = await createTestDrover();
  const seen = await working(kit, { a: "x".repeat(100_000) });
  const named = expression("needs.a.result");
  await kit.drover.plans.put("p", {
    tasks: {
      a: "true",
      some: { action: "browse", needs: "a", params: { list: Array(10).fill(named) } },
      list: { action: "browse", needs: "a", params: { list: Array(3000).fill(named) } },
      text: { action: "browse", needs: "a", params: { text: `: ${named}`.repeat(3000) } },
    },
  });
  await kit.settle();
  assert.equal(seen.length, 1);
  const reason = "its expressions stand for more than 1048576 bytes, the most of one task";
  for (const name of ["list", "text"]) assert.deepEqual(await stateOf(kit, name), ["failed", reason]);
});

test("a worker over the wire sees the same, and one whose condition fails takes none of its time", async () => {
  await using kit = await createTestDrover();
  await kit.drover.worker({ id: "commands", actions: ["exec"] }, () => ({ url: "/x", ok: 0 }));
  const ann = await join(kit, { slots: 5, actions: ["browse"] });
  await kit.drover.plans.put("p", {
    tasks: {
      a: "true",
      read: { action: "browse", needs: "a", params: { url: expression("needs.a.result.url") } },
      skipped: { action: "browse", needs: "a", if: "needs.a.result.ok" },
      off: { action: "browse", if: false },
      plain: { action: "browse", params: { x: 1 } },
    },
  });
  await kit.settle();
  const { assignments } = await ann.sync({ want: 5 });
  assert.deepEqual(
    assignments.map(({ task }) => [task.params, task.inputs?.a?.result]),
    [
      [{ x: 1 }, undefined],
      [{ url: "/x" }, { url: "/x", ok: 0 }],
    ],
  );
  assert.deepEqual(await stateOf(kit, "off"), ["skipped", "if: false"]);
  assert.deepEqual(await stateOf(kit, "skipped"), ["skipped", "if: needs.a.result.ok"]);
  await ann.sync({ results: assignments.map(({ taskId }) => ({ ...one(taskId), outcome: "done" })) });
  assert.equal((await kit.drover.plans.get("p")).state, "done");
});

test("it is filled in also where its body is at hand, as of a task that was just submitted", async () => {
  await using kit = await createTestDrover();
  const ann = await join(kit, { slots: 5, actions: ["browse"] });
  const call = (condition?: string): object => ({
    work: { command: { kind: "call", action: "browse", params: { x: 1 } }, ...(condition && { if: condition }) },
  });
  await kit.drover.submit({ id: "on", agentId: "ann", action: "browse", params: call() });
  await kit.drover.submit({ id: "off", agentId: "ann", action: "browse", params: call("1 == 2") });
  const { assignments } = await ann.sync({ want: 5 });
  assert.deepEqual(
    assignments.map(({ task }) => [task.taskId, task.params]),
    [["on", { x: 1 }]],
  );
  assert.equal((await kit.drover.task("off")).state, "skipped");
});

test("what makes no sense with an action is refused by its name", () => {
  const problems = (tasks: object): string[] => {
    const read = readPlanValue({ tasks }, "p");
    return read.ok ? [] : read.failure.map(({ message }) => message);
  };
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level++) deep = [deep];
  assert.deepEqual(problems({ a: { action: "browse", params: { x: [1, { y: null }] } } }), []);
  assert.deepEqual(
    problems({
      a: { action: "browse", run: "x" },
      b: { run: "x", params: {} },
      c: { action: "exec" },
      d: { action: "browse", cwd: "x", outputs: "y", loop: { until: "z", max: 2 }, input: "w" },
      e: { action: "browse", needs: "c", params: { x: { y: expression("needs.d.result") } } },
      f: { action: "browse", params: { deep } },
      g: { action: "browse", needs: "c", params: { [expression("needs.c.state")]: 1 } },
    }),
    [
      "a has both run and action; a task does one thing",
      "b.params means nothing without action",
      "c.action is exec; give the command as run:",
      "d.input means nothing with action",
      "d.cwd means nothing with action",
      "d.outputs means nothing with action",
      "d.loop.until means nothing with action: its worker says whether there is another round",
      "f.params is nested more than 32 deep",
      "e: d is not among its needs; did you mean c?",
      "g.params has an expression in the name of a field; those stand in values",
    ],
  );
});
