/**
 * Every field of every call wrong in every way: refused with 400, and the field is named.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CALLS, type Call, type CallName } from "../../src/protocol/index.ts";
import { createTestDrover } from "../../src/testing/index.ts";
import { openServer, pathOf, type TestServer } from "../kits/test-server.ts";
import { wrongBodies } from "../kits/wrong-values.ts";

let at: TestServer;
before(async () => {
  at = await openServer();
});
after(() => at.server.close());

type Refused = { readonly status: number; readonly text: string; readonly field: string | undefined };
async function send(method: string, url: string, payload?: string): Promise<Refused> {
  const { status, text, problem } = await at.call(method, url, payload === undefined ? {} : { body: payload });
  return { status, text, field: (problem.details as { field?: string } | undefined)?.field };
}

const task = {
  agentId: "ann",
  action: "x",
  resources: { cpuMillicores: 1 },
  needs: ["a"],
  capabilities: ["b"],
  locks: ["c"],
  outputs: ["d"],
  labels: { e: "f" },
  loop: { until: "g", max: 2 },
  approval: { question: "h", timeoutMs: 1 },
};
const file = { path: "a", hash: "0".repeat(64), size: 1 };
const usage = { inputTokens: 1 };
/** A good body for each call that takes one, with something in every list and object, so that all of it is walked. */
const GOOD: Partial<Record<CallName, unknown>> = {
  bulk: { calls: [{ call: "cancel", id: "x" }] },
  waitAny: { ids: ["a"], timeoutMs: 1 },
  submit: task,
  submitBatch: { agentId: "ann", project: "p", tasks: [{ action: "x" }] },
  patch: { priority: 1, deadline: "2099-01-01T00:00:00Z" },
  cancel: { reason: "x" },
  approve: { note: "x", deny: false },
  cancelGroup: { reason: "x" },
  cancelWhere: { filter: { agentId: "ann", state: ["queued"] } },
  putProject: { weight: 1, budget: { limit: 1, window: "1h" } },
  joinWorker: { id: "w", slots: 1, capabilities: ["a"], resources: { cpuMillicores: 1 }, zone: "z" },
  sync: {
    ...{ session: "s", n: 1, want: 1, waitMs: 0, status: "ready", capabilities: ["a"], resources: { memoryBytes: 1 } },
    running: [{ taskId: "t", attempt: 1, usage }],
    results: [{ taskId: "t", attempt: 1, outcome: "done", usage, files: [file] }],
    logPlace: "p",
  },
  handInLog: { session: "s", id: "l", text: "x", truncated: true, error: "x" },
  putSchedule: { cron: "@daily", task, overlap: "skip", catchUp: 1, paused: false },
  askPermit: { gate: "g", id: "c", class: "low", tokens: 1, waitMs: 0 },
  waitPermits: { ids: ["c"], timeoutMs: 0, session: "s" },
  settlePermit: { ok: true, usage, rateLimited: { retryAfterMs: 1 } },
  patchConfig: {
    ...{ maxInFlight: 1, perType: { code: 1 }, critical: { maxInFlight: 1 }, retry: { base: 1, max: 1 } },
    priority: { ageMax: 1 },
    ...{ fairness: { rule: "level" }, placement: { strategy: "random" }, backpressure: { throttleAt: 1 } },
  },
  pause: { project: "p" },
  resume: { project: "p" },
};
/** Fields that take any JSON there is. */
const ANYTHING = /(^|\.)(payload|result|progress)$/;

const withBody = (Object.keys(CALLS) as CallName[]).filter((name) => CALLS[name].body !== null);
for (const name of withBody) {
  const { method, path, body } = CALLS[name] as unknown as Call;
  const url = pathOf(path, { id: "some" }, {});

  test(`${name}: every field wrong in every way is 400 and named`, async () => {
    const counts = new Map<string, number>();
    for (const { field, text, isUnknownField } of wrongBodies(body as never, GOOD[name])) {
      const refused = await send(method, url, text);
      assert.equal(refused.status, 400, `${field}: ${text.slice(0, 200)} → ${refused.text}`);
      if (text.includes('"\\ud800"'))
        assert.match(refused.text, /holds half of a character \(a lone surrogate\)/, text);
      const [named = "", isWhole] = [refused.field, refused.field === "(body)"];
      const isNamed = named === field || named.startsWith(`${field}.`) || named.startsWith(`${field}[`);
      assert.ok(isNamed || isWhole || field.startsWith(`${named}.`), `${field} was wrong, ${named} was named: ${text}`);
      if (!isUnknownField) counts.set(field, (counts.get(field) ?? 0) + 1);
    }
    for (const [field, count] of counts) assert.ok(count >= 5 || ANYTHING.test(field), `${field}: only ${count} ways`);
    // What a plan holds is read by rules of its own (src/cli/plan/plan-file.test.ts).
    assert.ok(counts.size > 0 || name === "putPlan");
  });

  test(`${name}: a body that is no object is 400`, async () => {
    for (const text of ["[]", '"x"', "1", "true", ...(name === "patchConfig" ? [] : ["null"])]) {
      const refused = await send(method, url, text);
      assert.deepEqual([refused.status, refused.field], [400, "(body)"], `${text} → ${refused.text}`);
    }
  });

  if ((CALLS[name] as unknown as Call).needsBody)
    test(`${name}: no body at all is 400`, async () => {
      for (const payload of [undefined, ""]) {
        const refused = await send(method, url, payload);
        assert.deepEqual([refused.status, refused.field], [400, "(body)"], refused.text);
      }
    });
}

