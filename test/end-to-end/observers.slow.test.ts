/**
 * Those who look on: the log tells what happens and no secret, the metrics add up, spans arrive, pages load nothing
 * from elsewhere.
 */
import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { type Logger, pino } from "pino";
import type { TaskBody } from "../../src/protocol/index.ts";
import { buildPage, isPageFresh } from "../../tools/page.ts";
import { answering } from "../kits/loopback.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { until } from "../kits/waits.ts";

type Listening = {
  readonly logger: Logger;
  readonly lines: () => Record<string, unknown>[];
  readonly text: () => string;
  /** Resolves when there is a line with this message. */
  readonly said: (msg: string) => Promise<void>;
};

/** A logger whose lines are kept. */
function listening(level: string): Listening {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  const text = (): string => chunks.join("");
  const lines = (): Record<string, unknown>[] =>
    text()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const said = (wanted: string): Promise<void> =>
    until(`the line "${wanted}"`, () => lines().some(({ msg }) => msg === wanted));
  return { logger: pino({ level }, stream), lines, text, said };
}

/** As pino numbers it. */
const DEBUG = 20;
const SECRET = "hunter2-of-the-prompt";
const TOKEN = "token-of-admin-0123456789";
const settings = {
  server: { tokens: [{ role: "admin", token: TOKEN }] },
  webhooks: { allowPrivate: true },
};

/** Every field of a task but what would keep it waiting; a secret wherever the log has no reason to tell a name. */
const body = {
  ...{ id: "tsk-1", agentId: "ann", project: "web", type: "code", provider: "anthropic", priority: 0, maxAttempts: 2 },
  ...{ deadline: "2099-01-01T00:00:00Z", notBefore: "2000-01-01T00:00:00Z", timeoutMs: 600_000, estimatedTokens: 1 },
  ...{ iteration: 1, needs: [], capabilities: [], resources: {}, onDependencyFailure: "skip", onLoss: "retry" },
  ...{ action: SECRET, payload: { prompt: SECRET }, params: { key: SECRET }, ref: SECRET, selector: SECRET },
  ...{ locks: [SECRET], zone: SECRET, labels: { key: SECRET }, outputs: [SECRET], loop: { until: SECRET, max: 2 } },
  approval: { question: SECRET },
  wait: "children",
  callbackUrl: `http://127.0.0.1:9/${SECRET}?key=${SECRET}`,
} satisfies Omit<Required<TaskBody>, "parent" | "inputArtifact" | "tabId">;

/** A task through its whole life, with a secret wherever a caller can put one. */
async function liveThrough(at: TestServer): Promise<string> {
  const more = { token: TOKEN };
  const { taskId } = (await at.ask("submit", { body }, more)).json;
  await at.ask("approve", { params: { id: taskId }, body: { note: SECRET } }, more);
  const { workerId: id, session } = (await at.ask("joinWorker", { body: { slots: 1 } }, more)).json;
  const sync = (given: object) => at.ask("sync", { params: { id }, body: { session, waitMs: 5000, ...given } }, more);
  assert.equal((await sync({ n: 1 })).json.assignments.length, 1);
  await sync({ n: 2, running: [{ taskId, attempt: 1, progress: SECRET }], waitMs: 0 });
  const results = [{ taskId, attempt: 1, outcome: "done", result: { answer: SECRET } }];
  await sync({ n: 3, running: [], results });
  const failing = (await at.ask("submit", { body: { agentId: "ann", action: "x", maxAttempts: 1 } }, more)).json.taskId;
  await sync({ n: 4 });
  await sync({ n: 5, running: [], results: [{ taskId: failing, attempt: 1, outcome: "failed", error: SECRET }] });
  const cancelled = (
    await at.ask("submit", { body: { agentId: "ann", action: "x", capabilities: ["nobody-has-it"] } }, more)
  ).json;
  await at.ask("cancel", { params: { id: cancelled.taskId }, body: { reason: SECRET } }, more);
  await at.ask("patchConfig", { body: { maxPerAgent: 1 } }, more);
  await at.ask("submit", { body: { agentId: "bob", action: "x", capabilities: ["nobody-has-it"] } }, more);
  const rejected = await at.ask("submit", { body: { ...body, id: "tsk-2", agentId: "bob" } }, more);
  assert.equal(rejected.status, 429);
  await at.ask("leaveWorker", { params: { id }, query: {} }, more);
  await at.call("POST", "/tasks", { body: `{"prompt": ${SECRET}`, headers: { authorization: `Bearer ${TOKEN}` } });
  await at.call("POST", "/tasks", { body: { agentId: SECRET, what: SECRET } });
  await at.ask("tasks", { query: {} }, { token: `wrong-${SECRET}` });
  return taskId;
}

