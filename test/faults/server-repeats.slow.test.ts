/**
 * Answers that are lost on the wire, and workers that lie: every call is safe to repeat, and nobody finishes what it
 * does not hold.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Asked, CALLS, type CallName, type SyncAnswer } from "../../src/protocol/index.ts";
import { rawSocket } from "../kits/raw-socket.ts";
import { openServer, pathOf, type Reply, type TestServer } from "../kits/test-server.ts";

const task = { agentId: "ann", action: "x" };

/** Makes a call and hangs up as soon as the server has acted on it: the answer is lost. */
async function loseAnswer<Name extends CallName>(at: TestServer, name: Name, asked: Asked<Name>): Promise<void> {
  const before = at.drover.state.seq;
  const { method, path } = CALLS[name];
  const { params = {}, body } = asked as { params?: object; body?: unknown };
  const text = JSON.stringify(body);
  const acted = Promise.withResolvers<void>();
  const stop = at.drover.watch(() => at.drover.state.seq > before && acted.resolve());
  const { send, socket } = await rawSocket(at.url);
  const head = [`${method} ${pathOf(path, params, {})} HTTP/1.1`, "Host: localhost", "Content-Type: application/json"];
  send(`${head.join("\r\n")}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  await acted.promise;
  socket.resetAndDestroy();
  stop();
}

test("a submit whose answer was lost is the same task when it is repeated", async () => {
  await using at = await openServer();
  const body = { ...task, id: "once", payload: { a: 1 } };
  await loseAnswer(at, "submit", { body });
  const again = await at.ask("submit", { body });
  assert.deepEqual([again.status, again.json.taskId], [202, "once"]);
  const tasks = [
    { action: "x", id: "b1" },
    { action: "y", id: "b2", needs: ["b1"] },
  ];
  await loseAnswer(at, "submitBatch", { body: { agentId: "ann", tasks } });
  const batch = await at.ask("submitBatch", { body: { agentId: "ann", tasks } });
  assert.deepEqual([batch.status, batch.json.accepted], [202, 2]);
  assert.equal((await at.ask("tasks", { query: {} })).json.count, 3);
});

test("an assignment in a lost answer is said again, and a result in a lost answer counts once", async () => {
  await using at = await openServer();
  const { workerId: id, session } = (await at.ask("joinWorker", { body: { id: "w" } })).json;
  const { taskId } = (await at.ask("submit", { body: task })).json;
  // D1: this answer holds the assignment, and nobody reads it.
  const lost = await rawSocket(at.url);
  const text = JSON.stringify({ session, n: 1 });
  lost.send(`POST /workers/w/sync HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`);
  lost.send(`Content-Length: ${text.length}\r\n\r\n${text}`);
  await lost.until("200 OK");
  lost.socket.destroy();
  const again = await at.ask("sync", { params: { id }, body: { session, n: 2, waitMs: 5000 } });
  assert.equal(again.json.assignments[0]?.taskId, taskId);
  const running = [{ taskId, attempt: 1 }];
  await at.ask("sync", { params: { id }, body: { session, n: 3, running } });
  const results = [{ taskId, attempt: 1, outcome: "done", result: 1 }] as const;
  await loseAnswer(at, "sync", { params: { id }, body: { session, n: 4, running: [], results } });
  const repeated = await at.ask("sync", { params: { id }, body: { session, n: 5, running: [], results } });
  assert.deepEqual(repeated.json.results, [{ taskId, attempt: 1, accepted: true, code: "duplicate" }]);
  const ends = [];
  for await (const { kind } of at.drover.events()) if (kind === "task-done") ends.push(kind);
  assert.equal(ends.length, 1);
});

test("what is repeated after it was done changes nothing more", async () => {
  await using at = await openServer();
  const { taskId } = (await at.ask("submit", { body: task })).json;
  const id = { params: { id: taskId } };
  await at.ask("askPermit", { body: { gate: "g", id: "call-1" } });
  await at.ask("askPermit", { body: { gate: "g", id: "call-2" } });
  const schedule = { params: { id: "s" }, body: { cron: "@daily", task } };
  const twice: [name: CallName, run: () => Promise<Reply>, second: number][] = [
    ["patch", () => at.ask("patch", { ...id, body: { priority: "high" } }), 200],
    ["cancel", () => at.ask("cancel", { ...id, body: {} }), 409],
    ["cancelWhere", () => at.ask("cancelWhere", { body: { filter: { all: true } } }), 200],
    ["putProject", () => at.ask("putProject", { params: { id: "p" }, body: { weight: 3 } }), 200],
    ["patchConfig", () => at.ask("patchConfig", { body: { maxInFlight: 9 } }), 200],
    ["pause", () => at.ask("pause", { body: {} }), 200],
    ["resume", () => at.ask("resume", { body: {} }), 200],
    ["putSchedule", () => at.ask("putSchedule", schedule), 200],
    ["removeSchedule", () => at.ask("removeSchedule", { params: { id: "s" } }), 404],
    ["askPermit", () => at.ask("askPermit", { body: { gate: "g", id: "call-1" } }), 200],
    [
      "settlePermit",
      () => at.ask("settlePermit", { params: { id: "call-1" }, body: { usage: { inputTokens: 5 } } }),
      200,
    ],
    ["dropPermit", () => at.ask("dropPermit", { params: { id: "call-2" }, query: {} }), 200],
    ["joinWorker", () => at.ask("joinWorker", { body: { id: "w" } }), 201],
    ["drainWorker", () => at.ask("drainWorker", { params: { id: "w" }, query: {} }), 200],
    ["leaveWorker", () => at.ask("leaveWorker", { params: { id: "w" }, query: {} }), 404],
  ];
  for (const [name, run, expected] of twice) {
    const first = await run();
    assert.ok(first.status < 300, `${name}: ${first.text}`);
    const shownOnce = await shown(at);
    const second = await run();
    assert.equal(second.status, expected, `${name}: ${second.text}`);
    assert.deepEqual(await shown(at), shownOnce, name);
  }
});

/** How everything stands, without what only time changes. */
async function shown(at: TestServer): Promise<unknown> {
  const gates = (await at.ask("gates", {})).json.gates.map(({ running, queued }) => ({ running, queued }));
  const { tasks } = (await at.ask("tasks", { query: {} })).json;
  const workers = (await at.ask("workers", {})).json.workers.map(({ id, status, slots }) => ({ id, status, slots }));
  const { metrics, config } = (await at.ask("stats", {})).json;
  return { gates, tasks, workers, metrics, config, projects: (await at.ask("projects", {})).json };
}

test("a worker that lies finishes nothing it does not hold", async () => {
  await using at = await openServer();
  const join = async (id: string) => (await at.ask("joinWorker", { body: { id } })).json.session;
  const [honest, liar] = [await join("honest"), await join("liar")];
  const sync = (id: string, body: object): Promise<Reply<SyncAnswer>> => at.ask("sync", { params: { id }, body });
  await sync("liar", { session: liar, n: 1, status: "overloaded" });
  const { taskId } = (await at.ask("submit", { body: task })).json;
  await sync("honest", { session: honest, n: 1, waitMs: 5000 });
  await sync("honest", { session: honest, n: 2, running: [{ taskId, attempt: 1 }] });
  const result = { taskId, attempt: 1, outcome: "done", result: "a lie" };
  const lies: [what: object, code: string][] = [
    [result, "not_held"],
    [{ ...result, attempt: 2 }, "stale_attempt"],
    [{ ...result, attempt: 999 }, "stale_attempt"],
    [{ ...result, taskId: "nobody" }, "not_found"],
  ];
  let n = 1;
  for (const [what, code] of lies) {
    const told = await sync("liar", { session: liar, n: ++n, status: "overloaded", results: [what] });
    const [answer] = told.json.results;
    assert.deepEqual([told.status, answer?.accepted], [200, false], told.text);
    assert.ok(answer?.code === code || answer?.code === "not_held", `${JSON.stringify(what)}: ${answer?.code}`);
  }
  assert.equal((await at.ask("task", { params: { id: taskId } })).json.state, "running");
  const stray = await sync("liar", { session: liar, n: ++n, running: [{ taskId, attempt: 1 }] });
  assert.deepEqual(stray.json.cancel, [{ taskId, attempt: 1 }]);

  const wrongSession = await sync("honest", { session: liar, n: 3, results: [result] });
  assert.deepEqual([wrongSession.status, wrongSession.problem.code], [409, "session_lost"]);
  const old = await sync("honest", { session: honest, n: 1, results: [result] });
  assert.deepEqual([old.status, old.problem.code], [409, "stale_sync"]);

  await at.ask("drainWorker", { params: { id: "honest" }, query: {} });
  const results = [{ ...result, result: "the truth" }];
  const last = await sync("honest", { session: honest, n: 3, running: [], results });
  assert.deepEqual([last.json.results[0]?.accepted, last.json.drain], [true, true]);
  const twice = await sync("honest", { session: honest, n: 4, running: [], results });
  assert.deepEqual(twice.json.results[0], { taskId, attempt: 1, accepted: true, code: "duplicate" });
  const other = await sync("honest", {
    session: honest,
    n: 5,
    running: [],
    results: [{ ...result, outcome: "failed" }],
  });
  assert.equal(other.json.results[0]?.accepted, false);
  await at.ask("submit", { body: task });
  const drained = await sync("honest", { session: honest, n: 6, running: [], results });
  assert.deepEqual(drained.json.assignments, []);
  assert.equal((await at.ask("task", { params: { id: taskId } })).json.result, "the truth");
  const gone = await sync("nobody", { session: honest, n: 1 });
  assert.deepEqual([gone.status, gone.problem.code], [404, "not_found"]);
});
