/**
 * Plans: put as a whole or not at all, held, gone on with, paused, cancelled and forgotten as one.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkInvariants } from "../../core/invariants/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import type { DroverError } from "../base/drover-error.ts";
import type { AssignedTask } from "../workers/local-workers.ts";

const FILE = {
  defaults: { agent: "ann" },
  tasks: {
    build: { run: "make" },
    test: { run: "make test", needs: "build", labels: { kind: "check" } },
    ship: { run: "make ship", needs: ["build", "test"], approval: { question: "ship it?" } },
  },
};
const VALUE = "$".concat("{x}");
const some = (counts: Readonly<Record<string, number>>): object =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
const nameOf = (task: AssignedTask): string => String(task.params?.task);

/** A worker that does what `act` says of a task by its name; what it started is in the answer. */
async function working({ drover }: TestDrover, act: (name: string) => unknown = () => null): Promise<string[]> {
  const started: string[] = [];
  await drover.worker({ id: "w", slots: 10, actions: ["*"] }, async (task) => {
    started.push(nameOf(task));
    return act(nameOf(task));
  });
  return started;
}
const failing = (message: string): never => {
  throw Object.assign(new Error(message), { permanent: true });
};
const sound = ({ drover }: TestDrover): void => assert.deepEqual(checkInvariants(drover.state), []);

test("a task of a plan may wait for its children", async () => {
  await using kit = await createTestDrover();
  const { tasks } = await kit.drover.plans.put("tree", { tasks: { grow: { run: "grow", wait: "children" } } });
  assert.equal((await kit.drover.task(tasks[0]?.taskId ?? "")).wait, "children");
});

test("a command uses no tokens unless the plan says so: no budget holds it", async () => {
  await using kit = await createTestDrover({ config: { projects: { p: { budget: { limit: 100, window: "1h" } } } } });
  await kit.drover.submit({
    id: "before",
    agentId: "ann",
    action: "x",
    project: "p",
    type: "code",
    estimatedTokens: 100,
  });
  await kit.drover.worker(
    { id: "w", slots: 1, actions: ["*"] },
    (_task, context) => void context.usage({ inputTokens: 100 }),
  );
  await kit.settle();
  const tasks = {
    free: { run: "make" },
    paid: { run: "make", tokens: 5 },
    agent: { preset: "claude", prompt: "make" },
  } as const;
  await kit.drover.plans.put("mixed", { defaults: { project: "p", type: "code" }, tasks });
  await kit.settle();
  const { tasks: shown } = await kit.drover.plans.get("mixed");
  assert.deepEqual(shown.map(({ name, state }) => [name, state]).sort(), [
    ["agent", "queued"],
    ["free", "done"],
    ["paid", "queued"],
  ]);
});

test("a plan becomes tasks that carry its work, and is shown task by task", async () => {
  await using kit = await createTestDrover();
  const put = await kit.drover.plans.put("release", FILE, { directory: "/srv/app" });
  assert.deepEqual([put.submitted, put.retried, put.kept, put.cancelled, put.warnings], [3, 0, 0, 0, []]);
  assert.deepEqual(
    [put.id, put.groupId, put.state, put.total, put.directory],
    [...["release", "plan:release", "running", 3, "/srv/app"]],
  );
  assert.deepEqual(some(put.counts), { queued: 1, waiting: 2 });
  assert.deepEqual(
    put.tasks.map(({ name, needs, state }) => ({ name, needs, state })),
    [
      { name: "build", needs: [], state: "queued" },
      { name: "test", needs: ["build"], state: "waiting" },
      { name: "ship", needs: ["build", "test"], state: "waiting" },
    ],
  );
  const [build = { taskId: "" }, check = { taskId: "" }] = put.tasks;
  assert.match(build.taskId, /^release\.build\.[0-9a-f]{12}\.[0-9a-f]{8}$/);
  const task = await kit.drover.task(check.taskId);
  assert.deepEqual(task.needs, { build: build.taskId });
  assert.deepEqual(
    [task.action, task.agentId, task.group, task.labels],
    ["exec", "ann", "plan:release", { kind: "check" }],
  );
  assert.deepEqual(task.params, {
    plan: "release",
    task: "test",
    work: {
      command: { kind: "line", line: "make test" },
      ...{ cwd: "/srv/app", env: {}, passEnv: [], input: "", worktree: null },
    },
  });
  sound(kit);
});

