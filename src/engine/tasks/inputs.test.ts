/**
 * What a task sees of those it needs, in the process and over the wire.
 */
import assert from "node:assert/strict";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import fc from "fast-check";
import { holdsInTime } from "../../../test/kits/laws/cases.ts";
import type { TaskId } from "../../core/base/index.ts";
import type { Task } from "../../core/model/index.ts";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import type { Inputs } from "../../protocol/index.ts";
import { TaskSkip } from "../../std/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { createInputs } from "./inputs.ts";
import type { TaskInput } from "./task-body.ts";

type Seen = Map<string, Inputs | undefined>;
const KIB = 1024;

/** A worker whose handlers answer what the task's payload says, and what they saw. */
async function withWorker(kit: TestDrover): Promise<Seen> {
  const seen: Seen = new Map();
  await kit.drover.worker({ id: "w", slots: 8 }, ({ taskId, payload, inputs }) => {
    seen.set(taskId, inputs);
    const { fails, result } = (payload ?? {}) as { fails?: string; result?: unknown };
    if (fails !== undefined) throw Object.assign(new Error(fails), { permanent: true });
    return result;
  });
  return seen;
}
const submit = (kit: TestDrover, id: string, more: Partial<TaskInput> = {}): Promise<unknown> =>
  kit.drover.submit({ id, agentId: "ann", action: "work", ...more });
const answering = (result: unknown): Partial<TaskInput> => ({ payload: { result } });

test("a task sees how its needs ended, by id or by the name it gave them, and its parent as parent", async () => {
  await using kit = await createTestDrover();
  const seen = await withWorker(kit);
  await submit(kit, "plan", answering({ path: "a b" }));
  await submit(kit, "code", { ...answering(7), parent: "plan" });
  await submit(kit, "list", { needs: ["code", "plan"] });
  await submit(kit, "object", { needs: { z: "code", a: "plan", b: "code" } });
  await kit.settle();
  const plan = { taskId: "plan", state: "done", result: { path: "a b" } };
  const code = { taskId: "code", state: "done", result: 7 };
  assert.deepEqual(seen.get("code"), { parent: plan });
  assert.deepEqual(seen.get("list"), { code, plan });
  assert.deepEqual(seen.get("object"), { b: code, z: code, a: plan });
  assert.deepEqual(Object.keys(seen.get("object") ?? {}), ["b", "z", "a"], "in the order of needs");
  assert.equal(seen.get("plan"), undefined, "who needs nothing sees nothing");
  assert.deepEqual((await kit.drover.task("object")).needs, { a: "plan", b: "code", z: "code" });
});

test("a result that does not fit is looked through once, however many names it has and tasks need it", async () => {
  await using kit = await createTestDrover();
  await withWorker(kit);
  const work = { workspace: { isKept: true, branch: "b" }, text: "x".repeat(200 * KIB) };
  await submit(kit, "large", answering(work));
  const names = Array.from({ length: 100 }, (_, index) => [`name-${index}`, "large"] as const);
  const needs = Object.fromEntries(names);
  await submit(kit, "many", { needs });
  await kit.settle();
  const { state } = kit.drover;
  let reads = 0;
  const read = async () => {
    reads++;
    return JSON.stringify(work);
  };
  const parts = { writer: { state, settled: async () => undefined }, bodies: { read } };
  const inputsOf = createInputs(parts as unknown as Parameters<typeof createInputs>[0]);
  const task = state.tasks.get("many" as TaskId) as Task;
  for (const counted of [2, 3]) {
    const [first, ...more] = Object.values(await inputsOf(task, needs));
    assert.deepEqual(first?.result, work);
    for (const { branch, result } of more)
      assert.deepEqual([branch, Object.keys(result as object)], ["b", ["file"]], "by its hash, with its branch");
    assert.equal(reads, counted);
  }
});

test("a result that looks like the name of one is named itself, and read as what it is", async () => {
  await using kit = await createTestDrover();
  const seen = await withWorker(kit);
  const odd = { file: { hash: "0".repeat(64), size: 5 } };
  await submit(kit, "odd", answering(odd));
  await submit(kit, "after", { needs: ["odd"] });
  await kit.settle();
  const named = seen.get("after")?.odd?.result;
  const { file } = named as { file: { hash: string; size: number } };
  assert.notEqual(file.hash, odd.file.hash);
  const { bytes, size } = await kit.drover.files.open(file.hash, { task: "after" });
  assert.deepEqual(await json(bytes), odd);
  assert.equal(file.size, size);
});

