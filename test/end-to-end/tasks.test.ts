/**
 * Tasks over HTTP, from submit to end, as any client sees them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer } from "../kits/server-kit.ts";

test("a task is submitted, pulled by a worker, finished and read", async () => {
  await using at = await openServer();
  const submitted = await at.ask("submit", { body: { agentId: "ann", action: "build", params: { a: 1 } } });
  assert.equal(submitted.status, 202);
  assert.equal(submitted.headers.get("drover-protocol"), "1");
  const { taskId } = submitted.json;
  const { json: worker } = await at.ask("joinWorker", { body: { slots: 2 } });
  const { session } = worker;
  const params = { id: worker.workerId };
  const first = await at.ask("sync", { params, body: { session, n: 1, waitMs: 5000 } });
  const [assignment] = first.json.assignments;
  assert.deepEqual([assignment?.taskId, assignment?.attempt, assignment?.task.params], [taskId, 1, { a: 1 }]);
  const results = [{ taskId, attempt: 1, outcome: "done", result: { ok: true } }] as const;
  const second = await at.ask("sync", { params, body: { session, n: 2, running: [], results } });
  assert.deepEqual(second.json.results, [{ taskId, attempt: 1, accepted: true }]);
  const read = await at.ask("task", { params: { id: taskId } });
  assert.deepEqual([read.status, read.json.state, read.json.result], [200, "done", { ok: true }]);
  const again = await at.ask("sync", { params, body: { session, n: 3, running: [], results } });
  assert.deepEqual(again.json.results, [{ taskId, attempt: 1, accepted: true, code: "duplicate" }]);
});
