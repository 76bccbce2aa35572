/**
 * The log of an attempt that lies on another machine: who is asked for it, what comes back, and what is said when it
 * does not.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { test } from "node:test";
import type { Answered, LogBody, SyncBody, WantedLog } from "../../src/protocol/index.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { startWorker, type WorkerLogs } from "../../src/worker/index.ts";
import { openServer, type Reply, type TestServer } from "../kits/test-server.ts";
import { until } from "../kits/waits.ts";

const POLL_MS = 60_000;
const quick = { scheduler: { retry: { base: 1, max: 1 } } };
const logs = (at: TestServer, id: string, query: { attempt?: number; tail?: number } = {}, token?: string) =>
  at.ask("logs", { params: { id }, query }, token === undefined ? {} : { token });

type HandWorker = {
  sync(said?: SyncBody): Promise<Answered<"sync">>;
  handIn(log: LogBody): Promise<Reply<Answered<"handInLog">>>;
  /** The one log that is wanted of it, polling until one is. */
  wanted(): Promise<WantedLog>;
  session: string;
};

/** A worker played by hand, over HTTP. */
async function join(at: TestServer, id: string, logPlace?: string, token?: string): Promise<HandWorker> {
  const more = token === undefined ? {} : { token };
  const place = logPlace === undefined ? {} : { logPlace };
  const { session } = (await at.ask("joinWorker", { body: { id } }, more)).json;
  let n = 0;
  const sync = async (said: SyncBody = {}): Promise<Answered<"sync">> => {
    const body = { session, n: ++n, waitMs: POLL_MS, ...place, ...said };
    const reply = await at.ask("sync", { params: { id }, body }, more);
    assert.equal(reply.status, 200, reply.text);
    return reply.json;
  };
  return {
    ...{ sync, session },
    handIn: (log) => at.ask("handInLog", { params: { id }, body: { session, ...log } }, more),
    async wanted() {
      let list: readonly WantedLog[] = [];
      // A poll ends without one too: half a lease later, or because an assignment is said again.
      await until("a log that is wanted", async () => {
        list = (await sync()).logs ?? [];
        return list.length > 0;
      });
      assert.equal(list.length, 1);
      return list[0] as WantedLog;
    },
  };
}

const submit = (at: TestServer, id: string, more: object = {}) =>
  at.drover.submit({ id, agentId: "ann", action: "x", ...more });

test("a worker that waits for work hears at once that a log is wanted, and whoever asked gets it", async () => {
  await using at = await openServer();
  const ann = await join(at, "ann", "here");
  await submit(at, "t");
  assert.equal((await ann.sync()).assignments.length, 1);
  await ann.sync({ running: [{ taskId: "t", attempt: 1 }], waitMs: 0 });
  const poll = ann.sync();
  const asked = logs(at, "t", { tail: 3 });
  const answer = await poll;
  assert.deepEqual([answer.assignments, answer.cancel], [[], []]);
  const [wanted] = answer.logs ?? [];
  const { taskAgeMs = -1, ...rest } = wanted as WantedLog;
  assert.deepEqual(rest, { id: rest.id, taskId: "t", attempt: 1, lines: 3, bytes: 262_144 });
  assert.ok(taskAgeMs >= 0, "from this it knows a log of a former task with the same id");
  const log = { id: wanted?.id ?? "", text: "one\ntwo\n", truncated: true };
  assert.deepEqual((await ann.handIn(log)).json, { status: "taken", id: log.id });
  const { status, json } = await asked;
  assert.deepEqual([status, json], [200, { taskId: "t", attempt: 1, text: "one\ntwo\n", truncated: true }]);
  assert.equal((await ann.handIn(log)).status, 200, "the same again, as after a lost answer");
  assert.equal((await ann.sync({ waitMs: 0 })).logs, undefined);
  assert.equal((await at.drover.task("t")).state, "running", "its task has gone on all the while");
});