test("a task sees what its needs used, if they said so", async () => {
  await using kit = await createTestDrover();
  const seen: unknown[] = [];
  await kit.drover.worker({ id: "w" }, ({ taskId, inputs }, context) => {
    if (taskId === "a") context.usage({ inputTokens: 5, cachedTokens: 2, cost: 0.5 });
    if (taskId === "c") seen.push(inputs);
  });
  for (const id of ["a", "b"]) await submit(kit, id);
  await submit(kit, "c", { needs: ["a", "b"] });
  await kit.settle();
  const usage = { inputTokens: 5, outputTokens: 0, cachedTokens: 2, cost: 0.5 };
  assert.deepEqual(seen, [{ a: { taskId: "a", state: "done", usage }, b: { taskId: "b", state: "done" } }]);
});

test("a task that runs although a need failed sees why, and every attempt sees the same", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { retry: { base: 1, max: 1 } } } });
  const attempts: unknown[] = [];
  await kit.drover.worker({ id: "w" }, ({ taskId, inputs }) => {
    if (taskId === "bad") throw Object.assign(new Error("no luck"), { permanent: true });
    attempts.push(inputs);
    throw new Error("again");
  });
  await submit(kit, "bad");
  await submit(kit, "after", { needs: ["bad"], onDependencyFailure: "run", maxAttempts: 2 });
  await kit.settle();
  await kit.clock.advance(10_000);
  const bad = { taskId: "bad", state: "failed", error: "no luck" };
  assert.deepEqual(attempts, [{ bad }, { bad }]);
});

test("results have 256 KiB in all, in the order of needs; what exceeds that is named by hash and size", async () => {
  await using kit = await createTestDrover();
  const seen = await withWorker(kit);
  const branch = { workspace: { isKept: true, branch: "drover/big" } };
  const large = "x".repeat(200 * KIB);
  await submit(kit, "first", answering(large));
  await submit(kit, "second", answering({ large, ...branch }));
  await submit(kit, "third", answering("y".repeat(50 * KIB)));
  await submit(kit, "after", { needs: ["first", "second", "third"] });
  await kit.settle();
  const { first, second, third } = seen.get("after") ?? {};
  assert.deepEqual([first?.result, third?.result], [large, "y".repeat(50 * KIB)]);
  const { result, ...rest } = second ?? {};
  const { hash, size } = (result as { file: { hash: string; size: number } }).file;
  assert.deepEqual(rest, { taskId: "second", state: "done", branch: "drover/big" });
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.equal(size, JSON.stringify({ large, ...branch }).length);
});

test("the branch that a command's work was kept on stands beside its result, and no other word does", async () => {
  await using kit = await createTestDrover();
  const seen = await withWorker(kit);
  const kept = { workspace: { isKept: true, branch: "drover/t" } };
  const gone = { workspace: { isKept: false, branch: "drover/t" } };
  for (const [id, result] of Object.entries({ kept, gone, odd: { workspace: { isKept: true, branch: 7 } } }))
    await submit(kit, id, answering(result));
  await submit(kit, "after", { needs: ["kept", "gone", "odd"] });
  await kit.settle();
  assert.deepEqual(
    Object.values(seen.get("after") ?? {}).map(({ branch }) => branch),
    ["drover/t", undefined, undefined],
  );
});

test("what a task needs is there for it long after results are kept, and over a restart", async () => {
  const store = createMemoryStore();
  const config = { scheduler: { resultTtl: 1000, resultMax: 1, remember: "1d" } };
  {
    await using kit = await createTestDrover({ log: createMemoryLog({ store }), config });
    await withWorker(kit);
    await submit(kit, "need", answering({ kept: true }));
    await submit(kit, "late", { needs: { n: "need" }, notBefore: kit.clock.now() + 3_600_000 });
    for (let index = 0; index < 5; index++) await submit(kit, `other-${index}`);
    await kit.settle();
    await kit.clock.advance(1_800_000);
    assert.deepEqual(
      (await kit.drover.tasks({ state: "done" })).tasks.map(({ taskId }) => taskId),
      ["need"],
    );
  }
  await using kit = await createTestDrover({
    log: createMemoryLog({ store }),
    config,
    at: 1_767_225_600_000 + 1_800_000,
  });
  const seen = await withWorker(kit);
  await kit.clock.advance(3_600_000);
  assert.deepEqual(seen.get("late"), { n: { taskId: "need", state: "done", result: { kept: true } } });
});

test("of a need whose record was gone before the task came the log still has the end", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000, remember: "1d" } } });
  const seen = await withWorker(kit);
  await submit(kit, "done", answering([1]));
  await submit(kit, "failed", { payload: { fails: "no luck" } });
  await kit.settle();
  await kit.clock.advance(60_000);
  await submit(kit, "after", { needs: ["done", "failed"], onDependencyFailure: "run" });
  await kit.settle();
  assert.deepEqual(seen.get("after"), {
    done: { taskId: "done", state: "done", result: [1] },
    failed: { taskId: "failed", state: "failed", error: "no luck" },
  });
});