test("what a task says of its worker is the task's", async () => {
  await using kit = await createTestDrover();
  const tasks = { train: { run: "train", capabilities: ["gpu"], zone: "eu-1" } };
  const { tasks: put } = await kit.drover.plans.put("fit", { tasks });
  const { capabilities, zone } = await kit.drover.task(put[0]?.taskId ?? "");
  assert.deepEqual([capabilities, zone], [["gpu"], "eu-1"]);
});

test("the same plan again changes nothing, also after a crash; an edit runs what it touches", async () => {
  const data = mkdtempSync(join(tmpdir(), "drover-plans-"));
  try {
    const first = await (async () => {
      await using kit = await createTestDrover({ data });
      return kit.drover.plans.put("release", FILE);
    })();
    await using kit = await createTestDrover({ data });
    const { drover } = kit;
    const again = await drover.plans.put("release", FILE);
    assert.deepEqual([again.submitted, again.kept, again.cancelled], [0, 3, 0]);
    assert.deepEqual(again.tasks, first.tasks);
    const started = await working(kit);
    await drover.ended(again.tasks[1]?.taskId ?? "");
    assert.deepEqual(started, ["build", "test"]);
    const edited = { ...FILE, tasks: { ...FILE.tasks, test: { run: "make check", needs: "build" } } };
    const put = await drover.plans.put("release", edited);
    assert.deepEqual([put.submitted, put.kept, put.cancelled], [2, 1, 1], "ship was parked, and is another one now");
    await drover.ended(put.tasks[1]?.taskId ?? "");
    assert.deepEqual(started, ["build", "test", "test"]);
    sound(kit);
  } finally {
    rmSync(data, { recursive: true });
  }
});

test("what is done stays done for as long as the plan is known, and is forgotten with it", async () => {
  const scheduler = { resultTtl: 1000, failedTtl: 1000, planTtl: "1h" };
  await using kit = await createTestDrover({ config: { scheduler } });
  const { drover } = kit;
  const started = await working(kit);
  const tasks = { a: "true", b: { run: "true", needs: "a" } };
  const { tasks: views } = await drover.plans.put("p", { tasks });
  await drover.submit({ id: "other", agentId: "ann", action: "x" });
  await kit.settle();
  await kit.clock.advance(60_000);
  assert.equal(drover.state.tasks.has("other" as never), false);
  assert.equal((await drover.plans.get("p")).state, "done");
  assert.deepEqual([(await drover.plans.put("p", { tasks })).kept, started.length], [2, 3]);
  sound(kit);
  await kit.clock.advance(3_600_000);
  await assert.rejects(drover.plans.get("p"), {
    code: "not_found",
    message: /no plan is called p, or it was forgotten/,
  });
  assert.equal(drover.state.tasks.size, 0, "the records went with it");
  sound(kit);
  const anew = await drover.plans.put("p", { tasks });
  assert.equal(anew.submitted, 2);
  assert.match(anew.tasks[0]?.taskId ?? "", /^p\.2\.a\./, "its ids are taken still");
  assert.notEqual(anew.tasks[0]?.taskId, views[0]?.taskId);
});

test("what is left out of a put is part of the plan all the same, and is not done again", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000 } } });
  const { plans } = kit.drover;
  const started = await working(kit);
  const tasks = { a: "true", b: "true", gone: "true" };
  await plans.put("p", { tasks });
  await kit.settle();
  const { gone: _, ...rest } = tasks;
  const some = await plans.put("p", { tasks: rest }, { only: ["a"] });
  assert.deepEqual([some.total, some.kept], [2, 2]);
  await kit.clock.advance(60_000);
  const all = await plans.put("p", { tasks });
  assert.deepEqual([all.kept, all.submitted], [2, 1], "what was taken out of the document had its own time");
  await kit.settle();
  assert.deepEqual(started, ["a", "b", "gone", "gone"]);
  sound(kit);
});