test("every field of an item of a batch that is wrong turns the item away, by name, and no other", async () => {
  const { agentId: _, ...item } = task;
  const schema = CALLS.submit.body as never;
  let count = 0;
  for (const { field, text } of wrongBodies(schema, { agentId: "ann", ...item })) {
    if (field.startsWith("agentId")) continue;
    const { agentId: __, ...bad } = JSON.parse(text) as Record<string, unknown>;
    const tasks = `[${JSON.stringify(bad)},{"action":"fine"}]`;
    // A number that is no number to JavaScript cannot be said by JSON.stringify: it would become null.
    if (text.includes("e400")) continue;
    const reply = await at.call("POST", "/tasks/batch", { body: `{"agentId":"ann","tasks":${tasks}}` });
    const answer = reply.json as { tasks: { state: string; error?: string }[]; rejected: number };
    assert.equal(reply.status, 202, reply.text);
    assert.deepEqual([answer.tasks[0]?.state, answer.rejected], ["rejected", 1], `${field}: ${text} → ${reply.text}`);
    assert.ok(answer.tasks[0]?.error?.startsWith(`tasks[0].${field}`), `${field} → ${answer.tasks[0]?.error}`);
    count++;
  }
  assert.ok(count > 100);
});

const badItems: [item: unknown, error: RegExp][] = [
  [{}, /^tasks\[0\]\.action is nothing, and must be /],
  [null, /^tasks\[1\] is null, and must be an object$/],
  [{ action: "x", actoin: 1 }, /^tasks\[2\]\.actoin is not a known field \(did you mean action\?\)/],
  [{ action: "x", agentId: "bob" }, /^tasks\[3\]\.agentId is /],
  [{ action: "x", resources: { cpuMillicores: -1 } }, /^tasks\[4\]\.resources\.cpuMillicores is -1/],
  [{ action: "x", locks: ["a b"] }, /^tasks\[5\]\.locks\[0\] is "a b"/],
  [{ action: "x", payload: "\ud800" }, /^tasks\[6\]\.payload is "\\ud800"/],
  [{ action: "x", payload: "x".repeat(1024 * 1024) }, /^tasks\[7\] is "1048\d{3} bytes"/],
  [{ action: "x", deadline: "2001-01-01T00:00:00Z" }, /^tasks\[8\]\.deadline .* has passed/],
  [{ action: "x", needs: ["nobody"] }, /^tasks\[9\]\.needs names nobody, which no task has/],
  [{ action: "x", parent: "nobody" }, /^tasks\[10\]\.parent names nobody, which no task has/],
  [{ action: "", id: "bad" }, /^tasks\[11\]\.action is ""/],
  [{ action: "x", needs: ["bad"] }, /^tasks\[12\]\.needs names bad, which was refused in the same batch/],
  [{ action: "x", id: "tsk_5" }, /^tasks\[13\]\.id is "tsk_5"/],
  [{ action: "x", id: "me", needs: ["me"] }, /^these tasks wait for each other in a cycle: me → me$/],
];
test("what is wrong with an item of a batch is named by its place, once, embedded and over HTTP alike", async () => {
  const batch = { agentId: "ann", tasks: badItems.map(([item]) => item) as { action: string }[] };
  await using kit = await createTestDrover();
  await using roomy = await openServer({ settings: { server: { bodyLimit: "4MiB" } } });
  const { json } = await roomy.ask("submitBatch", { body: batch });
  for (const { tasks } of [await kit.drover.submitBatch(batch), json])
    for (const [index, [, error]] of badItems.entries()) {
      assert.match(tasks[index]?.error ?? "", error);
      assert.doesNotMatch(tasks[index]?.error ?? "", /tasks\[.*tasks\[/);
    }
});

test("an item of a batch that names the batch's own agent is taken", async () => {
  const tasks = [{ action: "x", agentId: "ann" }, { action: "x" }];
  const { json } = await at.ask("submitBatch", { body: { agentId: "ann", tasks } });
  assert.deepEqual([json.accepted, json.rejected], [2, 0], JSON.stringify(json));
});

test("a field that is nearly one is met with the one that was probably meant", async () => {
  const rows: [method: string, path: string, body: object | undefined, begins: string][] = [
    ["POST", "/tasks", { agentId: "a", action: "x", paylod: 1 }, "paylod is not a known field (did you mean payload?)"],
    ["POST", "/tasks", { agent_id: "a", action: "x" }, "agent_id is not a known field (did you mean agentId?)"],
    ["GET", "/tasks?limt=3", undefined, "limt is not a known field (did you mean limit?)"],
    ["POST", "/tasks", { agentId: "a", action: "x", colour: 1 }, "colour is not a known field; known here: agentId,"],
  ];
  for (const [method, path, body, begins] of rows) {
    const { status, problem } = await at.call(method, path, body === undefined ? {} : { body });
    assert.equal(status, 400);
    assert.ok(problem.error.startsWith(begins), problem.error);
  }
});

test("what is wrong and too deep to be shown says so", async () => {
  for (const [open, close, what] of [
    ["[", "]", "a list"],
    ['{"x":', "}", "an object"],
  ] as const) {
    const deep = `${open.repeat(20_000)}1${close.repeat(20_000)}`;
    const { text } = await send("POST", "/tasks", `{"agentId":${deep},"action":"b"}`);
    const expected = "the agent that submits: a name";
    assert.ok(text.includes(`"agentId is ${what} too deep to show, and must be ${expected}`), text.slice(0, 300));
  }
});

test("JSON that is nested too deep is 400 and named wherever any JSON may stand, and never a bug", async () => {
  for (const depth of [70, 5000, 200_000]) {
    const deep = "[".repeat(depth) + "]".repeat(depth);
    const result = `{"taskId":"t","attempt":1,"outcome":"done","result":${deep}}`;
    const rows: [method: string, path: string, body: string, field: string][] = [
      ["POST", "/tasks", `{"agentId":"a","action":"b","payload":${deep}}`, "payload"],
      ["POST", "/tasks", `{"agentId":"a","action":"b","params":{"x":${deep}}}`, "params.x"],
      ["POST", "/tasks", deep, "(body)"],
      [
        "PUT",
        "/schedules/s",
        `{"cron":"@daily","task":{"agentId":"a","action":"b","payload":${deep}}}`,
        "task.payload",
      ],
      [
        "POST",
        "/workers/deep/sync",
        `{"running":[{"taskId":"t","attempt":1,"progress":${deep}}]}`,
        "running[0].progress",
      ],
      ["PATCH", "/scheduler/config", `{"perType":${deep}}`, "perType"],
    ];
    await send("POST", "/workers", '{"id":"deep"}');
    for (const [method, path, body, field] of rows) {
      const refused = await send(method, path, body);
      assert.equal(refused.status, 400, `${field} ${depth}: ${refused.text.slice(0, 200)}`);
      assert.ok(refused.field?.startsWith(field), `${field}: ${refused.field?.slice(0, 100)}`);
    }
    const synced = await at.call("POST", "/workers/deep/sync", { body: `{"results":[${result}]}` });
    assert.equal(synced.status, 200, synced.text.slice(0, 200));
  }
});

const QUERIES: { [Name in CallName]?: Record<string, string[]> } = {
  tasks: {
    ...{ agentId: ["", " ", "None", "x".repeat(300)], state: ["", "nope", "done,nope"], type: [""] },
    ...{ limit: ["0", "-1", "1001", "1.5", "NaN", "1e3", "ten", "99999999999999999999"], cursor: ["x", "-1", ""] },
  },
  why: { at: ["0", "-1", "x", "1.5"] },
  wait: { timeoutMs: ["-1", "60001", "x", "1e2"] },
  logs: { attempt: ["0", "x"], tail: ["0", "10001", "-5"] },
  events: { after: ["-1", "x", "1.5"], limit: ["0", "1001"] },
};
for (const [name, fields] of Object.entries(QUERIES))
  test(`${name}: every part of the query wrong in every way is 400 and named`, async () => {
    const { method, path } = CALLS[name as CallName];
    for (const [field, values] of Object.entries(fields)) {
      for (const value of values) {
        const refused = await send(method, pathOf(path, { id: "some" }, { [field]: value }));
        assert.equal(refused.status, 400, `${field}=${value} → ${refused.text}`);
        assert.ok(refused.field?.startsWith(field), `${field}=${value} → ${refused.text}`);
      }
    }
    const unknown = await send(method, pathOf(path, { id: "some" }, { zzz: "1" }));
    assert.deepEqual([unknown.status, unknown.field], [400, "zzz"]);
    const [first = ""] = Object.keys(fields);
    const twice = await send(method, `${pathOf(path, { id: "some" }, { zz: "1" })}&${first}=a&${first}=b`);
    assert.equal(twice.status, 400);
  });

test("a query where none is taken is refused by name", async () => {
  const refused = await send("GET", "/workers?limit=3");
  assert.deepEqual([refused.status, refused.field], [400, "limit"]);
});

test("an id that is no name is 400 wherever a path takes one", async () => {
  const withId = (Object.values(CALLS) as unknown as Call[]).filter(({ params }) => params !== null);
  assert.ok(withId.length > 15);
  for (const { method, path, body, operationId } of withId) {
    for (const id of ["None", "x".repeat(300), "a b", "\u0000", "null"]) {
      const payload = body === null ? undefined : JSON.stringify(GOOD[operationId as CallName]);
      const refused = await send(method, pathOf(path, { id, hash: id }, {}), payload);
      assert.deepEqual(
        [refused.status, refused.field],
        [400, path.includes("{hash}") ? "hash" : "id"],
        `${operationId} ${id.slice(0, 9)} ${refused.text}`,
      );
    }
  }
});
