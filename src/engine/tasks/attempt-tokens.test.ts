import assert from "node:assert/strict";
import { test } from "node:test";
import { ATTEMPT_TOKEN, ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { attemptToken } from "../../std/index.ts";
import { createTestDrover } from "../../testing/index.ts";

/** One task, which a worker that syncs leanly holds, and another worker beside it. */
async function heldTask() {
  const kit = await createTestDrover();
  const { remote } = kit.drover;
  const [ann, bob] = [await remote.join({ id: "ann" }), await remote.join({ id: "bob", actions: ["other"] })];
  await kit.drover.submit({ id: "t", agentId: "a", action: "go" });
  const lean = (more: object = {}) => remote.sync("ann", { session: ann.session, brief: true, lean: true, ...more });
  const [named] = (await lean()).named ?? [];
  assert.ok(named?.taskSeq !== undefined && ann.tokenKey !== undefined && bob.tokenKey !== undefined);
  const name = { taskId: named.taskId, attempt: named.attempt, taskSeq: named.taskSeq };
  const read = (key: string, more: object = {}) =>
    kit.drover.attemptTokens.read(attemptToken(key, { ...name, ...more }))?.task ?? null;
  return { kit, remote, name, read, lean, annKey: ann.tokenKey, bobKey: bob.tokenKey };
}

test("the worker that holds an attempt makes its token, and no other worker does", async () => {
  const { kit, name, read, annKey, bobKey } = await heldTask();
  assert.equal(read(annKey), "t");
  assert.equal(kit.drover.attemptTokens.read(kit.drover.attemptTokens.of("t", 1) ?? "")?.task, "t", "nor only it");
  assert.deepEqual([read(bobKey), read("")], [null, null]);
  const others = [{ attempt: 2 }, { taskSeq: name.taskSeq + 1 }, { taskId: "u" }];
  assert.deepEqual(
    others.map((other) => read(annKey, other)),
    [null, null, null],
  );
  await kit.drover.close();
});

test("a token that a worker made ends with its attempt, and with its session", async () => {
  const { kit, read, lean, name, annKey } = await heldTask();
  const { taskId, attempt } = name;
  await lean({ results: [{ taskId, attempt, outcome: "requeue", retryAfterMs: 0 }] });
  assert.equal(read(annKey), null);
  const again = await kit.drover.remote.join({ id: "ann" });
  assert.notEqual(again.tokenKey, annKey);
  await kit.drover.close();
});

test("every lean answer says the key, so a worker whose server was moved makes tokens that are good", async () => {
  const { kit, lean, annKey } = await heldTask();
  assert.equal((await lean()).tokenKey, annKey);
  assert.equal((await lean({ lean: false })).tokenKey, undefined);
  assert.match(attemptToken("k", { taskId: "\u4e2d".repeat(256), attempt: 1, taskSeq: 1 }), ATTEMPT_TOKEN_FORM);
  assert.ok(attemptToken("k", { taskId: "t", attempt: 1, taskSeq: 1 }).startsWith(ATTEMPT_TOKEN));
  await kit.drover.close();
});

test("a lean answer has no tokens, no assignments, and no more than the worker does not know", async () => {
  const { kit, lean } = await heldTask();
  const { assignments, tasks, named } = await lean();
  assert.deepEqual([assignments, named?.length], [[], 1]);
  assert.deepEqual(
    Object.keys(tasks?.[0] ?? {}).filter((key) => ["taskId", "state", "attempt", "worker"].includes(key)),
    [],
  );
  await kit.drover.close();
});
