/**
 * A task that waits for its children, over the wire: by commands, by a worker whose report is repeated, and over a
 * restart of the server.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import { createExecHandler } from "../../src/worker/exec/handler.ts";
import { startWorker } from "../../src/worker/index.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { until, within } from "../kits/waits.ts";

const stateOf = async ({ drover }: TestServer, id: string): Promise<string> => (await drover.task(id)).state;
const idsOf = ({ tasks }: { tasks: readonly { taskId: string }[] }): string[] => tasks.map(({ taskId }) => taskId);

test("a command submits children and leaves its only slot to them; it is done after the last", async () => {
  await using server = await openServer({});
  const data = mkdtempSync(join(tmpdir(), "drover-"));
  const script =
    '[ "$DROVER_TASK_ID" = plan ] || { echo \'{"leaf":true}\'; exit 0; }\n' +
    "for id in one two; do curl -sf -H \"authorization: Bearer $DROVER_TOKEN\" -H 'content-type: application/json' " +
    '-d "{\\"id\\":\\"$id\\",\\"action\\":\\"leaf\\"}" "$DROVER_URL/tasks" >&2; done; echo \'{"planned":2}\'';
  const exec = createExecHandler({ command: script, shell: true, data, workerId: "p", url: server.url, cwd: data });
  const worker = await startWorker({ url: server.url, id: "p", slots: 1 }, (task, context) => exec.run(task, context));
  try {
    const client = createClient({ url: server.url });
    await client.submit({ id: "plan", agentId: "ann", action: "plan", wait: "children" });
    await within("plan ends", server.drover.wait("plan"));
    const { state, wait, result, children } = await client.task("plan");
    assert.deepEqual([state, wait, children], ["done", "children", { total: 2, open: 0 }]);
    assert.deepEqual(result, { outcome: "done", result: { planned: 2 } });
    assert.deepEqual([await stateOf(server, "one"), await stateOf(server, "two")], ["done", "done"]);
    assert.deepEqual(idsOf(await client.tasks({ root: "plan" })), ["plan", "one", "two"]);
    assert.deepEqual(idsOf(await client.tasks({ parent: "plan", order: "newest" })), ["two", "one"]);
    assert.equal((await server.call("GET", "/tasks?root=")).status, 400);
  } finally {
    await worker.close();
    await exec.close();
    rmSync(data, { recursive: true, force: true });
  }
});

test("a report that is repeated counts once, and a parked parent outlives the server", async () => {
  const data = mkdtempSync(join(tmpdir(), "drover-"));
  try {
    {
      await using server = await openServer({ open: { data } });
      const { drover } = server;
      await drover.remote.join({ id: "r", slots: 1 });
      await drover.submit({ id: "plan", agentId: "ann", action: "plan", wait: "children" });
      const { assignments } = await drover.remote.sync("r", { n: 1 });
      const headers = { authorization: `Bearer ${assignments[0]?.token}` };
      const made = await server.call("POST", "/tasks", {
        headers,
        body: { id: "child", action: "leaf", capabilities: ["later"] },
      });
      assert.equal(made.status, 202, made.text);
      const results = [{ taskId: "plan", attempt: 1, outcome: "done" as const, result: { answer: 42 } }];
      const said = await drover.remote.sync("r", { n: 2, results });
      assert.equal(await stateOf(server, "plan"), "parked");
      const again = await drover.remote.sync("r", { n: 3, results, running: [] });
      assert.deepEqual(said.results, [{ taskId: "plan", attempt: 1, accepted: true }]);
      assert.deepEqual(again.results, [{ taskId: "plan", attempt: 1, accepted: true, code: "duplicate" }]);
      const late = await server.call("POST", "/tasks", { headers, body: { action: "late" } });
      assert.equal(late.status, 401, "its token went with its attempt");
      const why = await server.call("GET", "/tasks/plan/why");
      assert.match(why.text, /grew below it has ended: child/);
    }
    await using server = await openServer({ open: { data } });
    await server.drover.worker({ id: "w", capabilities: ["later"] }, () => "leaf");
    await until("plan is done", async () => (await stateOf(server, "plan")) === "done");
    assert.deepEqual((await server.drover.task("plan")).result, { answer: 42 });
  } finally {
    rmSync(data, { recursive: true });
  }
});
