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

test("a wait counts by the number of its tasks, and no token takes the room of the others", async () => {
  await using kit = await createTestDrover();
  const { drover } = kit;
  const ids = Array.from({ length: 300 }, (_, index) => `t${index}`);
  await Promise.all(ids.map((id) => drover.submit({ id, agentId: "ann", action: "x" })));
  const hold = (_who: unknown, _kind: string, work: (signal: AbortSignal) => unknown): unknown =>
    work(new AbortController().signal);
  const { waitAny } = waitAnyHandler({ drover, polls: { hold } } as unknown as Deps, {
    problemOf,
    onBug: () => assert.fail("a bug"),
    rest: async () => {},
    waitedMax: 1000,
  });
  const [ann, bob] = [{ ...exchange.caller }, { ...exchange.caller }];
  const waitBy = (caller: typeof ann, count: number): Promise<unknown> =>
    waitAny({ body: { ids: ids.slice(0, count) } }, { ...exchange, caller }) as Promise<unknown>;
  const waiting = [ann, ann, ann].map((who) => waitBy(who, 300));
  await assert.rejects(within("a refusal", waitBy(ann, 1)), { code: "overloaded" });
  waiting.push(waitBy(bob, 100));
  await drover.cancel("t0");
  await within("answers", Promise.all(waiting));
  await within("an answer where there is room again", waitBy(ann, 1));
});