test("each attempt is asked of the worker that ran it, or of who has taken over its place", async () => {
  await using at = await openServer({ settings: quick });
  const failed = { taskId: "t", outcome: "failed" as const, error: "no" };
  const ann = await join(at, "ann", "here");
  await submit(at, "t", { maxAttempts: 2 });
  await ann.sync();
  await ann.sync({ results: [{ ...failed, attempt: 1 }], status: "overloaded" });
  const bob = await join(at, "bob", "there");
  assert.equal((await bob.sync()).assignments[0]?.attempt, 2);
  await bob.sync({ results: [{ ...failed, attempt: 2 }] });
  assert.equal((await at.drover.task("t")).state, "failed");

  for (const [worker, attempt, query] of [
    [bob, 2, {}],
    [ann, 1, { attempt: 1 }],
    [bob, 2, { attempt: 2 }],
  ] as const) {
    const asked = logs(at, "t", query);
    const { id, attempt: of } = await worker.wanted();
    await worker.handIn({ id, text: `attempt ${of}\n` });
    assert.deepEqual((await asked).json, { taskId: "t", attempt, text: `attempt ${attempt}\n`, truncated: false });
  }

  await at.ask("leaveWorker", { params: { id: "bob" }, query: {} });
  const gone = await logs(at, "t");
  assert.deepEqual([gone.status, gone.problem.code], [404, "not_found"]);
  assert.match(gone.problem.error, /attempt 2 of task t is with worker bob, which is not connected; start it again/);
  assert.deepEqual(gone.problem.details, { taskId: "t", attempt: 2, workerId: "bob" });
  const heir = await join(at, "bob-the-second", "there");
  await heir.sync({ waitMs: 0 });
  const asked = logs(at, "t");
  await heir.handIn({ id: (await heir.wanted()).id, text: "kept\n" });
  assert.equal((await asked).json.text, "kept\n");
});

test("what stands in the way is said, with the worker's name and what to do", async () => {
  const clock = createHandClock({ at: 0 });
  await using at = await openServer({ server: { clock } });
  await submit(at, "waits", { capabilities: ["gpu"] });
  assert.match((await logs(at, "waits")).problem.error, /no log of task waits is here: it has not begun yet/);
  for (const query of [{}, { attempt: 3 }]) {
    const { status, problem } = await logs(at, "nobody", query);
    assert.deepEqual([status, problem.error], [404, "no task has the id nobody"]);
  }

  const ann = await join(at, "ann", "here");
  await submit(at, "t");
  await ann.sync();
  assert.match(
    (await logs(at, "t", { attempt: 2 })).problem.error,
    /attempt 2 of task t is here: its last attempt is 1/,
  );
  const rows: [LogBody, RegExp][] = [
    [{ id: "", text: null }, /^worker ann does not have the log of attempt 1 of task t: it has not begun yet, or /],
    [{ id: "", text: null, error: "EACCES" }, /^worker ann could not read the log of attempt 1 of task t: EACCES$/],
  ];
  for (const [log, text] of rows) {
    const asked = logs(at, "t");
    await ann.handIn({ ...log, id: (await ann.wanted()).id });
    const { status, problem } = await asked;
    assert.deepEqual([status, problem.code], [404, "not_found"]);
    assert.match(problem.error, text);
  }

  const unanswered = logs(at, "t");
  const { id } = await ann.wanted();
  clock.turn(5000);
  const { status, problem } = await unanswered;
  assert.deepEqual([status, problem.code, problem.retryable], [504, "worker_silent", undefined]);
  assert.match(problem.error, /^worker ann did not hand in the log of attempt 1 of task t within 5000 ms; try again/);
  assert.deepEqual((await ann.handIn({ id, text: "x" })).json, { status: "late", id });

  const bob = await join(at, "bob");
  await submit(at, "u");
  assert.equal((await bob.sync()).assignments[0]?.taskId, "u");
  const none = await logs(at, "u");
  assert.deepEqual([none.status, none.problem.code], [404, "not_found"]);
  assert.match(none.problem.error, /^worker bob ran attempt 1 of task u and keeps no logs; drover worker --exec does$/);
});

