/**
 * Spec 002 over HTTP: its calls, its forwarded action, its webhooks, its stats and its reload, as a caller meets them.
 *
 * The rules behind each call are held by 002-tasks.test.ts on the engine. Here a real server listens, the browser is a
 * small HTTP server on loopback, and every test's name quotes the section it is about.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { answering } from "../kits/loopback.ts";
import { openServer } from "../kits/test-server.ts";
import { inbox } from "../kits/waits.ts";

type Seen = { readonly path: string; readonly headers: IncomingMessage["headers"]; readonly body: unknown };
type Receiver = AsyncDisposable & { readonly url: string; next(): Promise<Seen> };

/** An HTTP server that keeps what it is posted, and answers 200 to everything. */
async function receiver(): Promise<Receiver> {
  const seen = inbox<Seen>("a request");
  const server = await answering(async (request, response) => {
    if (request.method === "POST")
      seen.put({ path: request.url ?? "", headers: request.headers, body: await json(request) });
    response.setHeader("content-type", "application/json").end('{"success":true}');
  });
  return { ...server, next: seen.next };
}

test("Runtime Placement: every call of the spec is there, with its shape", async () => {
  await using server = await openServer();
  const { ask } = server;
  const submitted = await ask("submit", { body: { id: "a", agentId: "ann", action: "click", tabId: "t1" } });
  assert.equal(submitted.status, 202);
  assert.equal(submitted.json.taskId, "a");
  assert.equal(submitted.json.position, 1);
  assert.deepEqual((await ask("task", { params: { id: "a" } })).json.tabId, "t1");
  const page = (await ask("tasks", { query: { agentId: "ann", state: ["queued"] } })).json;
  assert.deepEqual([page.count, page.tasks[0]?.taskId], [1, "a"]);
  const cancelled = await ask("cancel", { params: { id: "a" }, body: {} });
  assert.deepEqual([cancelled.status, cancelled.json], [200, { status: "cancelled", taskId: "a" }]);
  assert.equal((await ask("cancel", { params: { id: "a" }, body: {} })).status, 409);
  assert.equal((await ask("task", { params: { id: "nobody" } })).status, 404);
});

test("Admission And Limits: no room is 429 with the numbers, and the task is kept as rejected", async () => {
  await using server = await openServer({ settings: { scheduler: { maxPerAgent: 1 } } });
  const { ask } = server;
  await ask("submit", { body: { agentId: "ann", action: "click" } });
  const { status, problem, headers } = await ask("submit", { body: { agentId: "ann", action: "click" } });
  assert.deepEqual([status, problem.code, problem.retryable], [429, "queue_full", true]);
  assert.match(headers.get("retry-after") ?? "", /^\d+$/);
  const { agentId, queued, maxPerAgent, taskId } = problem.details as Record<string, unknown>;
  assert.deepEqual([agentId, queued, maxPerAgent], ["ann", 1, 1]);
  assert.equal((await ask("task", { params: { id: String(taskId) } })).json.state, "rejected");
});

test("P22 Execution Contract: POST /tabs/{tabId}/action, and what the task sets itself wins over params", async () => {
  await using browser = await receiver();
  await using server = await openServer();
  const { ask } = server;
  await ask("joinWorker", { body: { id: "chrome", endpoint: browser.url, capabilities: ["tab:t1"] } });
  const params = { button: "left", kind: "navigate", ref: "e9", selector: "#go", tabId: "t2" };
  await ask("submit", { body: { id: "a", agentId: "ann", action: "click", tabId: "t1", ref: "e5", params } });
  const { path, body } = await browser.next();
  assert.equal(path, "/tabs/t1/action");
  assert.deepEqual(body, { button: "left", kind: "click", ref: "e5", selector: "#go" });
  const { state, result } = (await ask("wait", { params: { id: "a" }, query: {} })).json;
  assert.deepEqual([state, result], ["done", { success: true }]);
});

