/**
 * Bodies at hand: each handler is given its own.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
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
