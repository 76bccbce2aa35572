import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Refusal, sentence } from "../../core/base/refusal.ts";
import { CALL_LIST, CALLS } from "../calls/calls.ts";
import type { Schema } from "./schema.ts";
import { readQuery, readShape } from "./validate.ts";

const refusalOf = (schema: Schema | null, value: unknown): Refusal | null => {
  const read = readShape(schema as Schema, value);
  return read.ok ? null : read.failure;
};
const task = { agentId: "ann", action: "build" };
const { submit, submitBatch, sync, cancelWhere, patchConfig, putSchedule, pause, patch } = CALLS;
const nested = JSON.parse(`${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`) as unknown;

const NAME = 'a name of 1 to 256 characters without blanks, and not "None" or "null"';
const FILTER =
  "at least one of agentId, project, state, type, label, group, parent and root; " +
  "or { all: true }, alone, for every task";
const refused: [claim: string, schema: Schema | null, value: unknown, said: string | RegExp][] = [
  ["no object", submit.body, 7, "(body) is 7, and must be an object"],
  ["a list", submit.body, [], "(body) is [], and must be an object"],
  ["nothing", submit.body, undefined, "(body) is nothing, and must be an object"],
  [
    "a missing field",
    submit.body,
    { action: "build" },
    `agentId is nothing, and must be the agent that submits: ${NAME}`,
  ],
  [
    "a field that is missing, but named",
    submit.body,
    { agentId: "ann", action: undefined },
    "action is nothing, and must be what is to be done: text of 1 to 1024 characters",
  ],
  [
    "a wrong kind",
    submit.body,
    { ...task, priority: "soon" },
    'priority is "soon", and must be critical, high, normal, low or a whole number',
  ],
  [
    "no number",
    submit.body,
    { ...task, timeoutMs: Number.NaN },
    "timeoutMs is NaN, and must be a whole number from 1 to 31556952000000",
  ],
  [
    "a number for a time",
    submit.body,
    { ...task, notBefore: 5 },
    "notBefore is 5, and must be an instant as RFC 3339 text, such as 2026-01-31T12:00:00Z",
  ],
  [
    "a day that there is not",
    submit.body,
    { ...task, deadline: "2027-02-31T00:00:00Z" },
    'deadline is "2027-02-31T00:00:00Z", and must be an instant as RFC 3339 text, such as 2026-01-31T12:00:00Z, ' +
      "on a day that its month has",
  ],
  [
    "a day that there is not, where none may be given",
    patch.body,
    { deadline: "2027-04-31T00:00:00Z" },
    /^deadline is "2027-04-31T00:00:00Z", and must be .*, on a day that its month has$/,
  ],
  [
    "a name that is a step in a path",
    submit.body,
    { ...task, id: ".." },
    `id is "..", and must be ${NAME}; "." and ".." are steps in the path of a URL, so no URL could name it`,
  ],
  ["an item of a list", submit.body, { ...task, needs: ["a", "b c"] }, `needs[1] is "b c", and must be ${NAME}`],
  [
    "too long a list",
    submit.body,
    { ...task, locks: Array.from({ length: 65 }, (_, n) => `k${n}`) },
    /^locks is .*, and must be a list of at most 64 names$/,
  ],
  [
    "a field within",
    submit.body,
    { ...task, resources: { cpuMillicores: -1 } },
    "resources.cpuMillicores is -1, and must be a whole number from 0 to 1000000000",
  ],
  [
    "an unknown field within",
    submit.body,
    { ...task, resources: { cpu: 1 } },
    "resources.cpu is not a known field; known here: cpuMillicores, memoryBytes",
  ],
  [
    "an address of another kind",
    submit.body,
    { ...task, callbackUrl: "ftp://x" },
    'callbackUrl is "ftp://x", and must be an http or https URL without a user or password in it',
  ],
  [
    "an address with a password",
    submit.body,
    { ...task, callbackUrl: "http://a:b@c/" },
    'callbackUrl is "http://…@c/", and must be an http or https URL without a user or password in it',
  ],
  [
    "an empty batch",
    submitBatch.body,
    { agentId: "ann", tasks: [] },
    "tasks is [], and must be a list of at least one task",
  ],
  [
    "a result within a list",
    sync.body,
    {
      results: [
        { taskId: "a", attempt: 1, outcome: "done" },
        { taskId: "b", attempt: 0, outcome: "done" },
      ],
    },
    "results[1].attempt is 0, and must be a whole number from 1 to 1000000000",
  ],
  [
    "an outcome nobody knows",
    sync.body,
    { results: [{ taskId: "a", attempt: 1, outcome: "ok" }] },
    'results[0].outcome is "ok", and must be one of done, failed, cancelled, requeue, skipped, again, ask',
  ],
  [
    "half of a character",
    submit.body,
    { ...task, action: "a\ud800" },
    'action is "a\\ud800", which holds half of a character (a lone surrogate), ' +
      "and must be what is to be done: text of 1 to 1024 characters",
  ],
  ["an empty filter", cancelWhere.body, { filter: {} }, `filter is {}, and must be ${FILTER}`],
  [
    "all and more",
    cancelWhere.body,
    { filter: { all: true, type: "code" } },
    `filter is {"all":true,"type":"code"}, and must be ${FILTER}`,
  ],
  [
    "a knob of zero",
    patchConfig.body,
    { maxInFlight: 0 },
    "maxInFlight is 0, and must be a whole number from 1 to 9007199254740991, or null",
  ],
  [
    "a knob within",
    patchConfig.body,
    { fairness: { halfLife: "soon" } },
    /^fairness\.halfLife is "soon", and must be a span of at least 1000 ms: .* such as 250ms, .*, or null$/,
  ],
  [
    "a schedule with an id in its task",
    putSchedule.body,
    { cron: "@daily", task: { ...task, id: "x" } },
    /^task\.id is not a known field; known here: agentId, action/,
  ],
  ["two things to pause", pause.body, { project: "a", task: "b" }, /must be a project or a task, not both/],
  [
    "a misspelt field",
    submit.body,
    { ...task, agent_id: "x" },
    /^agent_id is not a known field \(did you mean agentId\?\); known here: agentId, action, id/,
  ],
];
for (const [claim, schema, value, said] of refused)
  test(`refused in words: ${claim}`, () => {
    const refusal = refusalOf(schema, value);
    assert.ok(refusal !== null);
    if (typeof said === "string") assert.equal(sentence(refusal), said);
    else assert.match(sentence(refusal), said);
  });