test("a worker that lies is refused by name, and the waiting are not answered by it", async () => {
  await using at = await openServer({ server: { clock: createHandClock({ at: 0 }) } });
  const ann = await join(at, "ann", "here");
  const bob = await join(at, "bob", "there");
  await submit(at, "t");
  const held = await ann.sync({ waitMs: 0 });
  const [holder, other] = held.assignments.length === 1 ? [ann, bob] : [bob, ann];
  if (holder === bob) await bob.sync();
  const asked = logs(at, "t");
  const { id } = await holder.wanted();
  const lies: [Promise<Reply>, number, string, string | undefined][] = [
    [other.handIn({ id, text: "mine\n" }), 404, "not_found", "id"],
    [holder.handIn({ id: "log_of-mine", text: "x" }), 404, "not_found", "id"],
    [holder.handIn({ id, text: "x", session: other.session }), 409, "session_lost", undefined],
    [holder.handIn({ id, text: "x".repeat(262_143) }), 400, "bad_request", "text"],
    [holder.handIn({ id, text: "x".repeat(300_000) }), 400, "bad_request", "text"],
    [holder.handIn({ id, text: "x".repeat(1_100_000) }), 413, "too_large", undefined],
    [at.ask("handInLog", { params: { id: "nobody" }, body: { id, text: "x" } }), 404, "not_found", undefined],
  ];
  for (const [reply, status, code, field] of lies) {
    const { problem, ...got } = await reply;
    assert.deepEqual([got.status, problem.code, problem.details?.field], [status, code, field], problem.error);
  }
  assert.equal((await holder.handIn({ id, text: "x".repeat(262_142) })).status, 200);
  assert.equal((await asked).json.text.length, 262_142);
});

test("a scoped token gets the logs of its own tasks, and of others not even a worker is asked", async () => {
  const token = (name: string): string => `token-of-${name}-0123456789`;
  const tokens = [
    { role: "admin", token: token("admin") },
    { role: "worker", token: token("worker") },
    { role: "agent", token: token("ann"), agentId: "ann" },
    { role: "viewer", token: token("site"), project: "site" },
  ];
  await using at = await openServer({ settings: { server: { tokens } } });
  const worker = await join(at, "w", "here", token("worker"));
  await submit(at, "t");
  await worker.sync();
  const foreign = await logs(at, "t", {}, token("site"));
  assert.deepEqual([foreign.status, foreign.problem.error], [404, "no task has the id t"]);
  assert.equal((await worker.sync({ waitMs: 0 })).logs, undefined);
  const own = logs(at, "t", {}, token("ann"));
  const { id } = await worker.wanted();
  for (const name of ["ann", "site"]) {
    const body = { id, text: "not a worker's" };
    assert.equal((await at.ask("handInLog", { params: { id: "w" }, body }, { token: token(name) })).status, 403);
  }
  await worker.handIn({ id, text: "own\n" });
  assert.equal((await own).json.text, "own\n");
  assert.equal((await logs(at, "t", {}, token("worker"))).status, 403);
});

