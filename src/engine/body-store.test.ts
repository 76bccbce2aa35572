/**
 * Bodies at hand: each handler is given its own, and nobody is shown a task without the body or the result it has.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand, fewTurns } from "../../test/log-in-hand.ts";
import { createTestDrover } from "../testing/index.ts";
import type { Handler } from "./local-worker.ts";

test("a handler may do with its task what it likes: the next attempt is given the body as it was", async () => {
  const seen: unknown[] = [];
  const spoil = (given: Record<string, unknown>): void => {
    seen.push({ ...given });
    given.action = "spoilt";
    throw new Error("again");
  };
  for (const more of [{}, { params: { a: 1 } }]) {
    const kit = await createTestDrover();
    await kit.drover.worker({ id: "w" }, spoil as Handler);
    await kit.drover.submit({ id: "t", agentId: "ann", action: "build", maxAttempts: 2, ...more });
    await kit.settle();
    await kit.clock.advance(10_000);
    const body = { agentId: "ann", action: "build", maxAttempts: 2, ...more, taskId: "t" };
    assert.deepEqual(seen.splice(0), [
      { ...body, attempt: 1 },
      { ...body, attempt: 2 },
    ]);
  }
});

test("bodies of tasks that end before they are durable are there for whoever asks meanwhile", async () => {
  const hand = createLogInHand();
  await using kit = await createTestDrover({ log: hand.log });
  const { drover } = kit;
  hand.hold();
  const count = 1500;
  const asked = Array.from({ length: count }, (_, index) =>
    drover.submit({ agentId: `agent-${index % 10}`, action: "x", id: `job-${index}` }),
  );
  const cancelled = Array.from({ length: count }, (_, index) => drover.cancel(`job-${index}`));
  const pages = [drover.tasks({ limit: 1000 }), drover.task("job-0")] as const;
  hand.release();
  const [{ tasks }, first] = await Promise.all(pages);
  await Promise.all([...asked, ...cancelled]);
  assert.equal(tasks.length, 1000);
  for (const task of [...tasks, first]) assert.deepEqual([task.action, task.state], ["x", "cancelled"]);
});

test("whoever is told that a task is done is told its result", async () => {
  const hand = createLogInHand();
  await using kit = await createTestDrover({ log: hand.log });
  const { drover } = kit;
  const work = Promise.withResolvers<unknown>();
  await drover.worker({ slots: 1 }, () => work.promise);
  const { taskId } = await drover.submit({ agentId: "ann", action: "x" });
  await kit.settle();
  hand.hold();
  const other = drover.submit({ agentId: "ann", action: "y" });
  await fewTurns();
  const running = drover.task(taskId);
  work.resolve({ answer: 42 });
  await fewTurns();
  const done = drover.task(taskId);
  hand.release();
  assert.equal((await running).state, "running");
  const { state, result } = await done;
  assert.deepEqual([state, result], ["done", { answer: 42 }]);
  await other;
});
