/**
 * Every call of the wire once as it is meant: the status and the shape that the table of calls promises.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { after, before, test } from "node:test";
import {
  type Answered,
  type Asked,
  CALLS,
  type Call,
  type CallName,
  readShape,
  type SyncBody,
} from "../../src/protocol/index.ts";
import { openServer, type Reply, type TestServer } from "../kits/test-server.ts";

let at: TestServer;
before(async () => {
  const logsOf = (task: string, attempt = 1) =>
    task === "far" ? null : { attempt, text: "one\ntwo\n", truncated: false };
  at = await openServer({ server: { logsOf }, settings: { webhooks: { allowPrivate: true } } });
  await at.ask("submit", { body: { id: "t1", agentId: "ann", action: "x" } });
  await at.ask("submit", { body: { id: "t2", agentId: "ann", action: "x" } });
  await at.ask("submit", { body: { id: "t3", agentId: "ann", action: "x" } });
  await at.ask("cancel", { params: { id: "t3" }, body: {} });
  await at.ask("submit", {
    body: { id: "parked", agentId: "ann", action: "x", approval: true, capabilities: ["nobody-has-it"] },
  });
  const batch = await at.ask("submitBatch", {
    body: { agentId: "ann", tasks: [{ action: "x", capabilities: ["none-has-it"] }] },
  });
  group.id = batch.json.groupId ?? "";
  await at.ask("putPlan", { params: { id: "gone" }, query: {}, body: { tasks: { a: "true" } } });
  await at.ask("cancelPlan", { params: { id: "gone" }, body: {} });
  await at.ask("joinWorker", { body: { id: "w1" } });
  await at.ask("joinWorker", { body: { id: "w2" } });
  await at.ask("putSchedule", { params: { id: "s1" }, body: { cron: "@daily", task: { agentId: "a", action: "b" } } });
  for (const id of ["call-1", "call-2"]) await at.ask("askPermit", { body: { gate: "g", id } });
  await at.ask("askPermit", { body: { gate: "unused", id: "once" } });
  await at.ask("settlePermit", { params: { id: "once" }, body: {} });
  await leaveFile();
  await wantLog();
});
after(() => at.server.close());

const CONTENT = "what a task left";
const HASH = hash("sha256", CONTENT, "hex");

/** A task has ended, and left a file. */
async function leaveFile(): Promise<void> {
  await at.ask("joinWorker", { body: { id: "w4", capabilities: ["files"] } });
  await at.ask("submit", { body: { id: "left", agentId: "bob", action: "x", capabilities: ["files"] } });
  await at.ask("sync", { params: { id: "w4" }, body: { n: 1, waitMs: 5000 } });
  const { hash: stored, size } = await at.drover.files.put(CONTENT);
  const files = [{ path: "a/b.txt", hash: stored, size }];
  const results = [{ taskId: "left", attempt: 1, outcome: "done" as const, files }];
  const reply = await at.ask("sync", { params: { id: "w4" }, body: { n: 2, results } });
  assert.deepEqual(reply.json.results, [{ taskId: "left", attempt: 1, accepted: true }]);
}

/** Somebody wants the log of a task that another machine's worker runs, and its worker has heard of it. */
async function wantLog(): Promise<void> {
  const sync = (n: number, more: SyncBody = {}) =>
    at.ask("sync", { params: { id: "w3" }, body: { n, want: 1, waitMs: 5000, logPlace: "p3", ...more } });
  await at.ask("joinWorker", { body: { id: "w3", capabilities: ["far"] } });
  await at.ask("submit", { body: { id: "far", agentId: "bob", action: "x", capabilities: ["far"] } });
  await sync(1);
  // What it does not name it is told of again, and its poll would end with that.
  const poll = sync(2, { running: [{ taskId: "far", attempt: 1 }] });
  void at.ask("logs", { params: { id: "far" }, query: {} });
  wanted.id = (await poll).json.logs?.[0]?.id ?? "nothing was wanted";
}

