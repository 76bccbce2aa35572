/**
 * One name, one session at a time: what a worker that was replaced still says does not touch its successor.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
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
