/**
 * What HTTP can get wrong around a call: paths, methods, media types, bytes, sizes, versions.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readShape, wireErrorSchema } from "../../src/protocol/index.ts";
import { type Ask, openServer, type TestServer } from "../kits/test-server.ts";

let at: TestServer;
before(async () => {
  at = await openServer({ settings: { server: { bodyLimit: 4096 } } });
});
after(() => at.server.close());

const task = { agentId: "ann", action: "x" };
const big = { ...task, payload: "x".repeat(5000) };
const json = { "content-type": "application/json" };
type Row = { name: string; method?: string; path?: string; ask: Ask; status: number; code: string; error?: RegExp };
const rows: Row[] = [
  { name: "an unknown path", method: "GET", path: "/nope", ask: {}, status: 404, code: "not_found", error: /openapi/ },
  { name: "an unknown path with a body", path: "/nope", ask: { body: task }, status: 404, code: "not_found" },
  {
    name: "an id that is empty",
    method: "GET",
    path: "/tasks/",
    ask: {},
    status: 400,
    code: "bad_request",
    error: /^id /,
  },
  { name: "a path with a slash too many", method: "GET", path: "/workers/", ask: {}, status: 404, code: "not_found" },
  {
    name: "a wrong method",
    method: "DELETE",
    path: "/tasks",
    ask: {},
    status: 405,
    code: "method_not_allowed",
    error: /POST/,
  },
  {
    name: "a method nobody knows",
    method: "PROPFIND",
    path: "/tasks",
    ask: {},
    status: 405,
    code: "method_not_allowed",
  },
  {
    name: "OPTIONS, as before a call from elsewhere",
    method: "OPTIONS",
    ask: {},
    status: 405,
    code: "method_not_allowed",
  },
  { name: "a path that is no UTF-8", method: "GET", path: "/tasks/%ff", ask: {}, status: 400, code: "bad_request" },
  { name: "a path with a broken escape", method: "GET", path: "/tasks/%zz", ask: {}, status: 400, code: "bad_request" },
  { name: "the same by any method", method: "OPTIONS", path: "/tasks/%zz", ask: {}, status: 400, code: "bad_request" },
  {
    name: "a path with a part that is too long",
    method: "GET",
    path: `/tasks/${"x".repeat(4097)}`,
    ask: {},
    status: 400,
    code: "bad_request",
    error: /a part of the path is longer than 4096 characters/,
  },
  {
    name: "a form",
    ask: { body: "agentId=ann&action=x", headers: { "content-type": "application/x-www-form-urlencoded" } },
    ...{ status: 415, code: "unsupported_media_type", error: /application\/json/ },
  },
  {
    name: "text, as a page could send it without asking",
    ask: { body: JSON.stringify(task), headers: { "content-type": "text/plain" } },
    ...{ status: 415, code: "unsupported_media_type" },
  },
  {
    name: "a media type that is none",
    ask: { body: JSON.stringify(task), headers: { "content-type": "application" } },
    ...{ status: 415, code: "unsupported_media_type" },
  },
  {
    name: "another charset",
    ask: { body: JSON.stringify(task), headers: { "content-type": "application/json; charset=latin1" } },
    ...{ status: 415, code: "unsupported_media_type" },
  },
  {
    name: "a compressed body",
    ask: { body: JSON.stringify(task), headers: { ...json, "content-encoding": "gzip" } },
    ...{ status: 415, code: "unsupported_media_type", error: /Content-Encoding/ },
  },
  { name: "a body that is too large", ask: { body: big }, status: 413, code: "too_large", error: /bodyLimit/ },
  { name: "no JSON", ask: { body: "{", headers: json }, status: 400, code: "bad_request", error: /line 1 column 2/ },
  {
    name: "only spaces",
    ask: { body: "  ", headers: json },
    status: 400,
    code: "bad_request",
    error: /end of JSON input/,
  },
  {
    name: "no UTF-8",
    ask: { body: Buffer.from([0x22, 0xff, 0x22]), headers: json },
    ...{ status: 400, code: "bad_request", error: /UTF-8/ },
  },
  {
    name: "a key called __proto__",
    ask: { body: '{"agentId":"ann","action":"x","__proto__":{"a":1}}' },
    ...{ status: 400, code: "bad_request", error: /__proto__ is not a known field/ },
  },
  {
    name: "another version of the protocol",
    ask: { body: task, headers: { "drover-protocol": "2" } },
    ...{ status: 400, code: "unsupported_protocol", error: /1, the one version/ },
  },
  {
    name: "a foreign page",
    ask: { body: task, headers: { origin: "http://evil.example" } },
    status: 403,
    code: "forbidden",
  },
];
for (const { name, method = "POST", path = "/tasks", ask, status, code, error } of rows)
  test(`${name} is ${status} ${code}`, async () => {
    const reply = await at.call(method, path, ask);
    assert.equal(reply.status, status, reply.text);
    assert.equal(reply.problem.code, code);
    assert.ok(readShape(wireErrorSchema, reply.json).ok, reply.text);
    if (error !== undefined) assert.match(reply.problem.error, error);
    assert.match(reply.headers.get("content-type") ?? "", /^application\/json/);
    assert.equal(reply.headers.get("x-content-type-options"), "nosniff");
    assert.equal(reply.headers.get("access-control-allow-origin"), null);
    if (status === 405) assert.match(reply.headers.get("allow") ?? "", /POST/);
  });

test("a worker's sync may have a mebibyte whatever the limit is, since it leaves nothing out", async () => {
  const { json } = await at.call("POST", "/workers", { body: { id: "wide", slots: 400 } });
  const { session } = json as { session: string };
  const running = Array.from({ length: 400 }, (_, index) => ({ taskId: `none-${index}`, attempt: 1 }));
  const said = await at.call("POST", "/workers/wide/sync", { body: { session, n: 1, want: 0, running } });
  assert.equal(said.status, 200, said.text);
  const pad = "x".repeat(1_100_000);
  const reply = await at.call("POST", "/workers/wide/sync", { body: { session, n: 2, want: 0, running, pad } });
  assert.deepEqual([reply.status, reply.problem.details], [413, { bodyLimit: 1_048_576 }]);
  assert.equal(reply.problem.error, "the body is larger than the 1048576 bytes it may have");
});

test("a body far over the limit is refused in a way that whoever sends it gets to hear", async () => {
  for (const size of [5000, 300_000, 3_000_000]) {
    const reply = await at.call("POST", "/tasks", { body: { ...task, payload: "x".repeat(size) } });
    assert.deepEqual([reply.status, reply.problem.details], [413, { bodyLimit: 4096 }]);
  }
  const unknownLength = await fetch(`${at.url}/tasks`, {
    ...{ method: "POST", headers: json, duplex: "half" as const },
    body: new ReadableStream({
      start(controller) {
        for (let count = 0; count < 50; count++) controller.enqueue(Buffer.alloc(1000, " "));
        controller.close();
      },
    }),
  });
  assert.equal(unknownLength.status, 413);
});

test("a body may come in as many parts as it likes", async () => {
  const bytes = Buffer.from(JSON.stringify({ ...task, payload: "ü💡".repeat(200) }));
  const reply = await fetch(`${at.url}/tasks`, {
    ...{ method: "POST", headers: json, duplex: "half" as const },
    body: new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Buffer.from([byte]));
        controller.close();
      },
    }),
  });
  const { taskId } = (await reply.json()) as { taskId: string };
  assert.equal((await at.ask("task", { params: { id: taskId } })).json.payload, "ü💡".repeat(200));
});

test("what is nearly wrong is right", async () => {
  const good: Ask[] = [
    { body: JSON.stringify(task), headers: { "content-type": "application/json; charset=UTF-8" } },
    { body: JSON.stringify(task), headers: { "content-type": 'APPLICATION/JSON;charset="utf-8"' } },
    { body: ` \n${JSON.stringify(task)}\n` },
    { body: '{"agentId":"bob","agentId":"ann","action":"x"}' },
    { body: task, headers: { "drover-protocol": "1" } },
    { body: task, headers: { origin: at.url } },
    { body: { ...task, payload: JSON.parse('{"__proto__":{"a":1},"constructor":{"prototype":1}}') as unknown } },
  ];
  for (const ask of good) {
    const reply = await at.call("POST", "/tasks", ask);
    assert.equal(reply.status, 202, reply.text);
  }
  assert.equal(({} as Record<string, unknown>).a, undefined);
});

test("a payload comes back as it went in, __proto__ and all", async () => {
  const text = '{"__proto__":{"a":1},"z":"\\u2028 ü 💡"}';
  const submitted = await at.call("POST", "/tasks", { body: `{"agentId":"ann","action":"x","payload":${text}}` });
  const { taskId } = submitted.json as { taskId: string };
  const read = await at.call("GET", `/tasks/${taskId}`);
  assert.deepEqual((read.json as { payload: unknown }).payload, JSON.parse(text));
});

test("an id may hold anything a name may, in a path too", async () => {
  for (const id of ["a/b", "ü:💡", "%41", "a?b#c", "...", ".a", "x".repeat(256), "💡".repeat(64)]) {
    assert.equal((await at.ask("submit", { body: { ...task, id } })).status, 202, id);
    const read = await at.ask("task", { params: { id } });
    assert.deepEqual([read.status, read.json.taskId], [200, id]);
  }
});

test("what every client would resolve before it is sent is no id", async () => {
  for (const id of [".", ".."]) {
    const { status, problem } = await at.ask("submit", { body: { ...task, id } });
    assert.deepEqual([status, problem.code], [400, "bad_request"]);
    assert.match(problem.error, /^id is "\.{1,2}", /);
  }
});

test("no room is 429 with everything a caller needs to know", async () => {
  await using full = await openServer({ settings: { scheduler: { maxQueue: 4, maxPerAgent: 2 } } });
  for (let count = 0; count < 2; count++) assert.equal((await full.ask("submit", { body: task })).status, 202);
  const ofAgent = await full.ask("submit", { body: task });
  assert.equal(ofAgent.status, 429);
  assert.equal(ofAgent.headers.get("retry-after"), "1");
  const { taskId, ...details } = ofAgent.problem.details ?? {};
  assert.deepEqual(details, { agentId: "ann", limit: "maxPerAgent", queued: 2, maxQueue: 4, maxPerAgent: 2 });
  assert.deepEqual([ofAgent.problem.code, ofAgent.problem.retryable], ["queue_full", true]);
  assert.equal((await full.ask("task", { params: { id: String(taskId) } })).json.state, "rejected");
  const third = await full.ask("submit", { body: { ...task, agentId: "bob" } });
  assert.deepEqual([third.status, third.json.throttle, third.headers.get("retry-after")], [202, true, "1"]);
});

test("too many at once is 400 with both numbers", async () => {
  const tasks = Array.from({ length: 51 }, () => ({ action: "x" }));
  const reply = await at.ask("submitBatch", { body: { agentId: "ann", tasks } });
  assert.deepEqual([reply.status, reply.problem.code], [400, "batch_too_large"]);
  assert.deepEqual(reply.problem.details, { submitted: 51, max: 50 });
});

test("cancelling is 200 once, 409 when it has ended, 404 when nobody knows it", async () => {
  const { taskId } = (await at.ask("submit", { body: task })).json;
  const first = await at.ask("cancel", { params: { id: taskId }, body: {} });
  assert.deepEqual([first.status, first.json], [200, { status: "cancelled", taskId }]);
  const second = await at.call("POST", `/tasks/${taskId}/cancel`);
  assert.deepEqual([second.status, second.problem.code], [409, "conflict"]);
  const unknown = await at.call("POST", "/tasks/nobody/cancel");
  assert.deepEqual([unknown.status, unknown.problem.code], [404, "not_found"]);
});

test("the same id with the same body is the same task; with another body it is 409", async () => {
  const body = { ...task, id: "same" };
  const [first, again] = [await at.ask("submit", { body }), await at.ask("submit", { body })];
  assert.deepEqual([first.status, again.status, again.json.taskId], [202, 202, "same"]);
  const other = await at.ask("submit", { body: { ...body, action: "y" } });
  assert.deepEqual([other.status, other.problem.code], [409, "conflict"]);
});

const callbacks = [
  "http://127.0.0.1/",
  "http://0x7f.1/",
  "http://[::ffff:7f00:1]/",
  "http://2130706433/",
  "http://10.0.0.1/",
];
test("a callbackUrl to a private address is 400 and named, in every spelling and wherever it may stand", async () => {
  for (const callbackUrl of callbacks) {
    const single = await at.ask("submit", { body: { ...task, callbackUrl } });
    assert.deepEqual([single.status, single.problem.details?.field], [400, "callbackUrl"], callbackUrl);
    const whole = await at.ask("submitBatch", { body: { agentId: "ann", callbackUrl, tasks: [{ action: "x" }] } });
    assert.deepEqual([whole.status, whole.problem.details?.field], [400, "callbackUrl"]);
    const tasks = [
      { action: "x", id: `a${callbackUrl}`, callbackUrl },
      { action: "y" },
      { action: "z", needs: [`a${callbackUrl}`] },
    ];
    const batch = await at.ask("submitBatch", { body: { agentId: "ann", tasks } });
    assert.deepEqual(
      [batch.status, ...batch.json.tasks.map(({ state }) => state)],
      [202, "rejected", "queued", "rejected"],
    );
    assert.match(batch.json.tasks[0]?.error ?? "", /tasks\[0\]\.callbackUrl/);
    const schedule = { cron: "@daily", task: { ...task, callbackUrl } };
    const put = await at.ask("putSchedule", { params: { id: "s" }, body: schedule });
    assert.deepEqual([put.status, put.problem.details?.field], [400, "task.callbackUrl"]);
  }
});

test("pages come in a stable order and cover everything once, whatever happens in between", async () => {
  await using many = await openServer();
  const tasks = Array.from({ length: 25 }, (_, index) => ({ action: "x", id: `n${index}` }));
  await many.ask("submitBatch", { body: { agentId: "ann", tasks } });
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await many.ask("tasks", { query: { limit: 7, ...(cursor === undefined ? {} : { cursor }) } });
    seen.push(...page.json.tasks.map(({ taskId }) => taskId));
    assert.equal(page.json.count, page.json.tasks.length);
    cursor = page.json.nextCursor;
    await many.ask("cancel", { params: { id: `n${seen.length}` }, body: {} });
  } while (cursor !== undefined);
  assert.deepEqual(
    seen,
    tasks.map(({ id }) => id),
  );
});