const taken: [claim: string, schema: Schema | null, value: unknown][] = [
  ["a task with little", submit.body, task],
  ["a payload of any depth", submit.body, { ...task, payload: nested }],
  [
    "names that objects inherit, inside",
    submit.body,
    { ...task, params: JSON.parse('{"__proto__":1,"constructor":2}') },
  ],
  [
    "a batch with a bad item, since it never fails the batch",
    submitBatch.body,
    { agentId: "ann", tasks: [1, null, { x: 1 }] },
  ],
  ["a patch that takes all back", patchConfig.body, null],
  ["a patch that takes a field back", patchConfig.body, { fairness: { halfLife: null }, retry: null }],
  ["a deadline taken away", patch.body, { deadline: null }],
  ["one state to cancel", cancelWhere.body, { filter: { state: "queued" } }],
  ["several states to cancel", cancelWhere.body, { filter: { state: ["queued", "waiting"] } }],
];
for (const [claim, schema, value] of taken) test(`taken: ${claim}`, () => assert.equal(refusalOf(schema, value), null));

test("the first thing that is wrong is named, in the order it was written", () => {
  const wrong = { zone: "a b", agentId: 1, nonsense: 2, action: "" };
  assert.equal(refusalOf(submit.body, wrong)?.type, "bad-field");
  assert.deepEqual((refusalOf(submit.body, wrong) as { field: string }).field, "zone");
  assert.deepEqual((refusalOf(submit.body, { nonsense: 2, zone: "a b" }) as { field: string }).field, "nonsense");
});

test("names that objects inherit are unknown fields, not known ones", () => {
  for (const key of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
    const body = JSON.parse(`{"agentId":"ann","action":"build","${key}":{}}`) as unknown;
    const refusal = refusalOf(submit.body, body);
    assert.equal(refusal?.type, "unknown-field", key);
    assert.equal((refusal as { field: string }).field, key);
  }
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
});

test("a refusal stays short, however large what was sent", () => {
  for (const body of [
    { ...task, ["k".repeat(100_000)]: 1 },
    { ...task, zone: "z".repeat(100_000) },
    { ...task, needs: [nested] },
    { ...task, priority: nested },
  ]) {
    assert.ok(sentence(refusalOf(submit.body, body) as Refusal).length < 1000);
  }
});

test("what is no JSON at all is refused and nothing is thrown", () => {
  const trap = {
    get agentId(): string {
      throw new Error("no");
    },
  };
  for (const value of [
    trap,
    new Map(),
    Symbol("x"),
    1n,
    () => 1,
    new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("no");
        },
      },
    ),
  ])
    assert.equal(readShape(submit.body as Schema, value).ok, false);
});

test("whatever comes, every call answers yes or a refusal that names a field, and never throws", () => {
  const anything = fc.anything({
    withNullPrototype: true,
    withBigInt: true,
    withDate: true,
    withMap: true,
    maxDepth: 4,
  });
  fc.assert(
    fc.property(anything, fc.constantFrom(...CALL_LIST), (value, { body, query, params }) => {
      for (const schema of [body, query, params]) {
        if (schema === null) continue;
        const read = readShape(schema, value);
        if (!read.ok) assert.ok(sentence(read.failure).length > 0);
      }
    }),
  );
});

const queries: [claim: string, query: Record<string, string | string[]>, read: unknown][] = [
  ["numbers", { limit: "5" }, { limit: 5 }],
  ["one state", { state: "queued" }, { state: ["queued"] }],
  ["several states", { state: "queued,running" }, { state: ["queued", "running"] }],
  ["a state given twice", { state: ["queued", "running"] }, { state: ["queued", "running"] }],
  ["no number", { limit: "5x" }, 'limit is "5x", and must be a whole number from 1 to 1000'],
  ["an empty number", { limit: "" }, 'limit is "", and must be a whole number from 1 to 1000'],
  ["too large a number", { limit: "1001" }, "limit is 1001, and must be a whole number from 1 to 1000"],
  ["a number with a point", { limit: "1.5" }, 'limit is "1.5", and must be a whole number from 1 to 1000'],
  ["one name given twice", { type: ["a", "b"] }, /^type is \["a","b"\], and must be a name/],
  ["a state nobody is in", { state: "asleep" }, /^state\[0\] is "asleep", and must be one of waiting/],
  [
    "a parameter nobody knows",
    { states: "queued" },
    /^states is not a known field \(did you mean state\?\); known here: agentId/,
  ],
  ["a cursor among those that were turned away", { cursor: "r5" }, { cursor: "r5" }],
  ["a cursor of another kind", { cursor: "abc" }, 'cursor is "abc", and must be the nextCursor of a former page'],
];
for (const [claim, query, expected] of queries)
  test(`a query is text that becomes what it means: ${claim}`, () => {
    const read = readQuery(CALLS.tasks.query as Schema, query);
    const told = read.ok ? read.value : sentence(read.failure);
    if (expected instanceof RegExp) assert.match(told as string, expected);
    else assert.deepEqual(told, expected);
  });