test("a paused plan starts nothing, what runs may end, and nothing else is held up", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const started = await working(kit, (name) => {
    const gate = Promise.withResolvers<void>();
    gates.set(name, gate);
    return gate.promise;
  });
  await drover.plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" }, c: "true" } });
  await kit.settle();
  const summary = await drover.plans.pause("p");
  assert.deepEqual([summary.state, summary.pausedBy], ["paused", "asked"]);
  gates.get("a")?.resolve();
  await kit.settle();
  const [, , b] = (await drover.plans.get("p")).tasks;
  assert.deepEqual([b?.name, b?.state], ["b", "queued"]);
  const shut = (await drover.why(b?.taskId ?? "")).conditions.filter(({ ok }) => !ok);
  assert.deepEqual(
    shut.map(({ code, detail }) => [code, detail]),
    [["plan-paused", "the plan p is paused (drover plan p --resume)"]],
  );
  await drover.submit({ agentId: "ann", action: "exec", params: { task: "other" } });
  await kit.settle();
  assert.deepEqual(started, ["a", "c", "other"]);
  const warned = await drover.plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" }, c: "true" } });
  assert.deepEqual(warned.warnings, ["the plan p is paused; resume it to go on"]);
  sound(kit);
  assert.equal((await drover.plans.resume("p")).state, "running");
  await kit.settle();
  assert.deepEqual(started, ["a", "c", "other", "b"]);
  sound(kit);
  for (const gate of gates.values()) gate.resolve();
  await kit.settle();
});

test("a plan that fails fast starts nothing more after a failure, and goes on when it is put or retried", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { maxInFlight: 1 } } });
  const { drover } = kit;
  let isBroken = true;
  const started = await working(kit, (name) => (name === "a" && isBroken ? failing("no luck") : null));
  const file = { tasks: { a: "true", b: "true", c: { run: "true", needs: "a" } } };
  await drover.plans.put("p", file, { failFast: true });
  await kit.settle();
  assert.deepEqual(started, ["a"]);
  const { state, pausedBy, counts } = await drover.plans.get("p");
  assert.deepEqual([state, pausedBy, some(counts)], ["paused", "failed", { failed: 1, queued: 1, skipped: 1 }]);
  sound(kit);
  isBroken = false;
  const put = await drover.plans.put("p", file, { failFast: true });
  assert.deepEqual([put.state, put.retried, put.kept], ["running", 2, 1]);
  await kit.settle();
  assert.deepEqual(started, ["a", "b", "a", "c"]);
  assert.equal((await drover.plans.get("p")).state, "done");
  sound(kit);
});

test("a whole plan is cancelled, and run again", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  await drover.plans.put("p", { tasks: { a: "true", b: { run: "true", needs: "a" } } });
  const cancelled = await drover.plans.cancel("p", { reason: "enough" });
  assert.deepEqual([cancelled.count, cancelled.state, some(cancelled.counts)], [2, "cancelled", { cancelled: 2 }]);
  assert.deepEqual(
    (await drover.plans.get("p")).tasks.map(({ reason }) => reason),
    ["enough", "enough"],
  );
  const retried = await drover.plans.retry("p");
  assert.deepEqual([retried.count, retried.state], [2, "running"]);
  await assert.rejects(drover.plans.remove("p"), {
    code: "conflict",
    message: "the plan p has not ended; cancel it first",
  });
  await working(kit);
  await kit.settle();
  assert.deepEqual(await drover.plans.remove("p"), { status: "removed", id: "p" });
  sound(kit);
});

test("what failed is left alone if that is asked; what is no longer there is cancelled", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  await working(kit, (name) => (name === "a" ? failing("no") : null));
  const file = { tasks: { a: "true", b: { run: "true", needs: "a" }, c: { run: "true", approval: true } } } as const;
  await drover.plans.put("p", file);
  await kit.settle();
  const left = await drover.plans.put("p", file, { retryFailed: false });
  assert.deepEqual([left.kept, left.retried], [3, 0]);
  const only = await drover.plans.put("p", file, { only: ["a"], retryFailed: false });
  assert.deepEqual([only.total, only.cancelled, only.state], [3, 0, "running"], "c still waits for its approval");
  const other = await drover.plans.put("p", { tasks: { a: "true" } }, { retryFailed: false });
  assert.deepEqual([other.total, other.cancelled, other.state], [1, 1, "failed"], "c is no part of it any more");
  await assert.rejects(drover.plans.put("p", file, { only: ["d"] }), {
    code: "bad_request",
    message: /only\[0\] is "d"/,
  });
  sound(kit);
});