const wanted = { id: "", text: "far\n", truncated: false };
const task = { params: { id: "t1" } };
const group = { id: "" };
/** A server alone is no node of a cluster: cluster.slow.test.ts asks nodes. */
const asked: { [Name in Exclude<CallName, "cluster">]: Asked<Name> } = {
  bulk: {
    body: {
      calls: [
        { call: "submit", body: { agentId: "ann", action: "x" } },
        { call: "cancel", id: "nobody" },
      ],
    },
  },
  waitAny: { body: { ids: ["t1", "nobody"], timeoutMs: 1 } },
  waitPermits: { body: { ids: ["p1", "nobody"], timeoutMs: 1 } },
  submit: { body: { agentId: "ann", action: "build", params: { a: [1, { b: null }] }, needs: ["t1"], locks: ["l"] } },
  submitBatch: {
    body: {
      agentId: "ann",
      tasks: [
        { action: "x", id: "b1" },
        { action: "y", needs: ["b1"] },
      ],
    },
  },
  tasks: { query: { agentId: "ann", state: ["queued", "cancelled"], limit: 2 } },
  task,
  patch: { ...task, body: { priority: "high", deadline: "2099-01-01T00:00:00Z" } },
  cancel: { params: { id: "t2" }, body: { reason: "enough" } },
  cancelWhere: { body: { filter: { agentId: "nobody", state: "queued" } } },
  retry: { params: { id: "t3" } },
  approve: { params: { id: "parked" }, body: { note: "yes" } },
  why: { ...task, query: { at: 5 } },
  wait: { ...task, query: { timeoutMs: 1 } },
  logs: { ...task, query: { attempt: 1, tail: 10 } },
  putFile: { params: { hash: hash("sha256", "", "hex") }, query: {} },
  file: { params: { hash: HASH }, query: { task: "left" } },
  group: { params: group },
  waitGroup: { params: group, query: { timeoutMs: 1 } },
  cancelGroup: { params: group, body: { reason: "enough" } },
  retryGroup: { params: group },
  putPlan: {
    params: { id: "release" },
    query: { only: ["build"], failFast: true },
    body: { tasks: { build: { run: "make", loop: { max: 2 } }, test: { run: "make test", needs: ["build"] } } },
  },
  plans: { query: { limit: 1 } },
  plan: { params: { id: "release" }, query: { document: true } },
  pausePlan: { params: { id: "release" } },
  resumePlan: { params: { id: "release" } },
  cancelPlan: { params: { id: "release" }, body: { reason: "enough" } },
  removePlan: { params: { id: "gone" } },
  retryPlan: { params: { id: "release" } },
  usage: { query: { by: "label:team", since: "2026-01-31T00:00:00Z" } },
  projects: {},
  project: { params: { id: "default" } },
  putProject: { params: { id: "site" }, body: { weight: 2, budget: { limit: 1000, window: "1h" } } },
  workers: {},
  joinWorker: { body: { slots: 2, capabilities: ["git"], resources: { cpuMillicores: 100 }, zone: "here" } },
  sync: { params: { id: "w1" }, body: { n: 1, want: 1, waitMs: 1, status: "ready", running: [], results: [] } },
  handInLog: { params: { id: "w3" }, body: wanted },
  drainWorker: { params: { id: "w1" }, query: {} },
  leaveWorker: { params: { id: "w2" }, query: {} },
  schedules: { query: { limit: 1 } },
  schedule: { params: { id: "s1" } },
  putSchedule: {
    params: { id: "s2" },
    body: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", overlap: "queue", task: { agentId: "a", action: "b" } },
  },
  removeSchedule: { params: { id: "s1" } },
  askPermit: { body: { gate: "anthropic/default", id: "c1", class: "high", tokens: 10, waitMs: 1 } },
  settlePermit: { params: { id: "call-1" }, body: { ok: true, usage: { inputTokens: 3, outputTokens: 4 } } },
  dropPermit: { params: { id: "call-2" }, query: {} },
  gates: {},
  gate: { params: { id: "g" } },
  resetGate: { params: { id: "g" } },
  removeGate: { params: { id: "unused" } },
  stats: {},
  queue: {},
  line: { query: { limit: 2 } },
  config: {},
  patchConfig: { body: { maxInFlight: 7, fairness: { halfLife: "5m" } } },
  reload: {},
  pause: { body: { project: "default" } },
  resume: { body: { project: "default" } },
  events: { query: { after: 1, limit: 3 } },
  links: { ...task, query: { limit: 2 } },
  history: { query: { step: 60_000 } },
  stuck: {},
  whoami: {},
  pulse: {},
  settings: {},
  verify: {},
  health: {},
  ready: {},
  metrics: {},
  openapi: {},
};

const check = async <Name extends keyof typeof asked>(name: Name): Promise<Reply<Answered<Name>>> => {
  const reply = await at.ask(name, asked[name]);
  const { answers } = CALLS[name] as unknown as Call;
  const [[status, schema] = ["", undefined]] = Object.entries(answers);
  assert.equal(String(reply.status), status, reply.text);
  if (schema !== undefined && name !== "metrics" && name !== "file") {
    const read = readShape(schema, reply.json);
    assert.ok(read.ok, read.ok ? "" : JSON.stringify(read.failure));
  }
  assert.equal(reply.headers.get("x-content-type-options"), "nosniff");
  assert.equal(reply.headers.get("cache-control"), "no-store");
  assert.equal(reply.headers.get("drover-protocol"), "1");
  assert.equal(reply.headers.get("access-control-allow-origin"), null);
  return reply;
};
for (const name of Object.keys(asked) as (keyof typeof asked)[])
  test(`${name}: ${CALLS[name].method} ${CALLS[name].path} answers as the document promises`, () => check(name).then());

test("what was asked for was done", async () => {
  assert.equal((await at.ask("task", { params: { id: "t2" } })).json.error, "enough");
  assert.equal((await at.ask("config", {})).json.maxInFlight, 7);
  assert.equal((await at.ask("schedule", { params: { id: "s1" } })).status, 404);
  assert.deepEqual((await at.ask("logs", { ...task, query: { attempt: 1 } })).json, {
    ...{ taskId: "t1", attempt: 1, text: "one\ntwo\n", truncated: false },
  });
  assert.equal((await at.ask("task", task)).json.priority, -100);
  const { json } = await at.ask("tasks", { query: { agentId: "ann", limit: 2 } });
  assert.deepEqual(
    json.tasks.map(({ taskId }) => taskId),
    ["t1", "t2"],
  );
});

test("a file comes as it was put, and as nothing that a browser would open", async () => {
  const { text, headers } = await at.ask("file", { params: { hash: HASH }, query: {} });
  assert.equal(text, CONTENT);
  assert.equal(headers.get("content-type"), "application/octet-stream");
  assert.equal(headers.get("content-disposition"), `attachment; filename="${HASH}"`);
  assert.equal(headers.get("content-security-policy"), "sandbox; default-src 'none'");
  const head = await at.call("HEAD", `/files/${HASH}`);
  assert.deepEqual([head.status, head.text, head.headers.get("content-length")], [200, "", String(CONTENT.length)]);
});

test("HEAD is GET without a body, where GET does not wait", async () => {
  const head = await at.call("HEAD", "/tasks/t1");
  assert.deepEqual([head.status, head.text], [200, ""]);
  assert.equal((await at.call("HEAD", "/events")).status, 405);
});
