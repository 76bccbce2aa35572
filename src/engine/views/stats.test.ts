import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";

test("what is parked is queued for no agent and no project, as it is in the total", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const approval = { question: "ship it?" };
  await drover.submitBatch({
    agentId: "ann",
    tasks: [
      { id: "first", action: "x" },
      { id: "asks", action: "x", approval },
      { id: "asks-too", action: "x", project: "web", approval },
      { id: "later", action: "x", project: "web", needs: ["first"] },
    ],
  });
  await drover.submit({ id: "other", agentId: "bob", action: "x", approval });
  await kit.settle();
  const queued = async (): Promise<unknown> => {
    const { totalQueued, waiting, agents } = (await drover.stats()).queue;
    return { totalQueued, waiting, ann: agents.ann?.queued, bob: agents.bob?.queued };
  };
  assert.deepEqual(await queued(), { totalQueued: 2, waiting: 1, ann: 2, bob: 0 });
  const projects = (await drover.projects()).map(({ id, queued }) => [id, queued]);
  assert.deepEqual(projects, [
    ["default", 1],
    ["web", 1],
  ]);
  const line = (await drover.queue()).projects.map(({ project, queued, agents }) => [project, queued, agents.length]);
  assert.deepEqual(line, [
    ["default", 1, 1],
    ["web", 1, 1],
  ]);
  await drover.approve("asks-too");
  assert.deepEqual(await queued(), { totalQueued: 3, waiting: 1, ann: 3, bob: 0 });
});