test("fresh runs all of it again under other ids", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const started = await working(kit);
  const file = { tasks: { a: "true", b: { run: "true", needs: "a" } } };
  await drover.plans.put("p", file);
  await kit.settle();
  const fresh = await drover.plans.put("p", file, { fresh: true });
  assert.deepEqual([fresh.submitted, fresh.kept, fresh.total], [2, 0, 2]);
  assert.match(fresh.tasks[0]?.taskId ?? "", /^p\.2\.a\./);
  await kit.settle();
  assert.equal((await drover.plans.put("p", file)).kept, 2);
  assert.deepEqual(started, ["a", "b", "a", "b"]);
  sound(kit);
});

test("every mistake is reported at once, and nothing is put", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const bad = { tasks: { a: { run: "x", need: "b" }, b: { run: "x", needs: "c" } }, limits: { maxInFlight: 0 } };
  await assert.rejects(drover.plans.put("p", bad), (error: DroverError) => {
    const paths = (error.details.problems as { path: string }[]).map(({ path }) => path);
    assert.deepEqual(paths.sort(), ["limits.maxInFlight", "tasks.a.need", "tasks.b.needs"]);
    return error.code === "bad_request" && /and 2 more: see details.problems/.test(error.message);
  });
  await assert.rejects(drover.plans.put("p", { ...FILE, name: "q" }), { code: "bad_request", message: /name is "q"/ });
  await assert.rejects(drover.plans.put("p", null as never), { code: "bad_request" });
  await assert.rejects(drover.plans.put("p q", FILE), { code: "bad_request" });
  assert.equal(drover.state.plans.size + drover.state.tasks.size, 0);
});

test("where one task is refused nothing is submitted", async () => {
  const scheduler = { maxPerAgent: 2 };
  await using kit = await createTestDrover({
    config: { scheduler, projects: { autoCreate: false, red: {} } },
  });
  const { drover } = kit;
  const three = { tasks: { a: "true", b: "true", c: "true" }, defaults: { project: "red" } };
  await assert.rejects(drover.plans.put("p", three), { code: "queue_full", message: /agent me has 3 tasks queued/ });
  const mixed = { tasks: { a: { run: "true", project: "red" }, b: { run: "true", project: "blue" } } };
  await assert.rejects(drover.plans.put("p", mixed), { code: "not_found", message: /no project is called blue/ });
  assert.equal(drover.state.plans.size + drover.state.tasks.size, 0);
  const { warnings } = await drover.plans.put("p", {
    ...three,
    tasks: { a: "true" },
    budget: 5,
    workers: { slots: 1 },
  });
  assert.deepEqual(warnings, [
    "the sections are for running alone, and not used here: workers, budget; the server has its own",
  ]);
});

test("plans are listed in pages, the one put last first, and as many are kept as there may be", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { plansMax: 2 } } });
  const { drover } = kit;
  const file = (agent: string) => ({ tasks: { a: { run: "true", agent } } });
  await drover.plans.put("one", file("ann"));
  await drover.plans.put("two", file("bob"));
  await assert.rejects(drover.plans.put("three", file("ann")), { code: "limit", message: /there are 2 plans already/ });
  const page = await drover.plans.list({ limit: 1 });
  assert.deepEqual([page.plans[0]?.id, page.count], ["two", 1]);
  assert.equal("tasks" in (page.plans[0] ?? {}), false);
  const next = await drover.plans.list({ limit: 1, cursor: page.nextCursor ?? "" });
  assert.deepEqual([next.plans[0]?.id, next.nextCursor], ["one", undefined]);
  assert.deepEqual(
    (await drover.plans.list({ agentId: "bob" })).plans.map(({ id }) => id),
    ["two"],
  );
  await drover.plans.cancel("one");
  await drover.plans.put("three", file("ann"));
  assert.deepEqual(
    (await drover.plans.list()).plans.map(({ id }) => id),
    ["three", "two"],
  );
  sound(kit);
});