test("the log tells of every step of a life and of no secret, also at its most talkative", async () => {
  const heard = listening("trace");
  await using at = await openServer({ settings, server: { logger: heard.logger } });
  const taskId = await liveThrough(at);
  // A webhook that is cut off when the server closes is not told of.
  await heard.said("webhook retried");
  await at.server.close();
  const told = heard.lines().map(({ msg }) => msg);
  const steps = ["the server is up", "task submitted", "worker joined", "task dispatched", "task done", "task failed"];
  for (const step of [
    ...steps,
    "task cancelled",
    "task rejected",
    "webhook retried",
    "worker left",
    "config changed",
    "the server has stopped",
  ])
    assert.ok(told.includes(step), `${step} is missing: ${told.join(", ")}`);
  const done = heard.lines().find(({ msg }) => msg === "task done");
  assert.deepEqual([done?.taskId, done?.agentId, done?.attempt, typeof done?.runMs], [taskId, "ann", 1, "number"]);
  assert.equal(done?.level, DEBUG, "what happens to every task is for debug");
  const unheard = heard.lines().find(({ msg }) => msg === "webhook retried");
  assert.deepEqual([unheard?.reason, unheard?.host], ["connect ECONNREFUSED 127.0.0.1:9", "127.0.0.1:9"]);
  assert.ok(
    !heard.text().includes(SECRET),
    heard.lines().find((line) => JSON.stringify(line).includes(SECRET)) as never,
  );
  assert.ok(!heard.text().includes(TOKEN));
  assert.doesNotMatch(heard.text(), /authorization|bearer/i);
});

test("a bug is in the log with its place, and the caller hears only that it is one", async () => {
  const heard = listening("info");
  const logsOf = (): never => {
    throw new TypeError("inside information");
  };
  await using at = await openServer({ server: { logger: heard.logger, logsOf } });
  const reply = await at.ask("logs", { params: { id: "forgotten" }, query: {} });
  assert.deepEqual([reply.status, reply.problem.code], [500, "internal"]);
  assert.doesNotMatch(reply.text, /inside|TypeError|\.ts/);
  await at.server.close();
  const bug = heard.lines().find(({ msg }) => msg === "a bug");
  assert.match(JSON.stringify(bug), /inside information.*observers\.slow\.test\.ts/);
  assert.equal(bug?.route, "/tasks/:id/logs");
});

