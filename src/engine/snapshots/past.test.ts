import assert from "node:assert/strict";
import { test } from "node:test";
import { turnsDuring } from "../../../test/kits/waits.ts";
import { createTestDrover } from "../../testing/index.ts";
import type { DroverError } from "../base/index.ts";

test("why can be asked of the past: the state after any event", async () => {
  const { drover, settle } = await createTestDrover();
  await drover.submit({ agentId: "a", action: "x", id: "t" });
  const then = drover.state.seq;
  await drover.worker({}, () => new Promise(() => {}));
  await settle();
  assert.equal((await drover.why("t")).state, "running");
  const past = await drover.why("t", { at: then });
  assert.equal(past.state, "queued");
  assert.ok(past.conditions.some(({ ok }) => !ok));
  await assert.rejects(drover.why("t", { at: 10_000 }), /at most/);
  await assert.rejects(drover.why("t", { at: 0 }), /at/);
  await assert.rejects(drover.why("t", { at: 1 }), /no task/);
});

test("where old events were pruned, the past begins at the newest snapshot", async () => {
  const { drover, clock } = await createTestDrover({ config: { log: { retain: "1s" } } });
  const seqs: number[] = [];
  for (const id of ["t", "u", "v"]) {
    await drover.submit({ agentId: "a", action: "x", id });
    seqs.push(await drover.snapshot());
    await clock.advance(5000);
  }
  await drover.pause({ task: "v" });
  const [, second, third] = seqs as [number, number, number];
  assert.equal((await drover.why("v", { at: third })).conditions.find(({ code }) => code === "task-paused")?.ok, true);
  assert.equal(
    (await drover.why("v", { at: third + 1 })).conditions.find(({ code }) => code === "task-paused")?.ok,
    false,
  );
  await assert.rejects(drover.why("v", { at: second }), new RegExp(`at least ${third}`));
  await drover.close();
});

test("a look at the past gives way to everything else, after few events", async () => {
  await using kit = await createTestDrover({ config: { scheduler: { maxBatch: 1000, maxPerAgent: 10_000 } } });
  const { drover } = kit;
  const tasks = Array.from({ length: 1000 }, () => ({ action: "x" }));
  for (let batch = 0; batch < 5; batch++) await drover.submitBatch({ agentId: "a", tasks });
  await drover.submit({ agentId: "a", action: "x", id: "t" });
  const at = drover.state.seq;
  assert.ok((await turnsDuring(drover.why("t", { at }))) > 5000 / 200);
});

test("where the past begins with a snapshot, that is read in small steps too", async () => {
  const { drover, clock } = await createTestDrover({
    config: { log: { retain: "1s" }, scheduler: { maxBatch: 1000, maxPerAgent: 10_000 } },
  });
  const tasks = Array.from({ length: 1000 }, () => ({ action: "x" }));
  for (let batch = 0; batch < 5; batch++) await drover.submitBatch({ agentId: "a", tasks });
  await drover.submit({ agentId: "a", action: "x", id: "t" });
  for (let snapshot = 0; snapshot < 3; snapshot++) {
    await drover.snapshot();
    await clock.advance(5000);
    await drover.pause({ task: "t" });
  }
  assert.ok((await turnsDuring(drover.why("t", { at: drover.state.seq }))) > 5000 / 300);
  await drover.close();
});

test("who looks at the past while another does waits for its turn, in a line with an end", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  await drover.submit({ agentId: "a", action: "x", id: "t" });
  const at = drover.state.seq;
  const looks = await Promise.allSettled(Array.from({ length: 20 }, () => drover.why("t", { at })));
  const refusals = looks.flatMap((look) => (look.status === "rejected" ? [look.reason as DroverError] : []));
  const codes = refusals.map(({ code, retryable }) => [code, retryable]);
  assert.deepEqual(codes, new Array(3).fill(["overloaded", true]));
  await assert.rejects(drover.why("t", { at: 1 }), /no task/);
  assert.equal((await drover.why("t", { at })).state, "queued", "one that failed holds nobody up");
});

test("the queue shows projects in turn, their agents and who is next", async () => {
  const { drover } = await createTestDrover();
  for (const [project, agentId, id, priority] of [
    ["p", "a", "low", "low"],
    ["p", "a", "high", "high"],
    ["q", "b", "only", "normal"],
  ] as const)
    await drover.submit({ agentId, project, action: "x", id, priority });
  const { projects, queued } = await drover.queue();
  assert.equal(queued, 3);
  assert.deepEqual(
    projects.map(({ project, agents }) => [
      project,
      agents.map(({ agentId, next }) => [agentId, next.map(({ taskId }) => taskId)]),
    ]),
    [
      ["p", [["a", ["high", "low"]]]],
      ["q", [["b", ["only"]]]],
    ],
  );
  await drover.close();
});