test("a worker over the wire is given the same inputs with its assignment", async () => {
  await using kit = await createTestDrover();
  const { session } = await kit.drover.remote.join({ id: "pull", slots: 2 });
  const sync = (more: object = {}) => kit.drover.remote.sync("pull", { session, ...more });
  await submit(kit, "need", { payload: "p" });
  await submit(kit, "after", { needs: { n: "need" } });
  const [first] = (await sync()).assignments;
  assert.deepEqual([first?.taskId, first?.task.inputs], ["need", undefined]);
  const done = { taskId: "need", attempt: 1, outcome: "done" as const, result: { ok: 1 } };
  const [second] = (await sync({ results: [done] })).assignments;
  assert.deepEqual(second?.task.inputs, { n: { taskId: "need", state: "done", result: { ok: 1 } } });
});

test("a handler that says there is nothing to do ends its task as skipped, and those that need it", async () => {
  await using kit = await createTestDrover();
  const ran: string[] = [];
  await kit.drover.worker({ id: "w" }, ({ taskId, inputs }) => {
    ran.push(taskId);
    if (taskId === "first") throw new TaskSkip("if: false");
    return inputs;
  });
  await submit(kit, "first");
  await submit(kit, "next", { needs: ["first"] });
  await submit(kit, "report", { needs: { f: "first" }, onDependencyFailure: "run" });
  await kit.settle();
  const shown = async (id: string): Promise<unknown> => {
    const { state, error, result } = await kit.drover.task(id);
    return [state, error ?? result];
  };
  assert.deepEqual(await shown("first"), ["skipped", "if: false"]);
  assert.deepEqual(await shown("next"), ["skipped", "its dependency first is skipped"]);
  assert.deepEqual(await shown("report"), ["done", { f: { taskId: "first", state: "skipped", error: "if: false" } }]);
  const { workers } = { workers: await kit.drover.workers() };
  assert.deepEqual([ran, workers[0]?.inFlight], [["first", "report"], 0]);
});

test("a worker over the wire skips a task, and saying so again changes nothing, also after a restart", async () => {
  const store = createMemoryStore();
  const skipped = { taskId: "t", attempt: 1, outcome: "skipped" as const, error: "if: no", usage: { inputTokens: 7 } };
  const report = async ({ drover }: TestDrover, session: string, error: string): Promise<unknown> =>
    (await drover.remote.sync("pull", { session, results: [{ ...skipped, error }] })).results[0];
  const said = { taskId: "t", attempt: 1 };
  let session = "";
  {
    await using kit = await createTestDrover({ log: createMemoryLog({ store }) });
    ({ session } = await kit.drover.remote.join({ id: "pull" }));
    await submit(kit, "t");
    await kit.drover.remote.sync("pull", { session });
    assert.deepEqual(await report(kit, session, "if: no"), { ...said, accepted: true });
  }
  await using kit = await createTestDrover({ log: createMemoryLog({ store }) });
  assert.deepEqual(await report(kit, session, "if: no"), { ...said, accepted: true, code: "duplicate" });
  assert.deepEqual(await report(kit, session, "if: other"), { ...said, accepted: false, code: "stale_attempt" });
  const { state, error } = await kit.drover.task("t");
  assert.deepEqual([state, error], ["skipped", "if: no"]);
  assert.equal((await kit.drover.retry("t")).state, "queued");
});

const WRONG: readonly [claim: string, needs: unknown][] = [
  ["a text", "plan"],
  ["an id with a blank", { a: "b c" }],
  ["a name that is too long", { ["a".repeat(1001)]: "plan" }],
  ["an empty name", { "": "plan" }],
  ["a number for an id", { a: 7 }],
  ["more than a thousand", Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`n${index}`, "plan"]))],
  ["an unknown id", { a: "nobody" }],
];
for (const [claim, needs] of WRONG)
  test(`needs by name are refused with ${claim}, and the field is named`, async () => {
    await using kit = await createTestDrover();
    await submit(kit, "plan");
    await assert.rejects(submit(kit, "t", { needs: needs as never }), /needs/);
  });

/** For each task, which of those before it it needs. */
const graph = fc.array(fc.array(fc.nat(5), { maxLength: 3 }), { minLength: 2, maxLength: 6 });

test("a task sees each of its needs as it ended, and nothing of any other", async () => {
  await holdsInTime(300, graph, async (edges) => {
    await using kit = await createTestDrover({ config: { scheduler: { resultMax: 1, remember: "1d" } } });
    const seen = await withWorker(kit);
    const needsOf = edges.map((targets, index) => [...new Set(targets.filter((target) => target < index))]);
    for (const [index, needs] of needsOf.entries())
      await submit(kit, `t${index}`, { ...answering({ n: index }), needs: needs.map((need) => `t${need}`) });
    await kit.settle();
    for (const [index, needs] of needsOf.entries()) {
      const expected = needs.map((need) => [`t${need}`, { taskId: `t${need}`, state: "done", result: { n: need } }]);
      assert.deepEqual(seen.get(`t${index}`), needs.length === 0 ? undefined : Object.fromEntries(expected));
    }
  });
});