test("Webhook Delivery: a POST of the snapshot at the end, with its headers; it never changes the task", async () => {
  await using hook = await receiver();
  await using server = await openServer({ settings: { webhooks: { allowPrivate: true } } });
  const { ask } = server;
  const body = { id: "a", agentId: "ann", action: "click", callbackUrl: `${hook.url}/done` };
  await ask("submit", { body });
  await ask("cancel", { params: { id: "a" }, body: { reason: "enough" } });
  const { path, headers, body: snapshot } = await hook.next();
  assert.deepEqual([path, headers["x-drover-event"], headers["x-drover-task-id"]], ["/done", "task.cancelled", "a"]);
  const { taskId, state, error } = snapshot as Record<string, unknown>;
  assert.deepEqual([taskId, state, error], ["a", "cancelled", "enough"]);
  for (const callbackUrl of ["ftp://example.com/x", "file:///etc/passwd", "javascript:alert(1)"])
    assert.equal((await ask("submit", { body: { ...body, id: "b", callbackUrl } })).status, 400);
});

test("Batch Submission: one bad item never fails the others, and more than maxBatch are refused together", async () => {
  await using server = await openServer();
  const { ask, call } = server;
  const tasks = [{ id: "a", action: "click" }, { action: 7 }, { id: "b", action: "type" }];
  const { status, json: answer } = await call("POST", "/tasks/batch", { body: { agentId: "ann", tasks } });
  assert.equal(status, 202);
  const { submitted, accepted, rejected } = answer as Record<string, unknown>;
  assert.deepEqual({ submitted, accepted, rejected }, { submitted: 3, accepted: 2, rejected: 1 });
  const many = await ask("submitBatch", { body: { agentId: "ann", tasks: Array(51).fill({ action: "click" }) } });
  assert.deepEqual(
    [many.status, many.problem.code, many.problem.details],
    [400, "batch_too_large", { submitted: 51, max: 50 }],
  );
});

test("Stats Endpoint: queue, metrics and config, and submitted counts what was rejected", async () => {
  await using server = await openServer({ settings: { scheduler: { maxQueue: 1 } } });
  const { ask } = server;
  for (const id of ["a", "b"]) await ask("submit", { body: { id, agentId: "ann", action: "click" } });
  const { queue, metrics, config } = (await ask("stats", {})).json;
  assert.deepEqual([queue.totalQueued, queue.agents.ann], [1, { queued: 1, inflight: 0 }]);
  assert.deepEqual([metrics.tasksSubmitted, metrics.tasksRejected], [2, 1]);
  assert.equal(config.maxQueue, 1);
});

test("Config Hot-Reload: limits change while it runs, and zero is refused, not ignored", async () => {
  await using server = await openServer({ settings: { scheduler: { maxQueue: 1 } } });
  const { ask } = server;
  const submit = async (id: string): Promise<number> =>
    (await ask("submit", { body: { id, agentId: "ann", action: "click" } })).status;
  assert.deepEqual([await submit("a"), await submit("b")], [202, 429]);
  assert.equal((await ask("patchConfig", { body: { maxQueue: 2 } })).json.maxQueue, 2);
  assert.equal(await submit("c"), 202);
  const refused = await ask("patchConfig", { body: { maxQueue: 0 } });
  assert.deepEqual([refused.status, (await ask("config", {})).json.maxQueue], [400, 2]);
});

test("P17 an agent is bound to its token, and a thousand agents are not a thousand labels", async () => {
  const tokens = [
    { role: "admin", token: "admin-0123456789abcdef" },
    { role: "agent", agentId: "ann", token: "ann-0123456789abcdef" },
  ];
  await using server = await openServer({ settings: { server: { tokens } } });
  const { ask } = server;
  const asAnn = { token: "ann-0123456789abcdef" };
  const claim = await ask("submit", { body: { agentId: "bob", action: "click" } }, asAnn);
  assert.deepEqual([claim.status, claim.problem.code], [403, "forbidden"]);
  assert.equal((await ask("submit", { body: { agentId: "ann", action: "click" } }, asAnn)).status, 202);
  const asAdmin = { token: "admin-0123456789abcdef" };
  for (let agent = 0; agent < 1000; agent += 50) {
    const batch = Array.from({ length: 50 }, (_, index) => ({ action: "x", project: `p${agent + index}` }));
    await ask("submitBatch", { body: { agentId: `agent-${agent}`, tasks: batch } }, asAdmin);
  }
  const { text } = await ask("metrics", {}, asAdmin);
  assert.doesNotMatch(text, /agent-/);
  const labels = new Set([...text.matchAll(/^drover_tasks\{project="([^"]*)"/gm)].map(([, project]) => project));
  assert.ok(labels.size <= 51 && labels.has("other"), `${labels.size} projects have a label`);
});