test("what another task of the same id has left beside the server is not shown", async () => {
  const seen: unknown[] = [];
  const logsOf = (_: string, attempt: number | undefined, { taskAgeMs = -1 }: { taskAgeMs?: number }) => {
    seen.push([attempt, taskAgeMs >= 0]);
    return taskAgeMs >= 0 ? null : { attempt: attempt ?? 1, text: "somebody else's\n", truncated: false };
  };
  const settings = { scheduler: { retry: { base: 1, max: 1 }, resultTtl: 1 } };
  await using at = await openServer({ settings, server: { logsOf } });
  await submit(at, "waits", { capabilities: ["gpu"] });
  assert.match((await logs(at, "waits")).problem.error, /no log of task waits is here: it has not begun yet/);
  assert.match((await logs(at, "waits", { attempt: 7 })).problem.error, /it has not begun yet/);
  assert.deepEqual(seen, [], "nobody has looked");
  const ann = await join(at, "ann", "here");
  await submit(at, "t");
  await ann.sync();
  for (const isEnded of [false, true]) {
    if (isEnded) await ann.sync({ results: [{ taskId: "t", attempt: 1, outcome: "done" }], waitMs: 0 });
    const isForgotten = (): boolean => !at.drover.state.tasks.has("t" as never);
    if (isEnded) await until("the end of its result", isForgotten, () => at.ask("task", { params: { id: "t" } }));
    const asked = logs(at, "t");
    await ann.handIn({ id: (await ann.wanted()).id, text: "own\n" });
    assert.equal((await asked).json.text, "own\n");
  }
  assert.deepEqual(seen, [
    [1, true],
    [1, true],
  ]);
});

test("who hangs up leaves nothing behind that a worker would be asked for", async () => {
  await using at = await openServer();
  const ann = await join(at, "ann", "here");
  await submit(at, "t");
  await ann.sync();
  const gone = new AbortController();
  const asked = at.ask("logs", { params: { id: "t" }, query: {} }, { signal: gone.signal });
  const { id } = await ann.wanted();
  gone.abort();
  await assert.rejects(asked);
  // The server hears of it a moment later, and until then may still ask.
  await until("a sync that wants no log", async () => (await ann.sync({ waitMs: 0 })).logs === undefined);
  assert.equal((await ann.handIn({ id, text: "x" })).json.status, "late");
});

test("a server that goes sends away who waits for a log", async () => {
  const at = await openServer();
  const ann = await join(at, "ann", "here");
  await submit(at, "t");
  await ann.sync();
  const asked = logs(at, "t");
  await ann.wanted();
  await at.server.close();
  const { status, problem } = await asked;
  assert.deepEqual([status, problem.code], [503, "closed"]);
});

