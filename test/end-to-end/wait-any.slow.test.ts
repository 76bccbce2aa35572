/**
 * One wait for any of many tasks, over HTTP: each is let in and answered as a wait for it alone would be.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import type { TaskView, WaitAnyItem } from "../../src/protocol/index.ts";
import { startWorker } from "../../src/worker/index.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { until, within } from "../kits/waits.ts";

const TOKENS = {
  admin: { role: "admin", token: "token-of-admin-0123456789" },
  ann: { role: "agent", token: "token-of-ann-0123456789", agentId: "ann" },
  viewer: { role: "viewer", token: "token-of-viewer-0123456789" },
  worker: { role: "worker", token: "token-of-worker-0123456789" },
} as const;
type Who = keyof typeof TOKENS;
const withTokens = (): Promise<TestServer> => openServer({ settings: { server: { tokens: Object.values(TOKENS) } } });
const tokenOf = (who?: Who): { token?: string } => (who === undefined ? {} : { token: TOKENS[who].token });

const submit = async (at: TestServer, id: string, who?: Who, agentId = "ann"): Promise<void> =>
  void (await at.ask("submit", { body: { id, agentId, action: "x" } }, tokenOf(who)));
const cancel = async (at: TestServer, id: string, who?: Who): Promise<void> =>
  void (await at.ask("cancel", { params: { id }, body: {} }, tokenOf(who)));

async function waitAny(
  at: TestServer,
  ids: readonly string[],
  { who, timeoutMs = 60_000 }: { readonly who?: Who; readonly timeoutMs?: number } = {},
): Promise<readonly WaitAnyItem[]> {
  const asking = at.ask("waitAny", { body: { ids, timeoutMs } }, tokenOf(who));
  const { status, text, json } = await within("an answer", asking);
  assert.equal(status, 200, text);
  return json.answers;
}
const shown = (items: readonly WaitAnyItem[]): unknown[] =>
  items.map(({ id, status, body }) => [
    id,
    status,
    status === 200 ? (body as TaskView).state : (body as TaskView).error,
  ]);

/** So many calls hold their answer back. */
const heldBack = (at: TestServer, count: number): Promise<void> =>
  until(`${count} calls that wait`, async () => {
    const { text } = await at.ask("metrics", {}, tokenOf(undefined));
    return text.includes(`drover_long_polls ${count}\n`);
  });

test("it is answered with those that have ended, when the first has, and at once when one has already", async () => {
  await using at = await openServer();
  for (const id of ["a", "b", "c"]) await submit(at, id);
  const waiting = waitAny(at, ["a", "b", "c", "b"]);
  await heldBack(at, 1);
  await cancel(at, "b");
  assert.deepEqual(shown(await waiting), [["b", 200, "cancelled"]]);
  await cancel(at, "c");
  assert.deepEqual(shown(await waitAny(at, ["a", "b", "c"])), [
    ["b", 200, "cancelled"],
    ["c", 200, "cancelled"],
  ]);
  assert.deepEqual(await waitAny(at, ["a"], { timeoutMs: 1 }), [], "the time is over");
  assert.deepEqual(await waitAny(at, ["a"], { timeoutMs: 0 }), []);
  const alone = await at.ask("wait", { params: { id: "b" }, query: {} });
  const [item] = await waitAny(at, ["b"]);
  assert.deepEqual(item?.body, alone.json);
});

test("a task that is not there is refused at once, by itself, as it is alone", async () => {
  await using at = await openServer();
  await submit(at, "a");
  const answers = await waitAny(at, ["a", "nobody"]);
  const alone = await at.ask("wait", { params: { id: "nobody" }, query: {} });
  assert.deepEqual(answers, [{ id: "nobody", status: 404, body: alone.json }]);
});

test("each takes the role and the scope of a wait; another's task is as if it were not there", async () => {
  await using at = await withTokens();
  await submit(at, "own", "admin");
  await submit(at, "theirs", "admin", "bob");
  const body = { ids: ["own", "theirs"], timeoutMs: 0 };
  assert.equal((await at.ask("waitAny", { body })).status, 401);
  assert.equal((await at.ask("waitAny", { body }, tokenOf("worker"))).status, 403);
  for (const who of ["ann", "viewer"] as const) {
    const answers = shown(await waitAny(at, ["own", "theirs"], { who, timeoutMs: who === "ann" ? 60_000 : 1 }));
    assert.deepEqual(answers, who === "ann" ? [["theirs", 404, "no task has the id theirs"]] : []);
  }
  await cancel(at, "theirs", "admin");
  await cancel(at, "own", "admin");
  assert.deepEqual(shown(await waitAny(at, ["own", "theirs"], { who: "ann" })), [
    ["theirs", 404, "no task has the id theirs"],
    ["own", 200, "cancelled"],
  ]);
});

test("an answer is bounded: what has no room in it comes with the next", async () => {
  await using at = await openServer();
  const ids = ["a", "b", "c"];
  for (const id of ids)
    await at.ask("submit", { body: { id, agentId: "ann", action: "x", params: { text: "x".repeat(400_000) } } });
  for (const id of ids) await cancel(at, id);
  assert.deepEqual(
    (await waitAny(at, ids)).map(({ id }) => id),
    ["a", "b"],
  );
  assert.deepEqual(
    (await waitAny(at, ["c"])).map(({ id }) => id),
    ["c"],
  );
});

test("it takes from 1 to 1000 ids", async () => {
  await using at = await openServer();
  for (const ids of [[], Array.from({ length: 1001 }, (_, index) => `t${index}`), ["a", "b d"]]) {
    const { status, problem } = await at.ask("waitAny", { body: { ids, timeoutMs: 0 } });
    assert.deepEqual([status, problem.details?.field], [400, ids.length === 2 ? "ids[1]" : "ids"]);
  }
});

test("a caller that hangs up leaves nothing behind", async () => {
  await using at = await openServer();
  await submit(at, "a");
  const hangUp = new AbortController();
  const gone = at.ask("waitAny", { body: { ids: ["a"] } }, { signal: hangUp.signal }).catch(() => {});
  await heldBack(at, 1);
  hangUp.abort();
  await gone;
  await heldBack(at, 0);
});

test("the client's waits meet at a real server: results, a task that is not there, one that is given up", async () => {
  await using at = await openServer({ settings: { scheduler: { maxQueue: 2000, maxPerAgent: 2000 } } });
  await using client = createClient({ url: at.url });
  await using worker = await startWorker({ url: at.url, slots: 50 }, ({ taskId }) => `result of ${taskId}`);
  const given = new AbortController();
  const reason = new Error("enough");
  await client.submit({ id: "later", agentId: "ann", action: "x", notBefore: "2099-01-01T00:00:00Z" });
  const others = [client.wait("nobody"), client.wait("later", { signal: given.signal })].map((wait) =>
    wait.catch((error: unknown) => error),
  );
  const ends = Array.from({ length: 300 }, async (_, index) => {
    const { taskId } = await client.submit({ agentId: `a${index % 7}`, action: "x" });
    const { result } = await client.wait<string>(taskId);
    return result === `result of ${taskId}`;
  });
  assert.ok((await within("all results", Promise.all(ends))).every((isRight) => isRight));
  given.abort(reason);
  const [unknown, abandoned] = await Promise.all(others);
  assert.deepEqual([(unknown as { code: string }).code, abandoned], ["not_found", reason]);
  // Its own polls are calls that wait too.
  await worker.drain();
  await heldBack(at, 0);
});
