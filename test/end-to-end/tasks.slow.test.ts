/**
 * Tasks over HTTP, from submit to end, as any client sees them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer } from "../kits/test-server.ts";

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

test("tasks and events are found by their labels, and what has them is cancelled", async () => {
  await using at = await openServer();
  for (const [id, labels] of Object.entries({ a: { team: "web", run: "1,2" }, b: { team: "web" }, c: {} }))
    await at.ask("submit", { body: { id, agentId: "ann", action: "x", labels } });
  const page = async (label: string | readonly string[]): Promise<unknown> =>
    (await at.ask("tasks", { query: { label } })).json.tasks.map(({ taskId }) => taskId);
  assert.deepEqual(await page("team=web"), ["a", "b"]);
  assert.deepEqual(await page(["team=web", "run=1,2"]), ["a"]);
  const wrong = await at.ask("tasks", { query: { label: "team" } });
  assert.deepEqual(
    [wrong.status, wrong.problem.error],
    [400, 'label is "team", and must be a label such as team=web, or a list of at most 32'],
  );
  const found = await at.ask("events", { query: { label: "run=1,2" } });
  assert.deepEqual(
    found.json.events.map(({ task, kind }) => `${task} ${kind}`),
    ["a task-submitted"],
  );
  const cancelled = await at.ask("cancelWhere", { body: { filter: { label: ["team=web", "run=1,2"] } } });
  assert.equal(cancelled.json.count, 1);
  assert.equal((await at.ask("task", { params: { id: "b" } })).json.state, "queued");
});

test("no instant is shown as milliseconds: neither in a sentence of why nor in its numbers", async () => {
  await using at = await openServer({ settings: { scheduler: { placement: { strategy: "affinity" } } } });
  const body = { agentId: "ann", action: "x" };
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const ids = ["rests", "blocked", "deadline", "early", "tab", "stopping"];
  for (const [id, more] of Object.entries({
    rests: {},
    blocked: { provider: "anthropic/default", capabilities: ["gpu"] },
    deadline: { deadline: later, capabilities: ["gpu"] },
    early: { notBefore: later },
    tab: { tabId: "t1" },
  }))
    assert.equal((await at.ask("submit", { body: { ...body, id, ...more } })).status, 202, id);
  const { json: worker } = await at.ask("joinWorker", { body: { id: "w1", slots: 5 } });
  const sync = (body: object) => at.ask("sync", { params: { id: "w1" }, body: { session: worker.session, ...body } });
  await sync({ n: 1, waitMs: 5000 });
  await sync({ n: 2, running: [], results: [{ taskId: "rests", attempt: 1, outcome: "failed", error: "no" }] });
  await at.ask("askPermit", { body: { gate: "anthropic/default", id: "c1" } });
  await at.ask("settlePermit", { params: { id: "c1" }, body: { ok: false, rateLimited: { retryAfterMs: 60_000 } } });
  await at.ask("submit", { body: { ...body, id: "stopping" } });
  await sync({ n: 3, waitMs: 5000 });
  await sync({ n: 4, running: [{ taskId: "stopping", attempt: 1 }] });
  for (const id of ids) {
    const { text, json } = await at.ask("why", { params: { id }, query: {} });
    assert.doesNotMatch(text, /\d{12}/, id);
    if (id !== "stopping") assert.match(text, /\d{4}-\d\d-\d\dT/, `${id}: ${json.summary}`);
  }
  const past = await at.ask("submit", { body: { ...body, deadline: "2001-01-01T00:00:00Z" } });
  assert.match(past.problem.error, /^deadline 2001-01-01T00:00:00\.000Z has passed \(now is \d{4}-/);
  assert.doesNotMatch(past.text, /\d{12}/);
});

test("a task says its depth, what its turn goes by and which try it is, and what waits has not started", async () => {
  await using at = await openServer();
  const { json: worker } = await at.ask("joinWorker", { body: { id: "w1" } });
  const sync = (body: object) => at.ask("sync", { params: { id: "w1" }, body: { session: worker.session, ...body } });
  await at.ask("submit", { body: { agentId: "ann", action: "x", id: "root", type: "plan", priority: -50 } });
  await at.ask("submit", { body: { agentId: "ann", action: "x", id: "leaf", type: "code", parent: "root" } });
  await sync({ n: 1, waitMs: 5000 });
  const read = async (id: string) => (await at.ask("task", { params: { id } })).json;
  const running = await read("root");
  assert.deepEqual([running.depth, running.score, running.effectivePriority], [0, 40, -50]);
  assert.notEqual(running.startedAt, undefined);
  await sync({ n: 2, running: [], results: [{ taskId: "root", attempt: 1, outcome: "failed", error: "no" }] });
  const again = await read("root");
  assert.deepEqual([again.state, again.startedAt, again.iteration, again.score], ["queued", undefined, 2, 35]);
  const leaf = await read("leaf");
  assert.deepEqual([leaf.depth, leaf.score, leaf.effectivePriority, leaf.iteration], [1, 110, -50, undefined]);
  await at.ask("cancel", { params: { id: "root" }, body: {} });
  const { depth, score, effectivePriority, startedAt } = await read("root");
  assert.deepEqual([depth, score, effectivePriority, startedAt], [0, undefined, undefined, undefined]);
});

test("a rejected task over HTTP: whole, listed by its state, and cancelling it is a conflict", async () => {
  await using at = await openServer({ settings: { scheduler: { maxQueue: 1 } } });
  await at.ask("submit", { body: { agentId: "ann", action: "first" } });
  const body = { agentId: "ann", action: "go", params: { deep: [1] }, tabId: "a" };
  const refusal = await at.ask("submit", { body });
  assert.equal(refusal.status, 429);
  const id = String(refusal.problem.details?.taskId);
  assert.partialDeepStrictEqual((await at.ask("task", { params: { id } })).json, { ...body, state: "rejected" });
  const { json } = await at.ask("tasks", { query: { state: ["rejected"] } });
  assert.deepEqual(
    json.tasks.map(({ taskId, params }) => [taskId, params]),
    [[id, body.params]],
  );
  const cancelled = await at.ask("cancel", { params: { id }, body: {} });
  assert.deepEqual([cancelled.status, cancelled.problem.code], [409, "conflict"]);
  const chosen = await at.ask("submit", { body: { ...body, id } });
  assert.deepEqual([chosen.status, chosen.problem.code], [400, "bad_request"]);
});
