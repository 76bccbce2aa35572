/**
 * Tasks that were turned away are whole: shown as they were submitted, listed, and not to be cancelled.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";
import type { TaskInput } from "./task-body.ts";

const WHOLE: Omit<TaskInput, "id"> = {
  ...{ agentId: "ann", action: "build", project: "site", type: "code", priority: "high", tabId: "a", ref: "e5" },
  ...{ params: { deep: [1, { two: null }] }, payload: "x", capabilities: ["git"], locks: ["repo"], timeoutMs: 5000 },
  ...{ callbackUrl: "https://example.com/hook", estimatedTokens: 12, onLoss: "retry", deadline: 1_900_000_000_000 },
};

/** A queue with room for one, which is taken. */
async function full() {
  const kit = await createTestDrover({ config: { scheduler: { maxQueue: 1 } } });
  await kit.drover.submit({ agentId: "ann", action: "first", id: "first" });
  const turnAway = async (body: object): Promise<string> => {
    const error = await kit.drover.submit(body as TaskInput).catch((thrown: unknown) => thrown);
    return (error as { details: { taskId: string } }).details.taskId;
  };
  return { ...kit, turnAway };
}

test("a rejected task has all its submitted fields, and when and why it was rejected", async () => {
  const { drover, turnAway, clock } = await full();
  const at = new Date(clock.now()).toISOString();
  for (const id of [undefined, "mine"]) {
    const taskId = await turnAway({ ...WHOLE, ...(id === undefined ? {} : { id }) });
    const { error, ...view } = await drover.task(taskId);
    assert.deepEqual(view, {
      ...{ ...WHOLE, taskId, state: "rejected", attempt: 0, latencyMs: 0, createdAt: at, completedAt: at },
      deadline: "2030-03-17T17:46:40.000Z",
    });
    assert.match(error ?? "", /maxQueue/);
    assert.equal(id ?? taskId, taskId);
  }
});

test("rejected tasks are listed by their state, page by page, behind all others, and by nothing else", async () => {
  const { drover, turnAway } = await full();
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) ids.push(await turnAway({ agentId: n < 3 ? "ann" : "bob", action: "go", type: "code" }));
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const filter = { state: ["queued", "rejected"], limit: 2, ...(cursor === undefined ? {} : { cursor }) } as const;
    const page = await drover.tasks(filter);
    assert.equal(page.count, page.tasks.length);
    pages.push(page.tasks.map(({ taskId }) => taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.deepEqual(pages, [
    ["first", ids[0]],
    [ids[1], ids[2]],
    [ids[3], ids[4]],
  ]);
  const listed = async (filter: object): Promise<string[]> =>
    (await drover.tasks(filter)).tasks.map(({ taskId }) => taskId);
  assert.deepEqual(await listed({ state: "rejected", agentId: "bob" }), ids.slice(3));
  assert.deepEqual(await listed({ state: "rejected", type: "plan" }), []);
  assert.deepEqual(await listed({ state: "rejected", project: "default", limit: 1 }), ids.slice(0, 1));
  assert.deepEqual(await listed({}), ["first"]);
  assert.equal((await drover.task(ids[0] ?? "")).state, "rejected");
});

test("one that was let in since is a task like any other, and one whose time is over is gone", async () => {
  const { drover, turnAway, clock } = await full();
  await turnAway({ agentId: "ann", action: "go", id: "again" });
  await turnAway({ agentId: "ann", action: "go", id: "late" });
  await drover.cancel("first");
  await drover.submit({ agentId: "ann", action: "go", id: "again" });
  const listed = async (): Promise<unknown> =>
    (await drover.tasks({ state: "rejected" })).tasks.map(({ taskId }) => taskId);
  assert.deepEqual([(await drover.task("again")).state, await listed()], ["queued", ["late"]]);
  await drover.cancel("again");
  await clock.advance(300_000);
  assert.deepEqual(await listed(), []);
  await assert.rejects(drover.task("late"), { code: "not_found" });
});

test("what was rejected cannot be cancelled, retried or patched, and waits for nothing: it has ended", async () => {
  const { drover, turnAway } = await full();
  const id = await turnAway({ agentId: "ann", action: "go" });
  for (const call of [drover.cancel(id), drover.retry(id), drover.patch(id, { priority: 5 }), drover.why(id)])
    await assert.rejects(call, {
      code: "conflict",
      message: `task ${id} was rejected and never let in; submit it again`,
    });
  assert.equal((await drover.cancelWhere({ state: "rejected" })).count, 0);
  await assert.rejects(drover.cancel("rej_1_1"), { code: "not_found" });
});

test("an id like that of a rejected task cannot be chosen, alone or in a batch, and none is given twice", async () => {
  const { drover, turnAway, clock } = await full();
  const first = await turnAway({ agentId: "ann", action: "go" });
  for (const id of ["rej_1", "rej_x", first])
    await assert.rejects(drover.submit({ agentId: "ann", action: "go", id }), {
      code: "bad_request",
      message: /^id is/,
    });
  const { tasks } = await drover.submitBatch({ agentId: "ann", tasks: [{ action: "go", id: "rej_1" }] });
  assert.match(tasks[0]?.error ?? "", /^tasks\[0\]\.id is "rej_1"/);
  const later = await full();
  await later.clock.advance(clock.now() + 1 - later.clock.now());
  assert.notEqual(await later.turnAway({ agentId: "ann", action: "go" }), first);
});

test("a flood of large rejected tasks is kept up to a size, the last ones first", async () => {
  const { drover, turnAway } = await full();
  const payload = "x".repeat(1_000_000);
  const ids: string[] = [];
  for (let n = 0; n < 20; n++) ids.push(await turnAway({ agentId: "ann", action: "go", payload }));
  assert.equal((await drover.task(ids.at(-1) ?? "")).payload, payload);
  await assert.rejects(drover.task(ids[0] ?? ""), { code: "not_found" });
  const page = await drover.tasks({ state: "rejected" });
  assert.ok(page.count < 16 && page.nextCursor !== undefined, "a page ends by its bytes");
});
