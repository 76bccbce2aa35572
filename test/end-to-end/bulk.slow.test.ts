/**
 * Calls that travel together, over HTTP: each is let in, read, done and answered as if it had come alone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import type { BulkCall, BulkItem, WireError } from "../../src/protocol/index.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";

const TOKENS = {
  admin: { role: "admin", token: "token-of-admin-0123456789" },
  ann: { role: "agent", token: "token-of-ann-0123456789", agentId: "ann", project: "site" },
  worker: { role: "worker", token: "token-of-worker-0123456789" },
  viewer: { role: "viewer", token: "token-of-viewer-0123456789" },
} as const;
type Who = keyof typeof TOKENS;
const withTokens = (): Promise<TestServer> => openServer({ settings: { server: { tokens: Object.values(TOKENS) } } });
const open = (): Promise<TestServer> => openServer();

async function bulk(at: TestServer, calls: readonly unknown[], who?: Who): Promise<readonly BulkItem[]> {
  const more = who === undefined ? {} : { token: TOKENS[who].token };
  const { status, text, json } = await at.ask("bulk", { body: { calls: calls as BulkCall[] } }, more);
  assert.equal(status, 200, text);
  assert.equal(json.answers.length, calls.length);
  return json.answers;
}
const statusOf = ({ status }: BulkItem): number => status;
const problemOf = (item: BulkItem | undefined): WireError => item?.body as WireError;
const submit = (body: object): BulkCall => ({ call: "submit", body: { agentId: "ann", action: "x", ...body } });

test("tasks of several agents are submitted at once, and each is answered in its place", async () => {
  await using at = await open();
  const ask = (id: string): BulkCall => ({ call: "askPermit", body: { gate: "g", id } });
  await bulk(at, [ask("used"), ask("unused")]);
  const answers = await bulk(at, [
    submit({ id: "a" }),
    submit({ id: "b", agentId: "bob", needs: ["a"] }),
    { call: "submitBatch", body: { agentId: "cat", tasks: [{ action: "x", id: "c" }, { action: "" }] } },
    { call: "cancel", id: "a", body: { reason: "enough" } },
    ask("p"),
    { call: "settlePermit", id: "used", body: {} },
    { call: "dropPermit", id: "unused", query: {} },
  ]);
  assert.deepEqual(answers.map(statusOf), [202, 202, 202, 200, 200, 200, 200]);
  const bodies = answers.map(({ body }) => body as Record<string, unknown>);
  assert.deepEqual([bodies[0]?.taskId, bodies[1]?.taskId, bodies[3]?.status], ["a", "b", "cancelled"]);
  assert.deepEqual([bodies[2]?.accepted, bodies[2]?.rejected], [1, 1]);
  assert.equal((await at.ask("task", { params: { id: "a" } })).json.error, "enough");
});

test("what is wrong with one is said as it is alone, and fails no other", async () => {
  await using at = await open();
  const wrong: [call: unknown, field: string][] = [
    [submit({ priority: "urgent!" }), "priority"],
    [submit({ actoin: 1 }), "actoin"],
    [{ call: "submit" }, "(body)"],
    [{ call: "cancel", body: {} }, "id"],
    [{ call: "cancel", id: "x", query: { a: 1 } }, "query"],
    [{ call: "dropPermit", id: "x", body: {} }, "body"],
    [{ call: "submit", id: "x", body: { agentId: "a", action: "b" } }, "id"],
  ];
  const answers = await bulk(at, [submit({ id: "first" }), ...wrong.map(([call]) => call), submit({ id: "last" })]);
  assert.deepEqual(
    [answers[0], answers.at(-1)].map((one) => one?.status),
    [202, 202],
  );
  for (const [index, [, field]] of wrong.entries()) {
    const answer = answers[index + 1];
    assert.deepEqual([answer?.status, problemOf(answer).details?.field], [400, field], JSON.stringify(answer));
  }
  const alone = await at.ask("submit", { body: { agentId: "ann", action: "x", priority: "urgent!" } as never });
  assert.deepEqual(answers[1]?.body, alone.json);
  const strange = await bulk(at, [{ call: "reload" }, null, { call: "submit", to: "x" }, submit({ id: "good" })]);
  assert.deepEqual(strange.map(statusOf), [400, 400, 400, 202]);
  assert.match(problemOf(strange[0]).error, /^calls\[0\]\.call is "reload"/);
  assert.match(problemOf(strange[1]).error, /^calls\[1\] is null/);
  assert.match(problemOf(strange[2]).error, /^calls\[2\]\.to is not a known field/);
});

test("each call takes its own role and its own scope", async () => {
  await using at = await withTokens();
  await bulk(at, [submit({ id: "theirs", agentId: "bob" })], "admin");
  const calls = [
    submit({ id: "t" }),
    submit({ id: "u", agentId: "bob" }),
    { call: "cancel", id: "theirs" },
    { call: "askPermit", body: { gate: "g", id: "p", session: "s" } },
  ];
  const rows: [who: Who, expected: readonly number[]][] = [
    ["viewer", [403, 403, 403, 403]],
    ["worker", [403, 403, 403, 403]],
    ["ann", [202, 403, 404, 200]],
    ["admin", [409, 202, 200, 200]],
  ];
  for (const [who, expected] of rows) {
    const answers = await bulk(at, calls, who);
    assert.deepEqual(answers.map(statusOf), expected, `${who}: ${JSON.stringify(answers)}`);
  }
  const body = { calls: calls as BulkCall[] };
  assert.equal((await at.ask("bulk", { body })).status, 401);
  assert.equal((await at.ask("bulk", { body }, { token: "token-of-nobody-0123456789" })).status, 401);
});

test("a scoped caller's task may need one that goes before it, and no other's", async () => {
  await using at = await withTokens();
  await bulk(at, [submit({ id: "secret", agentId: "bob" })], "admin");
  const answers = await bulk(
    at,
    [
      submit({ id: "one" }),
      submit({ id: "two", needs: ["one"] }),
      submit({ id: "three", parent: "two" }),
      submit({ id: "spy", needs: ["secret"] }),
      submit({ id: "early", needs: ["late"] }),
      submit({ id: "late" }),
    ],
    "ann",
  );
  assert.deepEqual(answers.map(statusOf), [202, 202, 202, 400, 400, 202], JSON.stringify(answers));
});

test("no room for some: they are told when to come back, and the others are in", async () => {
  await using at = await openServer({ settings: { scheduler: { maxQueue: 3, maxPerAgent: 3 } } });
  const answers = await bulk(
    at,
    [1, 2, 3, 4, 5].map((n) => submit({ id: `t${n}` })),
  );
  assert.deepEqual(answers.map(statusOf), [202, 202, 202, 429, 429]);
  assert.deepEqual([problemOf(answers[3]).code, problemOf(answers[3]).retryable], ["queue_full", true]);
  assert.ok((answers[3]?.retryAfterS ?? 0) >= 1);
});

for (const who of ["admin", "ann"] as const)
  test(`what is cancelled makes room for what comes behind it (${who})`, async () => {
    const tokens = Object.values(TOKENS);
    await using at = await openServer({ settings: { server: { tokens }, scheduler: { maxQueue: 1, maxPerAgent: 1 } } });
    const own = (id: string): BulkCall => submit({ id, project: "site" });
    await bulk(at, [own("a")], who);
    const answers = await bulk(at, [own("b"), { call: "cancel", id: "a", body: {} }, own("c")], who);
    assert.deepEqual(answers.map(statusOf), [429, 200, 202]);
  });

test("the same bulk again is the same tasks", async () => {
  await using at = await open();
  const calls = [submit({ id: "a" }), submit({ id: "b" }), { call: "askPermit", body: { gate: "g", id: "p" } }];
  const first = await bulk(at, calls);
  const again = await bulk(at, calls);
  assert.deepEqual(again.map(statusOf), first.map(statusOf));
  assert.equal((await at.ask("tasks", { query: {} })).json.tasks.length, 2);
});

test("a bulk has from 1 to 1000 calls", async () => {
  await using at = await openServer({ settings: { scheduler: { maxQueue: 5000, maxPerAgent: 5000 } } });
  const many = Array.from({ length: 1001 }, (_, index) => submit({ id: `t${index}` }));
  for (const calls of [[], many]) {
    const { status, problem } = await at.ask("bulk", { body: { calls } });
    assert.deepEqual([status, problem.details?.field], [400, "calls"]);
  }
  const answers = await bulk(at, many.slice(1));
  assert.ok(answers.every(({ status }) => status === 202));
  assert.deepEqual(
    answers.map(({ body }) => (body as { taskId: string }).taskId),
    many.slice(1).map(({ body }) => (body as { id: string }).id),
  );
});

test("the client's calls meet at a real server: submits, cancels and permits, and one that is refused", async () => {
  await using at = await open();
  await using client = createClient({ url: at.url });
  const made = await Promise.allSettled([
    ...Array.from({ length: 300 }, (_, index) =>
      client.submit({ agentId: `a${index % 7}`, action: "x", id: `t${index}` }),
    ),
    client.submit({ agentId: "a", action: "" }),
    client.askPermit({ gate: "g" }),
    client.cancel("t0"),
  ]);
  assert.equal(made.filter(({ status }) => status === "fulfilled").length, 302);
  assert.match(String((made[300] as PromiseRejectedResult).reason), /action is ""/);
  assert.equal((await client.task("t0")).state, "cancelled");
  assert.equal((await client.stats()).metrics.tasksSubmitted, 300);
});
