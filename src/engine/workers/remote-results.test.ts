import assert from "node:assert/strict";
import { test } from "node:test";
import type { Seq, TaskId } from "../../core/base/index.ts";
import type { Task } from "../../core/model/index.ts";
import { corruptAt } from "../../log/index.ts";
import { createMemoryLog, createMemoryStore } from "../../log/memory/memory-log.ts";
import type { Assignment, ResultReport, SyncBody } from "../../protocol/index.ts";
import { createTestDrover, type TestDroverOptions } from "../../testing/index.ts";

const of = (taskId: string) => ({ taskId, attempt: 1 });

async function holding(...tasks: string[]) {
  return holdingWith({}, tasks);
}

async function holdingWith(options: TestDroverOptions, tasks: readonly string[], more: object = {}) {
  const kit = await createTestDrover(options);
  const { session } = await kit.drover.remote.join({ id: "ann", slots: 4 });
  for (const id of tasks) await kit.drover.submit({ agentId: "a", action: "go", id, ...more });
  await kit.drover.remote.sync("ann", { session });
  await kit.drover.remote.sync("ann", { session, running: tasks.map(of) });
  const report = async (...results: ResultReport[]) =>
    (await kit.drover.remote.sync("ann", { session, results })).results;
  return { ...kit, report };
}

test("a result that cannot be kept fails its task, and keeps nothing else out", async () => {
  const { drover, report } = await holding("half", "deep", "good");
  const deep = JSON.parse(`${"[".repeat(80)}${"]".repeat(80)}`) as unknown;
  const results: ResultReport[] = [
    // Half of an emoji: what is left where a text was cut in its middle.
    { ...of("half"), outcome: "done", result: "\ud83d" },
    { ...of("deep"), outcome: "done", result: deep },
    { ...of("good"), outcome: "done", result: 1 },
  ];
  assert.deepEqual(
    (await report(...results)).map(({ accepted, code }) => [accepted, code]),
    [
      [true, "bad_result"],
      [true, "bad_result"],
      [true, undefined],
    ],
  );
  const { state, error } = await drover.task("half");
  assert.equal(state, "failed");
  assert.match(error ?? "", /well-formed/);
  assert.equal((await drover.task("good")).state, "done");
  assert.ok((await report(...results)).every(({ accepted, code }) => accepted && code === "duplicate"));
  await drover.close();
});

test("P2 a result that came too late does not count, however often it is said", async () => {
  const { drover, report } = await holding("t");
  await drover.cancel("t");
  const late = { ...of("t"), outcome: "done", result: 1 } as const;
  assert.deepEqual(await report(late), [{ ...of("t"), accepted: false, code: "conflict" }]);
  assert.equal((await report(late))[0]?.accepted, false);
  assert.equal((await drover.task("t")).state, "cancelled");
  await drover.close();
});

test("a report that says no more than done is the same as one that says so in full, when it comes again", async () => {
  const { drover, report } = await holding("a", "b");
  const full = { usage: { inputTokens: 1 }, error: "", permanent: false } as const;
  const plain: ResultReport[] = [
    { ...of("a"), outcome: "done" },
    { ...of("b"), outcome: "done", result: { n: 1 } },
  ];
  assert.deepEqual(
    await report(...plain),
    plain.map(({ taskId }) => ({ ...of(taskId), accepted: true })),
  );
  const again = await report(...plain, ...plain.map((one) => ({ ...one, ...full })));
  assert.ok(again.every(({ accepted, code }) => accepted && code === "duplicate"));
  assert.deepEqual((await drover.task("b")).result, { n: 1 });
  await drover.close();
});

test("what a task answered that waits for its children is known again, however it ends then", async () => {
  const { drover, report } = await holdingWith({}, ["p"], { wait: "children" });
  const answer: ResultReport = { ...of("p"), outcome: "done", result: 1 };
  await drover.submitChild("p", 1, { agentId: "a", action: "go", id: "c", notBefore: "2100-01-01T00:00:00Z" });
  assert.deepEqual(await report(answer), [{ ...of("p"), accepted: true }]);
  assert.equal((await drover.task("p")).state, "parked");
  await drover.cancel("p");
  assert.deepEqual(await report(answer), [{ ...of("p"), accepted: true, code: "duplicate" }]);
  await drover.close();
});

