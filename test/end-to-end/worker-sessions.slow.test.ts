/**
 * One name, one session at a time: what a worker that was replaced still says does not touch its successor; nor does
 * what is said of a task touch a later one of the same id.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Assignment, AttemptRef, SyncBody } from "../../src/protocol/index.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { openServer } from "../kits/test-server.ts";

test("a worker that was replaced cannot send its successor away; who names no session can", async () => {
  await using at = await openServer();
  const join = async (): Promise<string> => (await at.ask("joinWorker", { body: { id: "w" } })).json.session;
  const leave = (query: { session?: string }) => at.ask("leaveWorker", { params: { id: "w" }, query });
  const [first, second] = [await join(), await join()];
  await at.ask("submit", { body: { id: "t", agentId: "ann", action: "x" } });
  const running = [{ taskId: "t", attempt: 1 }];
  await at.ask("sync", { params: { id: "w" }, body: { session: second, waitMs: 5000 } });
  await at.ask("sync", { params: { id: "w" }, body: { session: second, running } });
  const late = await leave({ session: first });
  assert.deepEqual([late.status, late.problem.code], [409, "session_lost"]);
  assert.equal((await at.ask("task", { params: { id: "t" } })).json.state, "running");
  assert.equal((await leave({ session: second })).status, 200);
  assert.equal((await at.ask("task", { params: { id: "t" } })).json.state, "queued");
  await join();
  assert.equal((await leave({})).status, 200);
  assert.equal((await leave({})).status, 404);
});

test("a result that is repeated when its task is forgotten does not end a later task of the same id", async () => {
  const clock = createHandClock({ at: 0 });
  const scheduler = { resultTtl: "1s", remember: "2s" };
  await using at = await openServer({ settings: { scheduler }, open: { clock } });
  const { session } = (await at.ask("joinWorker", { body: { id: "w" } })).json;
  const sync = async (body: SyncBody) =>
    (await at.ask("sync", { params: { id: "w" }, body: { session, ...body } })).json;
  /** The task, as the worker that runs it names it. */
  const given = async (): Promise<AttemptRef> => {
    await at.ask("submit", { body: { id: "t", agentId: "ann", action: "x" } });
    const { taskId, attempt, taskSeq } = (await sync({})).assignments[0] as Assignment;
    assert.ok(taskSeq);
    return { taskId, attempt, taskSeq };
  };
  const stateOf = async () => (await at.ask("task", { params: { id: "t" } })).json;
  const first = await given();
  const report = { ...first, outcome: "done", result: 1 } as const;
  await sync({ running: [first] });
  // As if the answer were lost.
  await sync({ results: [report] });
  await clock.advance(3500);
  const second = await given();
  assert.deepEqual({ ...second, taskSeq: 0 }, { ...first, taskSeq: 0 });
  const said = await sync({ results: [report], running: [second] });
  assert.deepEqual(said.results, [{ ...first, accepted: false, code: "not_found" }]);
  assert.equal((await stateOf()).state, "running");
  await sync({ results: [{ ...report, ...second, result: 2 }], running: [] });
  assert.deepEqual([(await stateOf()).state, (await stateOf()).result], ["done", 2]);
});