test("a server that has just come back waits for the worker to say that it keeps logs, or none", async (t) => {
  const data = mkdtempSync(joinPath(tmpdir(), "drover-task-logs-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  for (const place of [{ logPlace: "here" }, {}]) {
    const taskId = `t${Object.keys(place).length}`;
    const first = await openServer({ open: { data } });
    const ann = await join(first, "ann", place.logPlace);
    await submit(first, taskId);
    await ann.sync();
    await first.server.close();
    await using at = await openServer({ open: { data } });
    const asked = logs(at, taskId);
    const body = { session: ann.session, n: 9, waitMs: POLL_MS, ...place };
    let wanted: readonly WantedLog[] = [];
    let isAnswered = false;
    void asked.then(() => (isAnswered = true));
    // It is told of its task again as well, perhaps before the question has arrived.
    do wanted = (await at.ask("sync", { params: { id: "ann" }, body })).json.logs ?? [];
    while ("logPlace" in place && wanted.length === 0 && !isAnswered);
    for (const { id } of wanted) await at.ask("handInLog", { params: { id: "ann" }, body: { id, text: "kept\n" } });
    const { status, json, problem } = await asked;
    if ("logPlace" in place) assert.deepEqual([status, json.text], [200, "kept\n"]);
    else assert.match(problem.error, /^worker ann ran attempt 1 of task t0 and keeps no logs/);
    await at.drover.cancel(taskId);
  }
});

test("after a restart of the server too, who is started in the place of a worker that is gone is asked", async (t) => {
  const data = mkdtempSync(joinPath(tmpdir(), "drover-task-logs-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const first = await openServer({ open: { data } });
  const ann = await join(first, "ann", "here");
  await submit(first, "t");
  await ann.sync();
  await ann.sync({ results: [{ taskId: "t", attempt: 1, outcome: "done" }], waitMs: 0 });
  await first.ask("leaveWorker", { params: { id: "ann" }, query: { session: ann.session } });
  await first.server.close();
  await using at = await openServer({ open: { data } });
  const heir = await join(at, "heir", "here");
  const other = await join(at, "other", "there");
  for (const worker of [heir, other]) await worker.sync({ waitMs: 0 });
  const asked = logs(at, "t");
  await other.handIn({ id: (await other.wanted()).id, text: null });
  await heir.handIn({ id: (await heir.wanted()).id, text: "kept\n" });
  assert.equal((await asked).json.text, "kept\n");
  const missed = logs(at, "t");
  for (const worker of [heir, other]) await worker.handIn({ id: (await worker.wanted()).id, text: null });
  assert.match((await missed).problem.error, /is with worker ann, which is not connected; start it again/);
});

test("a push worker keeps no logs, there or gone", async () => {
  await using at = await openServer();
  await at.ask("joinWorker", { body: { id: "p", endpoint: "http://127.0.0.1:9" } });
  await at.drover.remote.sync("p", { waitMs: 0 });
  await submit(at, "t");
  await at.drover.remote.sync("p", { waitMs: 0 });
  for (const isThere of [true, false]) {
    if (!isThere) await at.ask("leaveWorker", { params: { id: "p" }, query: {} });
    assert.match((await logs(at, "t", { attempt: 1 })).problem.error, /^worker p ran attempt 1 of task t and keeps no/);
  }
});

/** A worker of the SDK whose one task runs until the test lets it end. */
async function keeping(at: TestServer, read: WorkerLogs["read"]) {
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const worker = await startWorker({ url: at.url, id: "sdk", logs: { place: "here", read } }, async () => {
    begun.resolve();
    await end.promise;
  });
  await submit(at, "t");
  await begun.promise;
  const leave = async (): Promise<void> => {
    end.resolve();
    await worker.close();
  };
  return { end: end.resolve, leave, [Symbol.asyncDispose]: leave };
}

test("a worker of the SDK hands in what its hook reads, while its task runs and after", async () => {
  await using at = await openServer();
  await using keeper = await keeping(at, ({ taskId, attempt, lines }) => ({
    text: `${taskId} ${attempt} ${lines}\n`,
    truncated: false,
  }));
  assert.deepEqual((await logs(at, "t", { tail: 9 })).json, {
    ...{ taskId: "t", attempt: 1, text: "t 1 9\n", truncated: false },
  });
  const many = await Promise.all(Array.from({ length: 10 }, (_, index) => logs(at, "t", { tail: index + 1 })));
  assert.deepEqual(
    many.map(({ json }) => json.text),
    Array.from({ length: 10 }, (_, index) => `t 1 ${index + 1}\n`),
  );
  keeper.end();
  assert.equal((await at.drover.wait("t")).state, "done");
  assert.equal((await logs(at, "t")).json.text, "t 1 200\n");
  await keeper.leave();
  assert.match((await logs(at, "t")).problem.error, /worker sdk, which is not connected/);
});

test("whatever a hook reads, what is too long is cut to fit and what fails is said", async () => {
  await using at = await openServer({ settings: { server: { bodyLimit: 20_000 } } });
  const line = "\u001b[31mred\u001b[0m\n";
  const texts: Record<number, () => string | null> = {
    1: () => line.repeat(10_000),
    2: () => null,
    3: () => {
      throw new Error("the disk is on fire");
    },
  };
  await using _ = await keeping(at, ({ lines }) => {
    const text = texts[lines]?.() ?? null;
    return text === null ? null : { text, truncated: false };
  });
  const long = (await logs(at, "t", { tail: 1 })).json;
  // As JSON a line has 24 bytes, and 512 of the body are for what else is in it.
  assert.deepEqual([long.truncated, long.text], [true, line.repeat(811)]);
  assert.match((await logs(at, "t", { tail: 2 })).problem.error, /^worker sdk does not have the log of attempt 1/);
  assert.match((await logs(at, "t", { tail: 3 })).problem.error, /could not read .*: the disk is on fire$/);
});
