import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { within } from "../../test/kits/waits.ts";
import { createTestDrover } from "../testing/index.ts";
import type { Deps } from "./handlers/handler.ts";
import { problemOf } from "./problem.ts";
import { waitAnyHandler } from "./wait-any.ts";

const exchange = {
  caller: { role: "admin", projects: null, agentId: null } as const,
  request: {} as IncomingMessage,
  response: {} as ServerResponse,
  headers: [],
};
test("whoever waits for few is answered when the first has ended, and for many a moment later", async () => {
  for (const [count, expected] of [
    [2, []],
    [99, []],
    [250, [2]],
  ] as const) {
    await using kit = await createTestDrover();
    const { drover } = kit;
    const rests: number[] = [];
    const held = Promise.withResolvers<void>();
    const hold = (_who: unknown, _kind: string, work: (signal: AbortSignal) => unknown): unknown => {
      held.resolve();
      return work(new AbortController().signal);
    };
    const { waitAny } = waitAnyHandler({ drover, polls: { hold } } as unknown as Deps, {
      problemOf,
      onBug: () => assert.fail("a bug"),
      rest: async (ms) => void rests.push(ms),
    });
    const ids = Array.from({ length: count }, (_, index) => `t${index}`);
    await Promise.all(ids.map((id) => drover.submit({ id, agentId: "ann", action: "x" })));
    const waiting = waitAny({ body: { ids } }, exchange);
    await within("a wait", held.promise);
    await drover.cancel("t1");
    const { answers } = JSON.parse(String(await within("an answer", waiting as Promise<unknown>)));
    assert.deepEqual([answers.length, answers[0].id, rests], [1, "t1", expected], `of ${count}`);
  }
});
