import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";

test("who is next at an agent is who starts next, however its tasks are mixed", async () => {
  const { drover, clock, settle } = await createTestDrover({ config: { scheduler: { maxInFlight: 1 } } });
  const types = ["plan", "code", "phase"];
  for (let count = 0; count < 40; count++) {
    const more = { type: types[count % 3] as string, priority: (count % 4) * 100 };
    await drover.submit({ agentId: "a", action: "go", id: `t${count}`, ...more });
    await clock.advance(20_000);
  }
  const shown = (await drover.queue()).projects[0]?.agents[0]?.next.map(({ taskId }) => taskId);
  const started: string[] = [];
  await drover.worker({}, ({ taskId }) => void started.push(taskId));
  await settle();
  assert.equal(shown?.length, 5);
  assert.deepEqual(shown, started.slice(0, 5));
  await drover.close();
});
