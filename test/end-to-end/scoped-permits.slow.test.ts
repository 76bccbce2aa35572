/**
 * Whose permits and reports are whose: what a scoped caller names before it is there is not its own, and a worker token
 * speaks for its own session only.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProjectId } from "../../src/core/base/brand.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { isPending, until } from "../kits/waits.ts";

const tokenOf = (name: string): { token: string } => ({ token: `token-of-${name}-0123456789` });
const tokens = [
  { role: "admin", ...tokenOf("admin") },
  { role: "worker", ...tokenOf("worker") },
  { role: "agent", ...tokenOf("ann"), agentId: "ann" },
  { role: "agent", ...tokenOf("bob"), agentId: "bob" },
];
const [admin, worker, ann, bob] = [tokenOf("admin"), tokenOf("worker"), tokenOf("ann"), tokenOf("bob")];
const open = (gates = {}): Promise<TestServer> => openServer({ settings: { server: { tokens }, gates } });
const throttle = { ok: false, rateLimited: { retryAfterMs: 60_000 } };

test("permits that Drover has named are not those of a scoped caller that knows their ids", async () => {
  await using at = await open({ g: { maxConcurrent: 1 } });
  const { permitId: granted } = (await at.ask("askPermit", { body: { gate: "g" } }, admin)).json;
  const asking = at.ask("askPermit", { body: { gate: "g", waitMs: 60_000 } }, admin);
  await until(
    "two permits",
    () => at.drover.state.permits.size === 2,
    () => at.ask("health", {}),
  );
  for (const id of at.drover.state.permits.keys()) {
    assert.equal((await at.ask("settlePermit", { params: { id }, body: throttle }, ann)).status, 404, id);
    assert.equal((await at.ask("dropPermit", { params: { id }, query: {} }, ann)).status, 404, id);
  }
  assert.equal((await at.ask("settlePermit", { params: { id: granted }, body: {} }, admin)).status, 200);
  assert.equal((await asking).json.status, "granted");
});

test("calls of a token that is scoped to an agent make no projects: its tasks do, then calls go there", async () => {
  await using at = await open();
  const call = (id: string, who = ann) => at.ask("askPermit", { body: { gate: "g", project: "made-up", id } }, who);
  const { status, problem } = await call("first");
  assert.deepEqual([status, problem.code], [404, "not_found"], problem.error);
  assert.equal(at.drover.state.projects.has("made-up" as ProjectId), false);
  assert.equal((await at.ask("askPermit", { body: { gate: "g" } }, ann)).status, 200, "the project of no name");
  assert.equal(
    (await at.ask("submit", { body: { agentId: "ann", action: "x", project: "made-up" } }, ann)).status,
    202,
  );
  assert.equal((await call("second")).status, 200);
});

test("an id that was refused, or whose call may come back, is the next one's alone", async () => {
  await using at = await open();
  const refused = await at.ask("askPermit", { body: { gate: "g", id: "next", taskId: "no-task", attempt: 1 } }, ann);
  assert.equal(refused.status, 404);
  const body = { gate: "g", id: "once" };
  await at.ask("askPermit", { body }, ann);
  assert.equal((await at.ask("settlePermit", { params: { id: "once" }, body: throttle }, ann)).status, 200);
  for (const id of ["next", "once"]) {
    assert.equal((await at.ask("askPermit", { body: { gate: "g", id } }, admin)).status, 200);
    assert.equal((await at.ask("dropPermit", { params: { id }, query: {} }, ann)).status, 404, id);
  }
});

test("a ticket that still waits is its caller's, also when it asks a second time before the first answer", async () => {
  await using at = await open({ g: { maxConcurrent: 1 } });
  await at.ask("askPermit", { body: { gate: "g" } }, admin);
  const body = { gate: "g", id: "mine", waitMs: 60_000 };
  const first = at.ask("askPermit", { body }, ann);
  await until(
    "the permit",
    () => at.drover.state.permits.has("mine" as never),
    () => at.ask("health", {}),
  );
  assert.equal((await at.ask("askPermit", { body: { ...body, waitMs: 0 } }, ann)).json.status, "queued");
  assert.equal((await at.ask("dropPermit", { params: { id: "mine" }, query: {} }, ann)).status, 200);
  assert.equal((await first).status, 404);
});

test("the place of a call that met a 429 is its caller's alone", async () => {
  await using at = await open();
  const session = (await at.ask("joinWorker", { body: { id: "w" } }, worker)).json.session;
  const other = (await at.ask("joinWorker", { body: { id: "v" } }, worker)).json.session;
  const callers = [
    ["first", ann, {}, bob, {}],
    ["second", worker, { session }, worker, { session: other }],
  ] as const;
  for (const [first, who, said, thief, saidByThief] of callers) {
    const gate = `gate-of-${first}`;
    const asked = await at.ask("askPermit", { body: { gate, id: first, ...said } }, who);
    assert.equal(asked.json.status, "granted", asked.text);
    const settled = await at.ask("settlePermit", { params: { id: first }, body: { ...throttle, ...said } }, who);
    assert.equal(settled.status, 200, settled.text);
    const ask = async (id: string, token: { token: string }, more: object): Promise<number | undefined> => {
      const { json, text } = await at.ask(
        "askPermit",
        { body: { gate, id: id === first ? first : `${id}-${first}`, ...more } },
        token,
      );
      assert.match(json.status, /queued|rate-limited/, text);
      return json.position;
    };
    assert.equal(await ask("waits", admin, {}), 1);
    assert.equal(await ask("stolen", thief, { again: first, ...saidByThief }), 2);
    assert.equal(await ask(first, thief, saidByThief), 3, "nor by taking its name");
    assert.equal(await ask("back", who, { again: first, ...said }), 1);
  }
});

async function twoWorkers() {
  const at = await open();
  const join = async (id: string) => (await at.ask("joinWorker", { body: { id } }, worker)).json.session;
  const mine = await join("mine");
  await at.ask("submit", { body: { id: "t1", agentId: "a", action: "x" } }, admin);
  const [first] = (await at.ask("sync", { params: { id: "mine" }, body: { session: mine } }, worker)).json.assignments;
  assert.equal(first?.taskId, "t1");
  const other = await join("other");
  return { at, mine, other };
}
const running = [{ taskId: "t1", attempt: 1, usage: { inputTokens: 1_000_000 } }];
const results = [{ taskId: "t1", attempt: 1, outcome: "done" as const }];

test("a worker token reports under its own session, and under none not at all", async () => {
  const { at, mine, other } = await twoWorkers();
  await using _ = at;
  const params = { id: "mine" };
  const log = { id: "log_1", text: null };
  for (const [said, status] of [[{}, 400] as const, [{ session: other }, 409] as const]) {
    const replies = [
      await at.ask("sync", { params, body: { ...said, running } }, worker),
      await at.ask("sync", { params, body: { ...said, results } }, worker),
      await at.ask("handInLog", { params, body: { ...said, ...log } }, worker),
      await at.ask("drainWorker", { params, query: said }, worker),
      await at.ask("leaveWorker", { params, query: said }, worker),
    ];
    assert.deepEqual(
      replies.map((reply) => reply.status),
      [status, status, status, status, status],
    );
    if (status === 400) for (const { problem } of replies) assert.equal(problem.details?.field, "session");
  }
  const stolen = await at.ask("sync", { params: { id: "other" }, body: { session: other, results } }, worker);
  assert.deepEqual(stolen.json.results, [{ taskId: "t1", attempt: 1, accepted: false, code: "not_held" }]);
  assert.equal((await at.ask("task", { params: { id: "t1" } }, admin)).json.state, "assigned");
  const own = await at.ask("sync", { params, body: { session: mine, results } }, worker);
  assert.equal(own.json.results[0]?.accepted, true);
  assert.equal((await at.ask("drainWorker", { params, query: {} }, admin)).status, 200, "an admin need not");
});

test("a worker token asks for, settles and drops the permits of its own session only", async () => {
  const { at, mine, other } = await twoWorkers();
  await using _ = at;
  const ofTask = { gate: "g", taskId: "t1", attempt: 1 };
  const ask = (body: { gate: string; id?: string; session?: string; taskId?: string; attempt?: number }) =>
    at.ask("askPermit", { body }, worker);
  assert.equal((await ask(ofTask)).status, 400);
  assert.equal((await ask({ ...ofTask, session: other })).status, 403);
  assert.equal((await ask({ gate: "g", session: "made up" })).status, 403);
  for (const body of [ofTask, { gate: "g" }]) {
    const { permitId: id } = (await ask({ ...body, session: mine })).json;
    const params = { id };
    assert.equal((await ask({ gate: "g", id, session: other })).status, 404);
    assert.equal((await at.ask("settlePermit", { params, body: throttle }, worker)).status, 400);
    assert.equal((await at.ask("settlePermit", { params, body: { ...throttle, session: other } }, worker)).status, 404);
    assert.equal((await at.ask("dropPermit", { params, query: { session: other } }, worker)).status, 404);
    assert.equal((await at.ask("settlePermit", { params, body: { session: mine } }, worker)).status, 200);
  }
});

test("a wait for many permits tells of the caller's own only, and a worker's says its session", async () => {
  await using at = await open({ g: { maxConcurrent: 1 } });
  const wait = (ids: readonly string[], who: { token: string }, more: object = {}) =>
    at.ask("waitPermits", { body: { ids, timeoutMs: 60_000, ...more } }, who);
  const { permitId: out } = (await at.ask("askPermit", { body: { gate: "g" } }, admin)).json;
  for (const id of ["a", "b"]) await at.ask("askPermit", { body: { gate: "g", id } }, ann);
  assert.deepEqual((await wait(["a", "b"], bob)).json, { ids: ["a", "b"] }, "as if they were not there");
  assert.deepEqual((await wait(["b", "nobody", "b"], ann)).json, { ids: ["nobody"] });
  assert.deepEqual((await wait(["a", "b"], ann, { timeoutMs: 0 })).json, { ids: [] });
  assert.equal((await wait(["a"], worker)).problem.code, "bad_request");
  const { session } = (await at.ask("joinWorker", { body: { id: "w" } }, worker)).json;
  assert.deepEqual((await wait(["a"], worker, { session })).json, { ids: ["a"] });
  const waiting = wait(["a", "b"], ann);
  assert.equal(await isPending(waiting), true);
  await at.ask("settlePermit", { params: { id: out }, body: {} }, admin);
  assert.deepEqual((await waiting).json, { ids: ["a"] });
});
