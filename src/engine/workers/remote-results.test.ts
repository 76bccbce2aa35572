import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResultReport } from "../../protocol/index.ts";
import { createTestDrover } from "../../testing/index.ts";

const of = (taskId: string) => ({ taskId, attempt: 1 });

async function holding(...tasks: string[]) {
  return holdingWith({}, tasks);
}

async function holdingWith(config: object, tasks: readonly string[]) {
  const kit = await createTestDrover({ config });
  const { session } = await kit.drover.remote.join({ id: "ann", slots: 4 });
  for (const id of tasks) await kit.drover.submit({ agentId: "a", action: "go", id });
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

test("a result that comes again is known while its task is remembered, though its record is gone", async () => {
  const scheduler = { resultTtl: "1s", resultMax: 1, remember: "60s" };
  const { drover, clock, report } = await holdingWith({ scheduler }, ["a", "b", "c"]);
  const results = ["a", "b", "c"].map((id): ResultReport => ({ ...of(id), outcome: "done", result: id }));
  await report(...results);
  await clock.advance(2000);
  assert.deepEqual([drover.state.tasks.size, drover.state.tombstones.size], [0, 3]);
  const codes = (await report(...results, { ...of("a"), outcome: "done", result: "other" })).map(({ code }) => code);
  assert.deepEqual(codes, ["duplicate", "duplicate", "duplicate", "stale_attempt"]);
  await drover.close();
});