test("the metrics add up", async () => {
  await using at = await openServer({ settings });
  await liveThrough(at);
  const { text, headers } = await at.call("GET", "/metrics", { headers: { authorization: `Bearer ${TOKEN}` } });
  assert.equal(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const value = (line: string): number => {
    const found = text.split("\n").find((one) => one.startsWith(`${line} `));
    assert.ok(found !== undefined, `${line} is missing`);
    return Number(found.slice(line.length + 1));
  };
  assert.equal(value('drover_tasks_ended_total{outcome="done"}'), 1);
  assert.equal(value('drover_tasks_ended_total{outcome="failed"}'), 1);
  assert.equal(value('drover_tasks_ended_total{outcome="cancelled"}'), 1);
  assert.equal(value("drover_tasks_submitted_total"), 4);
  assert.equal(value("drover_tasks_rejected_total"), 1);
  assert.equal(value('drover_tasks{project="default",state="queued"}'), 1);
  assert.equal(value("drover_task_wait_seconds_count"), 2);
  assert.equal(value('drover_task_run_seconds_count{outcome="done"}'), 1);
  assert.equal(value('drover_http_request_duration_seconds_count{method="POST",route="/tasks",status="202"}'), 4);
  assert.equal(value('drover_http_request_duration_seconds_count{method="POST",route="/tasks",status="401"}'), 1);
  const { seq, hash } = await at.drover.head();
  assert.equal(value("drover_chain_head_seq"), seq);
  assert.equal(value(`drover_chain_head_info{hash="${hash}"}`), 1);
  assert.ok(value("drover_log_append_seconds_count") > 0);
  assert.ok(value("drover_log_batch_events_sum") >= seq - 5);
  assert.ok(!text.includes(SECRET));
});

test("however many projects there are, so many have a label and the others are counted together", async () => {
  await using at = await openServer();
  for (let index = 0; index < 120; index++)
    await at.ask("submit", { body: { agentId: `agent-${index % 2}`, action: "x", project: `p${index}` } });
  for (const path of ["/a", "/b", "/tasks/x", "/tasks/y"]) await at.call("GET", path);
  const { text } = await at.call("GET", "/metrics");
  const queued = text.split("\n").filter((line) => /^drover_tasks\{.*state="queued"/.test(line));
  assert.equal(queued.length, 51);
  assert.equal(
    queued.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0),
    120,
  );
  assert.match(queued.join("\n"), /project="other".* 70/);
  const routes = new Set([...text.matchAll(/route="([^"]*)"/g)].map(([, route]) => route));
  assert.deepEqual([...routes].sort(), ["/tasks", "/tasks/:id", "unknown"]);
});

type Span = { name: string; traceId: string; parentSpanId?: string; attributes: { key: string; value: object }[] };
/** A collector of spans on loopback. */
async function collector(): Promise<AsyncDisposable & { url: string; spans: Span[] }> {
  const spans: Span[] = [];
  const server = await answering(async (request, response) => {
    const body = (await json(request)) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] };
    for (const { scopeSpans } of body.resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    response.setHeader("content-type", "application/json").end("{}");
  });
  return { ...server, spans };
}

test("spans of requests and tasks arrive at a collector, under the caller's trace and with no payload", async () => {
  await using collected = await collector();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collected.url;
  await using at = await openServer({ settings });
  const taskId = await liveThrough(at);
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01`, authorization: `Bearer ${TOKEN}` };
  await at.call("GET", `/tasks/${taskId}`, { headers });
  await at.server.close();
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const { spans } = collected;
  const traced = spans.find(({ traceId }) => traceId === trace);
  assert.deepEqual([traced?.name, traced?.parentSpanId], ["GET /tasks/:id", "b7ad6b7169203331"]);
  const whole = spans.find(({ name, attributes }) => name === "task" && JSON.stringify(attributes).includes(taskId));
  const parts = spans.filter(({ traceId, name }) => traceId === whole?.traceId && name !== "task");
  assert.deepEqual(parts.map(({ name }) => name).sort(), ["task run", "task wait"]);
  assert.match(JSON.stringify(whole?.attributes), /"drover\.task\.outcome".*"done"/);
  assert.ok(!JSON.stringify(spans).includes(SECRET));
});

test("a server that is asked for no spans sends none, and one whose collector is gone works on", async () => {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:9";
  await using at = await openServer();
  assert.equal((await at.ask("submit", { body: { agentId: "ann", action: "x" } })).status, 202);
  await at.server.close();
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
});

test("files of the page are kept by browsers and packed, and its places get the document", async () => {
  if (!isPageFresh()) await buildPage();
  await using at = await openServer();
  const page = await at.call("GET", "/ui/tasks/some%2Ftask");
  assert.deepEqual([page.status, page.headers.get("cache-control")], [200, "no-cache"]);
  const [, script = ""] = /src="([^"]+\.js)"/.exec(page.text) ?? [];
  const plain = await at.call("GET", script, { headers: { "accept-encoding": "identity" } });
  assert.match(plain.headers.get("cache-control") ?? "", /immutable/);
  assert.equal(plain.headers.get("content-encoding"), null);
  const packed = await fetch(`${at.url}${script}`, { headers: { "accept-encoding": "gzip" } });
  assert.equal(packed.headers.get("content-encoding"), "gzip");
  assert.equal(await packed.text(), plain.text);
  for (const path of ["/ui/assets/nothing.js", "/ui/assets/../../package.json", "/ui/assets/%2e%2e/made-of.txt"])
    assert.doesNotMatch((await at.call("GET", path)).text, /"name": "drover"|^[0-9a-f]{64}$/, path);
  assert.equal((await at.call("GET", "/ui/assets/nothing.js")).status, 404);
});

test("the pages load nothing from elsewhere, and their policy would not let them", async () => {
  await using at = await openServer();
  if (!isPageFresh()) await buildPage();
  for (const path of ["/ui/", "/docs/"]) {
    const page = await at.call("GET", path);
    assert.equal(page.status, 200);
    const policy = page.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /connect-src 'self'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /https?:|\*/);
    assert.doesNotMatch(policy, /script-src[^;]*'unsafe/);
    for (const [, target = ""] of page.text.matchAll(/(?:src|href)="([^"]*)"/g)) {
      assert.doesNotMatch(target, /^(https?:)?\/\//, `${path} loads ${target}`);
      const url = new URL(target, `${at.url}${path}`);
      assert.equal((await fetch(url)).status, 200, `${path} names ${target}`);
    }
    assert.equal(page.headers.get("access-control-allow-origin"), null);
  }
  for (const [from, status, to] of [
    ["/", 302, "/ui/"],
    ["/ui", 302, "/ui/"],
    ["/docs", 301, "/docs/"],
  ] as const) {
    const moved = await fetch(`${at.url}${from}`, { redirect: "manual" });
    assert.deepEqual([moved.status, moved.headers.get("location")], [status, to], from);
  }
  const icon = await at.call("GET", "/favicon.ico");
  assert.deepEqual([icon.status, icon.headers.get("content-type")], [200, "image/svg+xml"]);
  assert.match(icon.text, /^<svg /);
});
