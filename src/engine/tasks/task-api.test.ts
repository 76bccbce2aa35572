/**
 * What callers do with tasks: batches, pages, cancel, retry, patch, and what becomes of those turned away.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskState } from "../../protocol/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { openDrover } from "../drover.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const stateOf = async ({ drover }: TestDrover, id: string): Promise<TaskState> => (await drover.task(id)).state;

type Item = Record<string, unknown>;
const batch = (...tasks: Item[]) => ({ agentId: "ann", tasks: tasks as never[] });
const item = (id: string, ...needs: string[]): Item => ({ id, action: "build", ...(needs.length ? { needs } : {}) });

test("items of a batch may need each other in any order, and keep the place they were given in", async () => {
  const { drover } = await createTestDrover();
  const answer = await drover.submitBatch(batch(item("c", "b"), item("b", "a"), item("a"), { action: "nameless" }));
  assert.deepEqual([answer.submitted, answer.accepted, answer.rejected], [4, 4, 0]);
  assert.deepEqual(
    answer.tasks.map(({ taskId, state, position }) => [taskId?.replace(/^tsk_\d+/, "own"), state, position]),
    [
      ["c", "waiting", undefined],
      ["b", "waiting", undefined],
      ["a", "queued", 1],
      ["own", "queued", 2],
    ],
  );
});

const bad: { name: string; items: Item[]; errors: (RegExp | null)[] }[] = [
  {
    name: "L7 C10 a cycle is refused with its path, and only its own items and those behind it",
    items: [item("a", "c"), item("b", "a"), item("c", "b"), item("d", "c"), item("free")],
    errors: [/cycle: a → c → b → a/, /cycle/, /cycle/, /needs names c, which was refused in the same batch/, null],
  },
  { name: "a task cannot need itself", items: [item("a", "a")], errors: [/cycle: a → a/] },
  {
    name: "a bad item never fails the batch, and who needs it is told so",
    items: [{ ...item("a"), cpu: 1 }, item("b", "a"), item("c", "b"), { ...item("d"), parent: "a" }, item("e")],
    errors: [
      /cpu is not a known field/,
      /needs names a, which was refused in the same batch/,
      /needs names b, which was refused/,
      /parent names a, which was refused/,
      null,
    ],
  },
  {
    name: "an unknown dependency is named",
    items: [item("a", "nobody"), item("b")],
    errors: [/needs names nobody, which no task has/, null],
  },
  {
    name: "an item may not name another agent",
    items: [{ ...item("a"), agentId: "bob" }, item("b")],
    errors: [/tasks\[0\]\.agentId is "bob", and must be absent or ann, the agent of the batch/, null],
  },
  {
    name: "an item may name the agent of the batch itself",
    items: [{ ...item("a"), agentId: "ann" }, item("b")],
    errors: [null, null],
  },
  {
    name: "what is no object is refused by its place",
    items: [null as never, 5 as never, [] as never, item("a")],
    errors: [/tasks\[0\] is null/, /tasks\[1\] is 5/, /tasks\[2\]/, null],
  },
  {
    name: "the same id twice: the same body is the same task, another body a conflict",
    items: [item("a"), item("a"), { ...item("a"), action: "test" }],
    errors: [null, null, /exists with another body/],
  },
];
for (const { name, items, errors } of bad)
  test(name, async () => {
    const { drover } = await createTestDrover();
    const { tasks, accepted, rejected } = await drover.submitBatch(batch(...items));
    assert.equal(accepted, errors.filter((error) => error === null).length);
    assert.equal(rejected, items.length - accepted);
    for (const [index, error] of errors.entries()) {
      assert.equal(tasks[index]?.state === "rejected", error !== null);
      assert.match(tasks[index]?.error ?? "", error ?? /^$/);
    }
  });

test("too large a batch is refused as a whole; what does not fit any more is turned away one by one", async () => {
  const { drover } = await createTestDrover({ config: { scheduler: { maxBatch: 3, maxPerAgent: 2 } } });
  const before = drover.state.seq;
  await assert.rejects(drover.submitBatch(batch(item("a"), item("b"), item("c"), item("d"))), {
    code: "batch_too_large",
    details: { submitted: 4, max: 3 },
  });
  assert.equal(drover.state.seq, before);
  const answer = await drover.submitBatch(batch(item("a"), item("b"), item("c", "b")));
  assert.deepEqual([answer.accepted, answer.tasks[2]?.state, answer.tasks[2]?.taskId], [2, "rejected", "c"]);
  assert.equal(await drover.wait("c").then(({ state }) => state), "rejected");
});

test("P18 P21 what is turned away is counted, kept for a while by its id, and then forgotten", async () => {
  const config = { scheduler: { maxQueue: 1, resultTtl: "5m" } };
  const kit = await createTestDrover({ config });
  await kit.drover.submit(task("in"));
  const head = kit.drover.state.seq;
  for (let index = 0; index < 1001; index++)
    await assert.rejects(kit.drover.submit(task(`r${index}`, { agentId: "bob" })), {
      code: "queue_full",
      retryable: true,
      message: /maxQueue 1/,
    });
  await assert.rejects(kit.drover.submit({ agentId: "bob", action: "x" }), (error: { details: { taskId: string } }) => {
    assert.match(error.details.taskId, /^rej_/);
    return true;
  });
  assert.equal(kit.drover.state.seq, head, "a full system does not fill its log with refusals");
  await assert.rejects(kit.drover.task("r1"), { code: "not_found" }, "the last thousand are kept");
  assert.equal(await stateOf(kit, "r2"), "rejected");
  const view = await kit.drover.task("r1000");
  assert.deepEqual([view.state, view.agentId, view.taskId], ["rejected", "bob", "r1000"]);
  const { metrics } = await kit.drover.stats();
  assert.deepEqual([metrics.tasksSubmitted, metrics.tasksRejected], [1003, 1002]);
  assert.deepEqual([metrics.agents.bob?.submitted, metrics.agents.bob?.rejected], [1002, 1002]);
  assert.deepEqual([metrics.agents.ann?.submitted, metrics.agents.ann?.rejected], [1, 0]);
  await kit.clock.advance(299_999);
  assert.equal(await stateOf(kit, "r1000"), "rejected");
  await kit.clock.advance(1);
  await assert.rejects(kit.drover.task("r1000"), { code: "not_found" });
});

test("a page stays good while tasks come, end and are forgotten", async () => {
  const kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000 } } });
  for (const id of "abcdefgh") await kit.drover.submit(task(id, { agentId: id < "e" ? "ann" : "bob" }));
  const first = await kit.drover.tasks({ limit: 3 });
  assert.deepEqual([first.count, first.tasks.map(({ taskId }) => taskId)], [3, ["a", "b", "c"]]);
  await kit.drover.cancel("a");
  await kit.drover.cancel("d");
  await kit.clock.advance(1000);
  await kit.drover.submit(task("i"));
  const rest = await kit.drover.tasks({ limit: 100, cursor: first.nextCursor as string });
  assert.deepEqual(
    rest.tasks.map(({ taskId }) => taskId),
    ["e", "f", "g", "h", "i"],
  );
  assert.ok(!("nextCursor" in rest));
  const exact = await kit.drover.tasks({ limit: 7 });
  assert.equal(exact.nextCursor, undefined, "seven are left, and none behind them");
  const bobs = await kit.drover.tasks({ agentId: "bob", state: ["queued", "running"], limit: 2 });
  assert.deepEqual([bobs.count, bobs.nextCursor !== undefined], [2, true]);
});

test("cancelWhere cancels what the filter names and lives, and says how many", async () => {
  const kit = await createTestDrover();
  for (const [id, more] of Object.entries({ a: {}, b: { type: "code" }, c: { project: "p" }, d: { agentId: "bob" } }))
    await kit.drover.submit(task(id, more));
  await kit.drover.cancel("a");
  assert.equal((await kit.drover.cancelWhere({ project: "p" })).count, 1);
  assert.equal((await kit.drover.cancelWhere({ state: ["queued"], agentId: "ann" })).count, 1);
  assert.deepEqual(
    [await stateOf(kit, "b"), await stateOf(kit, "c"), await stateOf(kit, "d")],
    ["cancelled", "cancelled", "queued"],
  );
  for (const empty of [{}, { project: undefined }])
    await assert.rejects(kit.drover.cancelWhere(empty as never), {
      message: /^filter is \{\}, .*agentId, project, state, type, label, group, parent and root/,
    });
  assert.equal((await kit.drover.cancelWhere({ all: true })).count, 1);
  assert.equal((await kit.drover.cancelWhere({ all: true })).count, 0);
});

test("cancelWhere lets others have their turn while it cancels many", async () => {
  const config = { scheduler: { maxQueue: 2000, maxPerAgent: 2000 } };
  const kit = await createTestDrover({ config });
  for (let at = 0; at < 1000; at++) await kit.drover.submit(task(`t${at}`, {}));
  const cancelling = kit.drover.cancelWhere({ all: true });
  await kit.drover.cancel("t999");
  const isHalfway = kit.drover.state.queued > 0;
  const { count } = await cancelling;
  assert.deepEqual([isHalfway, kit.drover.state.queued, count], [true, 0, 1000]);
});

test("cancelWhere leaves alone what began while it cancelled others, if its filter means what has not", async () => {
  const config = { scheduler: { maxQueue: 2000, maxPerAgent: 2000 } };
  const kit = await createTestDrover({ config });
  const begun: string[] = [];
  const ends = Promise.withResolvers<void>();
  for (let at = 0; at < 1000; at++) await kit.drover.submit(task(`t${at}`, {}));
  const cancelling = kit.drover.cancelWhere({ state: "queued" });
  await kit.drover.worker({ slots: 50 }, async ({ taskId }) => {
    begun.push(taskId);
    await ends.promise;
  });
  const { count } = await cancelling;
  ends.resolve();
  await kit.settle();
  assert.ok(begun.length > 0, "some have begun meanwhile");
  assert.equal(count, 1000 - begun.length);
  for (const id of begun) assert.equal((await kit.drover.task(id)).state, "done");
});

test("needs are judged when all of them have ended, also one that runs again meanwhile", async () => {
  const kit = await createTestDrover();
  const { drover } = kit;
  for (const id of ["a", "b"]) await drover.submit(task(id));
  await drover.submit(task("strict", { needs: ["a", "b"] }));
  await drover.submit(task("report", { needs: ["a", "b"], onDependencyFailure: "run" }));
  await drover.cancel("a");
  await kit.settle();
  assert.deepEqual([await stateOf(kit, "strict"), await stateOf(kit, "report")], ["waiting", "waiting"]);
  await drover.submit(task("late", { needs: ["a", "b"] }));
  assert.equal(await stateOf(kit, "late"), "waiting");
  await drover.retry("a");
  await drover.cancel("b");
  await kit.settle();
  assert.equal(await stateOf(kit, "strict"), "waiting", "a runs again");
  await drover.worker({}, () => 1);
  await kit.settle();
  assert.deepEqual(
    [await stateOf(kit, "a"), await stateOf(kit, "strict"), await stateOf(kit, "report"), await stateOf(kit, "late")],
    ["done", "skipped", "done", "skipped"],
  );
  assert.equal((await drover.task("strict")).error, "its dependency b is cancelled");
  await drover.submit(task("after", { needs: ["a", "b"] }));
  assert.equal(await stateOf(kit, "after"), "skipped", "all have ended already");
});

test("failed, cancelled and skipped tasks run again; live and done ones do not", async () => {
  const kit = await createTestDrover();
  let works = false;
  await kit.drover.worker({ slots: 9 }, ({ taskId }) => {
    if (!works && taskId === "failed") throw Object.assign(new Error("no"), { permanent: true });
  });
  await kit.drover.submit(task("failed"));
  await kit.drover.submit(task("skipped", { needs: ["failed"] }));
  await kit.drover.submit(task("cancelled", { notBefore: kit.clock.now() + 1000 }));
  await kit.drover.submit(task("live", { notBefore: kit.clock.now() + 1000 }));
  await kit.drover.cancel("cancelled");
  await kit.settle();
  assert.equal((await kit.drover.task("skipped")).error, "its dependency failed is failed");
  await assert.rejects(kit.drover.retry("skipped"), { code: "conflict", message: /depends on failed/ });
  await assert.rejects(kit.drover.retry("live"), { code: "conflict", message: /live is waiting/ });
  works = true;
  for (const id of ["failed", "skipped", "cancelled"]) await kit.drover.retry(id);
  await kit.settle();
  for (const id of ["failed", "skipped", "cancelled"]) assert.equal(await stateOf(kit, id), "done");
  await assert.rejects(kit.drover.retry("failed"), { code: "conflict" });
  await assert.rejects(kit.drover.cancel("failed"), { code: "conflict", message: /ended as done/ });
});

test("a retry waits for no instant, and a deadline that has passed no longer holds; one to come does", async () => {
  const kit = await createTestDrover();
  const at = (ms: number): string => new Date(kit.clock.now() + ms).toISOString();
  const soon = at(2000);
  await kit.drover.submit(task("early", { notBefore: at(60_000), deadline: at(90_000) }));
  await kit.drover.submit(task("late", { notBefore: at(500), deadline: at(1000) }));
  await kit.drover.submit(task("kept", { deadline: soon }));
  for (const id of ["early", "late", "kept"]) await kit.drover.cancel(id);
  await kit.clock.advance(1500);
  for (const id of ["early", "late", "kept"]) assert.equal((await kit.drover.retry(id)).state, "queued");
  assert.equal((await kit.drover.task("late")).deadline, undefined);
  assert.equal((await kit.drover.task("kept")).deadline, soon);
});

test("patch changes priority and deadline, clears a deadline, and leaves the rest", async () => {
  const kit = await createTestDrover();
  const order: string[] = [];
  await kit.drover.pause();
  for (const id of ["a", "b"]) await kit.drover.submit(task(id, { deadline: kit.clock.now() + 1000 }));
  const patched = await kit.drover.patch("b", { priority: "high" });
  assert.equal(patched.position, 1);
  assert.deepEqual((await kit.drover.patch("b", { priority: -200 })).warnings, [
    { type: "priority-clamped", asked: -200, given: -100 },
  ]);
  await kit.drover.patch("a", { deadline: null });
  await kit.drover.patch("b", { deadline: kit.clock.now() + 2000 });
  await assert.rejects(kit.drover.patch("b", { deadline: kit.clock.now() }), { code: "bad_request" });
  await kit.clock.advance(1999);
  await kit.drover.worker({}, ({ taskId }) => void order.push(taskId));
  await kit.drover.resume();
  await kit.settle();
  assert.deepEqual(order, ["b", "a"]);
  await assert.rejects(kit.drover.patch("a", { priority: 1 }), { code: "conflict" });
});

test("the same submit again is the same task, however its keys are ordered; another body is a conflict", async () => {
  const kit = await createTestDrover();
  await kit.drover.submit(task("t", { params: { a: 1, b: { c: 2, d: 3 } } }));
  const head = kit.drover.state.seq;
  const again = await kit.drover.submit({
    params: { b: { d: 3, c: 2 }, a: 1 },
    action: "build",
    id: "t",
    agentId: "ann",
  });
  assert.equal(again.taskId, "t");
  assert.equal(kit.drover.state.seq, head);
  await assert.rejects(kit.drover.submit(task("t")), { code: "conflict", details: { task: "t" } });
  await kit.drover.cancel("t");
  await kit.clock.advance(301_000);
  await assert.rejects(
    kit.drover.submit(task("t")),
    { code: "conflict" },
    "the id stays taken after the record expired",
  );
});

test("what a program asks in order happens in order, without waiting between", async () => {
  const { drover } = await createTestDrover();
  const answers = [drover.submit(task("a")), drover.submit(task("b", { needs: ["a"] })), drover.cancel("a")];
  await Promise.all(answers);
  assert.equal((await drover.wait("b")).state, "skipped");
});

test("answers above throttleAt carry throttle, and warnings say what would wait for ever", async () => {
  const { drover } = await createTestDrover({ config: { scheduler: { maxQueue: 4 } } });
  const first = await drover.submit(task("a"));
  assert.deepEqual([first.throttle, first.warnings?.[0]?.type], [undefined, "no-workers"]);
  await drover.worker({ capabilities: ["git"] }, () => new Promise(() => {}));
  const unfit = await drover.submit(task("b", { capabilities: ["gpu"] }));
  assert.deepEqual(unfit.warnings?.[0], {
    type: "never-fits",
    detail: "no known worker takes or offers capability gpu; the task waits for one that does",
  });
  for (const id of ["c", "d"]) await drover.submit(task(id));
  assert.equal((await drover.submit(task("e"))).throttle, true);
});

test("tasks that were turned away are in no list, and asking for one says where they are", async () => {
  const { drover } = await createTestDrover({ config: { scheduler: { maxQueue: 1 } } });
  await drover.submit(task("a"));
  await assert.rejects(drover.submit(task("b")), { code: "queue_full" });
  assert.equal((await drover.task("b")).state, "rejected");
  for (const state of ["rejected", ["done", "rejected"]] as const)
    assert.deepEqual(
      (await drover.tasks({ state })).tasks.map(({ taskId }) => taskId),
      ["b"],
    );
});

test("a task is shown with the priority and deadline it has now", async () => {
  const { drover } = await createTestDrover();
  await drover.submit({ agentId: "a", action: "x", id: "t", priority: "high", deadline: "2026-02-01T00:00:00Z" });
  const shown = async () => {
    const { priority, deadline } = await drover.task("t");
    return [priority, deadline];
  };
  assert.deepEqual(await shown(), ["high", "2026-02-01T00:00:00.000Z"]);
  await drover.patch("t", { priority: 7, deadline: null });
  assert.deepEqual(await shown(), [7, undefined]);
  await drover.patch("t", { priority: "high", deadline: "2026-03-01T00:00:00Z" });
  assert.deepEqual(await shown(), ["high", "2026-03-01T00:00:00.000Z"]);
  await drover.close();
});

test("the items of a batch are submitted at one reading of the clock", async () => {
  let reading = 1_700_000_000_000;
  await using drover = await openDrover({ now: () => reading++ });
  await drover.submitBatch({ agentId: "ann", tasks: Array.from({ length: 20 }, () => ({ action: "x" })) });
  const instants = new Set([...drover.state.tasks.values()].map(({ createdAt }) => createdAt));
  assert.equal(instants.size, 1);
});

test("a hole in a batch, and an item that throws when it is read, spoil themselves and no other", async () => {
  await using drover = await openDrover();
  const tasks: unknown[] = [{ action: "x", id: "good" }];
  tasks[2] = {
    get action(): string {
      throw new Error("not today");
    },
  };
  tasks[3] = { action: "x", needs: ["good"] };
  tasks[4] = new Proxy({}, { has: () => assert.fail("no") });
  const answer = await drover.submitBatch({ agentId: "ann", tasks: tasks as never });
  assert.deepEqual(
    answer.tasks.map(({ state }) => state),
    ["queued", "rejected", "rejected", "waiting", "rejected"],
  );
  assert.match(answer.tasks[1]?.error ?? "", /tasks\[1\] is nothing/);
  assert.match(answer.tasks[2]?.error ?? "", /^tasks\[2\]\.action is something that throws when it is read/);
  assert.deepEqual([answer.submitted, answer.accepted, answer.rejected], [5, 2, 3]);
});

test("a retry answers what it decided, however soon the new run is over", async () => {
  await using drover = await openDrover();
  await drover.worker({ slots: 1 }, () => {
    throw Object.assign(new Error("no"), { permanent: true });
  });
  const { taskId } = await drover.submit({ agentId: "ann", action: "x" });
  assert.equal(await drover.ended(taskId), "failed");
  assert.equal((await drover.retry(taskId)).state, "queued");
  assert.equal(await drover.ended(taskId), "failed");
});

test("a task that failed is told with its last attempt, also when its record has expired", async () => {
  const scheduler = { failedTtl: 60_000, retry: { base: 1 } };
  await using kit = await createTestDrover({ config: { scheduler } });
  await kit.drover.worker({ slots: 1 }, ({ action }) => {
    if (action === "bad") throw new Error("no");
  });
  await kit.drover.submit({ agentId: "ann", action: "bad", id: "bad", maxAttempts: 2 });
  await kit.clock.advance(120_000);
  await kit.drover.submit({ agentId: "ann", action: "good" });
  await kit.settle();
  assert.equal(kit.drover.state.tombstones.size, 1);
  const { state, attempt, error } = await kit.drover.task("bad");
  assert.deepEqual([state, attempt, error], ["failed", 2, "no"]);
});