test("a result that comes again is known while its task is remembered, though its record is gone", async () => {
  const scheduler = { resultTtl: "1s", failedTtl: "1s", remember: "60s" };
  const store = createMemoryStore();
  const open = (): TestDroverOptions => ({ config: { scheduler }, log: createMemoryLog({ store }) });
  const { drover, clock, report } = await holdingWith(open(), ["a", "b", "c", "d"]);
  const results: ResultReport[] = [
    { ...of("a"), outcome: "done", result: "a" },
    { ...of("b"), outcome: "failed", error: "x".repeat(10_000), permanent: true },
    { ...of("c"), outcome: "skipped", error: "nothing to do" },
    { ...of("d"), outcome: "done" },
  ];
  await report(...results);
  await clock.advance(2000);
  assert.deepEqual([drover.state.tasks.size, drover.state.tombstones.size], [0, 4]);
  const others: ResultReport[] = [
    { ...of("a"), outcome: "done", result: "other" },
    { ...of("a"), attempt: 2, outcome: "done", result: "a" },
    { ...of("d"), outcome: "failed", error: "nothing to do" },
  ];
  const again = [...results, ...others];
  const codes = (await report(...again)).map(({ code }) => code);
  assert.deepEqual(codes, [...results.map(() => "duplicate"), ...others.map(() => "stale_attempt")]);
  await drover.close();
  await using next = await createTestDrover({ ...open(), at: clock.now() });
  const { session } = await next.drover.remote.join({ id: "ann" });
  const told = async () => (await next.drover.remote.sync("ann", { session, results: again })).results;
  assert.deepEqual(
    (await told()).map(({ code }) => code),
    codes,
    "the log knows it after a restart",
  );
});

test("what the log has no more of a task, or damaged, keeps nothing else out", async () => {
  const scheduler = { resultTtl: "1s", remember: "60s" };
  for (const readRecord of [async () => null, () => Promise.reject(corruptAt(1 as Seq, "it is torn"))]) {
    const log = { ...createMemoryLog(), readRecord };
    const { drover, clock, report } = await holdingWith({ config: { scheduler }, log }, ["a", "b"]);
    await report({ ...of("a"), outcome: "done" });
    await clock.advance(2000);
    const said = await report({ ...of("a"), outcome: "done", result: 1 }, { ...of("b"), outcome: "done" });
    assert.deepEqual(
      said.map(({ code }) => code),
      ["stale_attempt", undefined],
    );
    await drover.close();
  }
});

/** A worker reports the task x, and the answer is lost; x is forgotten, and comes again to the same session. */
async function reportedAndForgotten() {
  const kit = await createTestDrover({ config: { scheduler: { resultTtl: "1s", remember: "2s" } } });
  const { drover, clock } = kit;
  const { session } = await drover.remote.join({ id: "ann", slots: 2 });
  const sync = (said: SyncBody = {}) => drover.remote.sync("ann", { session, ...said });
  const given = async () => {
    await drover.submit({ agentId: "a", action: "go", id: "x" });
    const { task: _, token: __, leaseUntil: ___, ...name } = (await sync()).assignments[0] as Assignment;
    return name;
  };
  const first = await given();
  const report = { ...first, outcome: "done", result: "of the first" } as const;
  await sync({ running: [first] });
  await sync({ results: [report] });
  await clock.advance(3500);
  await sync();
  assert.deepEqual([drover.state.tasks.size, drover.state.tombstones.size], [0, 0]);
  return { ...kit, sync, first, report, next: await given() };
}

test("a result that is said again when its task is forgotten does not end a later one of the same id", async () => {
  const { drover, sync, first, report, next } = await reportedAndForgotten();
  assert.deepEqual([next.taskId, next.attempt], [first.taskId, first.attempt]);
  assert.deepEqual((await sync({ results: [report] })).results, [{ ...first, accepted: false, code: "not_found" }]);
  assert.equal((await drover.task("x")).state, "assigned");
  await sync({ results: [{ ...report, ...next, result: "of the second" }] });
  assert.equal((await drover.task("x")).result, "of the second");
  await drover.close();
});

test("an attempt of a forgotten task that still runs is to be stopped, and not a later one of its id", async () => {
  const { drover, sync, first, next } = await reportedAndForgotten();
  const { cancel, assignments } = await sync({ running: [{ ...first, progress: "old" }] });
  assert.deepEqual(cancel, [first]);
  assert.deepEqual(
    assignments.map(({ taskId, taskSeq }) => ({ taskId, attempt: 1, taskSeq })),
    [next],
  );
  assert.equal((await drover.task("x")).progress, undefined);
  const both = await sync({ running: [first, { ...next, progress: "new" }] });
  assert.deepEqual([both.cancel, both.assignments], [[first], []]);
  assert.equal((await drover.task("x")).state, "running");
  await drover.close();
});

test("a worker that does not say which task of an id it means is heard as before", async () => {
  const { drover, sync, next } = await reportedAndForgotten();
  await sync({ running: [of("x")] });
  const { results } = await sync({ results: [{ ...of("x"), outcome: "done", result: 1 }] });
  assert.deepEqual(results, [{ ...of("x"), accepted: true }]);
  assert.equal(next.taskSeq, (drover.state.tasks.get("x" as TaskId) as Task).seq);
  await drover.close();
});