test("a plan is refused as a whole where all of its tasks together are too many", async () => {
  const values = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
  const backpressure = { rejectThreshold: 0.5, acceptWithoutWorkers: true };
  const rows: [what: string, scheduler: object, task: object, count: number, code: string | null][] = [
    ["labels", {}, { labels: Object.fromEntries(values(30).map((at) => [`k${at}`, VALUE])) }, 7000, "limit"],
    ["projects", {}, null as never, 150, "limit"],
    ["the last tenth of the queue", { maxQueue: 1000, maxPerAgent: 1000 }, {}, 950, "queue_full"],
    [
      "half of the queue, where one more is refused",
      { maxQueue: 1000, maxPerAgent: 1000, backpressure },
      {},
      600,
      null,
    ],
  ];
  for (const [what, scheduler, task, count, code] of rows) {
    await using kit = await createTestDrover({ config: { scheduler } });
    const { drover } = kit;
    const tasks =
      what === "projects"
        ? Object.fromEntries(values(count).map((at) => [`t${at}`, { run: "x", project: `p${at}` }]))
        : { a: { for: { x: values(count) }, run: "x", ...task } };
    const put = drover.plans.put("p", { tasks });
    if (code === null) assert.equal((await put).submitted, count, what);
    else await assert.rejects(put, { code }, what);
    assert.equal(drover.state.tasks.size, code === null ? count : 0, what);
    assert.equal(drover.state.plans.size, code === null ? 1 : 0, what);
    sound(kit);
  }
});

test("what was cancelled stays so where what it needs failed and is not run again", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const tasks = { a: "false", b: { run: "true", needs: "a" } };
  const { tasks: views } = await drover.plans.put("p", { tasks });
  await drover.cancel(views[1]?.taskId ?? "");
  await working(kit, () => failing("no"));
  await drover.ended(views[0]?.taskId ?? "");
  const again = await drover.plans.put("p", { tasks }, { retryFailed: false });
  assert.deepEqual([again.retried, again.kept], [0, 2]);
  assert.deepEqual(some(again.counts), { failed: 1, cancelled: 1 });
});

test("a put is judged by the sum of what it brings, before any of it is done", async () => {
  const tasks = (count: number, line = "true") =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, line]));
  await using kit = await createTestDrover({ config: { scheduler: { maxQueue: 100, maxPerAgent: 100 } } });
  const { drover } = kit;
  await assert.rejects(drover.plans.put("p", { tasks: tasks(95) }), {
    code: "queue_full",
    message: /90 tasks are queued, and the last 10 places/,
  });
  assert.equal(drover.state.plans.size + drover.state.tasks.size, 0, "nothing is left of it");
  await drover.plans.put("p", { tasks: tasks(60) });
  const edited = await drover.plans.put("p", { tasks: tasks(60, "false") });
  assert.deepEqual([edited.submitted, edited.cancelled], [60, 60], "what it cancels makes room for what it submits");
  await drover.plans.cancel("p");
  for (let index = 0; index < 40; index++) await drover.submit({ agentId: "me", action: "x" });
  const { seq } = drover.state;
  await assert.rejects(drover.plans.put("p", { tasks: tasks(60, "false") }), { code: "queue_full" }, "retries count");
  assert.equal(drover.state.seq, seq);
  sound(kit);
});

test("unregistered projects of a put are counted together", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const spread = Object.fromEntries(
    Array.from({ length: 101 }, (_, index) => [`t${index}`, { run: "true", project: `p${index}` }]),
  );
  await assert.rejects(drover.plans.put("p", { tasks: spread }), /100 unregistered projects of agent me/);
  assert.equal(drover.state.plans.size + drover.state.tasks.size, 0);
  const { t100: _, ...fewer } = spread;
  assert.equal((await drover.plans.put("p", { tasks: fewer })).submitted, 100);
});
