import assert from "node:assert/strict";
import { test } from "node:test";
import { circular, LONE, NO_JSON } from "../../test/kits/bad-values.ts";
import { answers, startScript } from "../../test/kits/script-server.ts";
import type { TaskBody } from "../protocol/index.ts";
import { JsonText } from "../std/index.ts";
import { type Client, createClient } from "./client.ts";
import { ClientError } from "./client-error.ts";
import { bodyText } from "./request-body.ts";

const task = { agentId: "ann", action: "build" };
const nested = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

/** A client that has nobody to talk to, and fails if it tries. */
const alone = createClient({
  fetch: () => assert.fail("something was sent"),
  rest: async () => assert.fail("it was to be tried again"),
});
async function refused(call: (client: Client) => Promise<unknown>): Promise<ClientError> {
  // Called outside of any promise: a method that throws instead of rejecting fails here.
  const error = await call(alone).then(
    () => assert.fail("it was not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ClientError, String(error));
  assert.deepEqual([error.code, error.status, error.retryable], ["bad_request", 0, false], error.message);
  return error;
}
const refusedParams = (params: unknown): Promise<ClientError> =>
  refused((client) => client.submit({ ...task, params } as TaskBody));

const rows: [params: unknown, message: RegExp][] = [
  [{ d: 1n }, /^params\.d is a BigInt, and must be JSON$/],
  [{ a: circular() }, /^params\.a\.self is circular \(it is params\.a again\), and must be JSON without a cycle$/],
  [{ n: Number.NaN }, /^params\.n is NaN, and must be a finite number$/],
  [{ n: [Number.NEGATIVE_INFINITY] }, /^params\.n\[0\] is -Infinity, and must be a finite number$/],
  [{ f: () => 1 }, /^params\.f is a function, and must be JSON$/],
  [{ s: Symbol("x") }, /^params\.s is a symbol, and must be JSON$/],
  [{ at: new Date(0) }, /^params\.at is a Date, and must be plain JSON \(text for dates, base64 for bytes\)$/],
  [{ map: new Map() }, /^params\.map is a Map, and must be plain JSON/],
  [{ list: [1, undefined] }, /^params\.list\[1\] is nothing, and must be JSON$/],
  [{ deep: nested(70) }, /^params\.deep(\[0\])+ is nested too deep, and must be at most 64 levels deep$/],
  [{ toJSON: () => 1 }, /^params\.toJSON is a function/],
  [{ text: LONE }, /^params\.text is text that holds half of a character/],
  [
    {
      get secret(): never {
        throw new Error("not for you");
      },
    },
    /^params\.secret is something that throws when it is read, and must be plain data$/,
  ],
];
for (const [params, message] of rows)
  test(`a body that cannot be sent is refused by its path, before anything is: ${message.source}`, async () => {
    const error = await refusedParams(params);
    assert.match(error.message, message);
    assert.equal(
      error.message,
      `${error.details.field} is ${error.details.value}, and must be ${error.details.expected}`,
    );
  });

test("whatever the engine does not take for JSON is not sent either", async () => {
  for (const [name, value, at] of NO_JSON) {
    const { details } = await refusedParams({ value });
    const place = `params.value${at === "." ? "" : at}`;
    assert.ok(String(details.field).startsWith(place), `${name}: ${details.field} is not ${place}`);
  }
});

test("a call without its body is refused, and does not throw", async () => {
  const bare = alone as unknown as Record<string, (...told: unknown[]) => Promise<unknown>>;
  for (const name of ["submit", "submitBatch", "joinWorker", "askPermit"])
    for (const body of [undefined, null, "text", 5, [task]])
      assert.match((await refused(() => bare[name]?.(body) as Promise<unknown>)).message, /^\(body\) is .* an object$/);
  for (const name of ["patch", "putProject", "putSchedule", "sync", "handInLog", "patchConfig"])
    await refused(() => bare[name]?.(...(name === "patchConfig" ? [] : ["x"])) as Promise<unknown>);
  await refused(() => alone.submit(new Date(0) as unknown as TaskBody));
});

test("a fault in a batch is named with the place of its task, and nothing of the batch is sent", async () => {
  const tasks = [{ action: "a" }, { action: "b", params: { d: 1n } }];
  const { details } = await refused((client) => client.submitBatch({ agentId: "ann", tasks }));
  assert.equal(details.field, "tasks[1].params.d");
});

test("undefined keys are left out, one object may stand twice, levels count from the task", async () => {
  await using server = await startScript(answers(200, {}));
  const client = createClient({ url: server.url });
  const twice = { a: 1 };
  const params = { gone: undefined, one: twice, other: [twice], bare: Object.create(null), deep: nested(60) };
  await client.submit({ ...task, id: "t", params });
  assert.deepEqual(server.heard[0]?.body, {
    ...{ ...task, id: "t" },
    params: { one: twice, other: [twice], bare: {}, deep: nested(60) },
  });
  const full = { id: "t", action: "a", params: { deep: nested(63) } };
  await client.submitBatch({ agentId: "ann", tasks: [full] });
  await client.sync("w", { n: 1, results: [{ taskId: "t", attempt: 1, outcome: "done", result: nested(65) }] });
  await client.patchConfig(null);
  assert.equal(server.heard.length, 4);
  const { details } = await refusedParams({ deep: nested(64) });
  assert.match(String(details.field), /^params\.deep\[0\]/);
});

test("ids that are given never meet, however many there are", () => {
  const ids = Array.from({ length: 2000 }, () => (JSON.parse(bodyText("submit", task)) as { id: string }).id);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^task_[0-9a-hj-km-np-tv-z]{16}$/);
});

test("a body that is text already is sent as it is, and is its value to whoever stands in the client's place", () => {
  const text = '{"n":1,"results":[{"result": 1.0}]}';
  const body = new JsonText<{ n: number }>(text).asBody();
  assert.equal(bodyText("sync", body), text);
  assert.deepEqual(JSON.parse(JSON.stringify({ body })), { body: { n: 1, results: [{ result: 1 }] } });
});
