/**
 * The pull SDK as a program uses it, against the real server, with its thread and its sockets.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { openServer, settingsOf, type TestServer } from "../../../test/kits/test-server.ts";
import { inbox, within } from "../../../test/kits/waits.ts";
import { startWorkerServer } from "../../../test/kits/worker-server.ts";
import { openDrover } from "../../engine/index.ts";
import { AttemptStopped, type PullWorkerOptions, startWorker, startWorkerWithOutcomes, TaskRequeue } from "../index.ts";

const quick = { scheduler: { retry: { base: 1, max: 1, maxLosses: 1, maxRequeues: 3 } } };
const silent = { onWarning: () => {} };
const submit = ({ drover }: Pick<TestServer, "drover">, id: string, more: object = {}) =>
  drover.submit({ id, agentId: "ann", action: "go", ...more });

/** A handler that waits until it is told to stop, and says when it began. */
function waiting() {
  const begun = Promise.withResolvers<AbortSignal>();
  const handler = async (_: unknown, { signal }: { signal: AbortSignal }): Promise<never> => {
    begun.resolve(signal);
    if (!signal.aborted) await once(signal, "abort");
    throw signal.reason;
  };
  return { handler, begun: begun.promise };
}

test("a task is run with what was submitted, and its result is there", async () => {
  await using served = await openServer();
  const seen: unknown[] = [];
  await using worker = await startWorker({ url: served.url, id: "ann-1", slots: 2 }, async (task, context) => {
    seen.push([task.taskId, task.attempt, task.agentId, task.action, task.params, context.attempt, "state" in task]);
    return { sum: (task.params?.a as number) + 1 };
  });
  await submit(served, "t", { params: { a: 1 } });
  const { state, result, worker: by } = await served.drover.wait("t");
  assert.deepEqual([state, result, by, worker.id], ["done", { sum: 2 }, "ann-1", "ann-1"]);
  assert.deepEqual(seen, [["t", 1, "ann", "go", { a: 1 }, 1, false]]);
  assert.deepEqual([worker.leaseMs, worker.maxWorktrees, worker.running], [10_000, 50, 0]);
});

test("quick tasks end one after the other beside a handler that does not", async () => {
  await using served = await openServer();
  const slow = Promise.withResolvers<string>();
  const options = { url: served.url, slots: 2 };
  await using _ = await startWorker(options, ({ action }) => (action === "slow" ? slow.promise : action));
  await submit(served, "slow", { action: "slow" });
  for (let round = 0; round < 3; round++) {
    const ids = Array.from({ length: 20 }, (_, index) => `quick-${round}-${index}`);
    for (const id of ids) await submit(served, id);
    for (const id of ids) assert.equal((await within(id, served.drover.wait(id))).state, "done");
  }
  assert.equal((await served.drover.task("slow")).state, "running");
  slow.resolve("at last");
  assert.equal((await within("slow", served.drover.wait("slow"))).result, "at last");
});

test("what is urgent is the next to begin, however much waits", async () => {
  await using served = await openServer({ settings: { projects: { default: { maxPriority: "critical" } } } });
  const begun = inbox<string>("a task that begins");
  const ends = inbox<void>("leave to end");
  await using _ = await startWorker({ url: served.url, slots: 1 }, async ({ taskId }) => {
    begun.put(taskId);
    await ends.next();
  });
  for (let index = 0; index < 10; index++) await submit(served, `usual-${index}`);
  assert.equal(await begun.next(), "usual-0");
  for (const id of ["express-0", "express-1"]) await submit(served, id, { priority: "critical" });
  for (const id of ["express-0", "express-1", "usual-1"]) {
    ends.put();
    assert.equal(await begun.next(), id);
  }
  for (let index = 0; index < 10; index++) ends.put();
  await within("the last", served.drover.wait("usual-9"));
});

test("what a handler throws is a failure, a requeue or the end, as in the engine's own process", async () => {
  await using served = await openServer({ settings: quick });
  const thrown: Record<string, () => unknown> = {
    plain: () => new Error("no luck"),
    text: () => "just text",
    permanent: () => Object.assign(new Error("never"), { permanent: true }),
    requeue: () => new TaskRequeue("later"),
    limited: () => Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after-ms": "1" } }),
    overloaded: () => Object.assign(new Error("slow down"), { response: { status: 529 } }),
  };
  await using worker = await startWorker({ ...silent, url: served.url, slots: 6 }, ({ action }, { attempt }) => {
    if (["flaky", "limited", "overloaded"].includes(action) && attempt > 1) return attempt;
    throw thrown[action]?.() ?? new Error("the first time it fails");
  });
  assert.equal(worker.running, 0);
  const rows: [string, string, RegExp, number][] = [
    ["plain", "failed", /^no luck$/, 3],
    ["text", "failed", /^just text$/, 3],
    ["permanent", "failed", /^never$/, 1],
    ["requeue", "failed", /^requeued-too-often \(3 times, last: later\)$/, 3],
    ["limited", "done", /^$/, 2],
    ["overloaded", "done", /^$/, 2],
    ["flaky", "done", /^$/, 2],
  ];
  for (const [action] of rows) await submit(served, action, { action });
  for (const [action, state, error, attempt] of rows) {
    const task = await served.drover.wait(action);
    assert.deepEqual([task.state, task.attempt], [state, attempt], action);
    assert.match(task.error ?? "", error, action);
  }
});

test("a result that cannot be kept fails the task for good and says why", async () => {
  await using served = await openServer({ settings: quick });
  const results: Record<string, unknown> = {
    date: { at: new Date() },
    nan: [1, Number.NaN],
    function: () => {},
    cycle: {},
    large: "x".repeat(300_000),
    half: "\ud800",
    "half-key": { "\ud800": 1 },
  };
  (results.cycle as { self?: unknown }).self = results.cycle;
  await using _ = await startWorker({ url: served.url, slots: 6 }, ({ action }) => results[action]);
  const rows: [string, RegExp][] = [
    ["date", /result\.at must be plain JSON/],
    ["nan", /result\[1\] must be a finite number/],
    ["function", /result must be JSON, not a function/],
    ["cycle", /result\.self must be JSON without a cycle/],
    ["large", /result is 300002 bytes, and at most 262144/],
    ["half", /result must be well-formed text, not text that holds half of a character \(a lone surrogate\)/],
    [
      "half-key",
      /result must be an object whose keys are well-formed text, not .* a key that holds half of a character/,
    ],
  ];
  for (const [action] of rows) await submit(served, action, { action });
  for (const [action, error] of rows) {
    const task = await served.drover.wait(action);
    assert.deepEqual([task.state, task.attempt], ["failed", 1], action);
    assert.match(task.error ?? "", error);
  }
});

test("a handler that knows outcomes says them outright", async () => {
  await using served = await openServer({ settings: quick });
  const outcomes: Record<string, unknown> = {
    done: { outcome: "done", result: { exitCode: 0 }, usage: { inputTokens: 5 } },
    failed: { outcome: "failed", error: "exit code 1", result: { ignored: true }, permanent: true },
    cancelled: { outcome: "cancelled", error: "stopped by hand" },
    requeue: { outcome: "requeue", error: "exit code 75", retryAfterMs: 1 },
    limited: { outcome: "requeue", error: "HTTP 429", rateLimited: true },
    nonsense: { outcome: "won" },
    oddUsage: { outcome: "done", usage: { tokens: 1 } },
  };
  await using _ = await startWorkerWithOutcomes(
    { url: served.url, slots: 6 },
    ({ action, attempt }) =>
      (action === "limited" && attempt > 1 ? { outcome: "done", result: attempt } : outcomes[action]) as never,
  );
  const rows: [string, string, RegExp, unknown][] = [
    ["done", "done", /^$/, { exitCode: 0 }],
    ["failed", "failed", /^exit code 1$/, undefined],
    ["cancelled", "cancelled", /^stopped by hand$/, undefined],
    ["requeue", "failed", /^requeued-too-often \(3 times, last: exit code 75\)$/, undefined],
    ["limited", "done", /^$/, 2],
    ["nonsense", "failed", /outcome must be one of done, failed, cancelled, requeue/, undefined],
    ["oddUsage", "done", /^$/, undefined],
  ];
  for (const [action] of rows) await submit(served, action, { action });
  for (const [action, state, error, result] of rows) {
    const task = await served.drover.wait(action);
    assert.deepEqual([task.state, task.result], [state, result], action);
    assert.match(task.error ?? "", error, action);
  }
});

test("cancelling reaches the handler, and its slot is free when it has stopped", async () => {
  await using served = await openServer();
  const { handler, begun } = waiting();
  await using _ = await startWorker({ url: served.url }, (task, context) =>
    task.action === "quick" ? "quick" : handler(task, context),
  );
  await submit(served, "t");
  const signal = await begun;
  await served.drover.cancel("t");
  await submit(served, "next", { action: "quick" });
  assert.equal((await served.drover.task("t")).state, "cancelled");
  assert.equal((await served.drover.wait("next")).result, "quick");
  assert.ok(signal.reason instanceof AttemptStopped);
  assert.equal(signal.reason.why, "cancelled");
});

test("a handler that ignores its signal is given up, and its late word changes nothing", async () => {
  await using served = await openServer();
  const begun = Promise.withResolvers<void>();
  const late = Promise.withResolvers<string>();
  const warnings: string[] = [];
  const options = { url: served.url, killGraceMs: 50, onWarning: (text: string) => void warnings.push(text) };
  await using _ = await startWorker(options, async ({ action }) => {
    if (action === "quick") return "quick";
    begun.resolve();
    return late.promise;
  });
  await submit(served, "t");
  await begun.promise;
  await submit(served, "next", { action: "quick" });
  await served.drover.cancel("t");
  assert.equal((await served.drover.wait("next")).state, "done", "its slot is free");
  assert.match(warnings[0] ?? "", /task t, attempt 1, did not stop within 50 ms/);
  late.resolve("late");
  assert.equal((await served.drover.task("t")).state, "cancelled");
});

test("drain takes no more, lets what runs end, and leaves; a second call is the same", async () => {
  await using served = await openServer();
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const warnings: string[] = [];
  const worker = await startWorker({ url: served.url, onWarning: (text) => void warnings.push(text) }, async () => {
    begun.resolve();
    await go.promise;
    return "done";
  });
  await submit(served, "t");
  await begun.promise;
  assert.equal(worker.running, 1);
  const drained = Promise.all([worker.drain(), worker.drain()]);
  await submit(served, "u");
  go.resolve();
  await drained;
  await worker.closed;
  await worker.close();
  assert.equal((await served.drover.task("t")).state, "done");
  assert.equal((await served.drover.task("u")).state, "queued");
  assert.deepEqual(await served.drover.workers(), []);
  assert.deepEqual(warnings, [], "it left without trouble");
});

test("a worker that drains can still be closed", async () => {
  await using served = await openServer();
  const { handler, begun } = waiting();
  const worker = await startWorker({ url: served.url }, handler);
  await submit(served, "t");
  const signal = await begun;
  const drained = worker.drain();
  await worker.close();
  await drained;
  assert.equal((signal.reason as AttemptStopped).why, "closing");
  assert.equal((await served.drover.task("t")).state, "queued");
});

test("close tells what runs to stop, and gives it back at no cost; a result it has all the same counts", async () => {
  await using served = await openServer({ settings: { scheduler: { retry: { maxLosses: 1 } } } });
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const reasons: unknown[] = [];
  const worker = await startWorker({ url: served.url, slots: 2 }, async ({ action }, { signal }) => {
    begun[action === "finish" ? 0 : 1]?.resolve();
    await once(signal, "abort");
    reasons.push((signal.reason as AttemptStopped).why);
    if (action === "finish") return "in time";
    throw signal.reason;
  });
  await submit(served, "finish", { action: "finish" });
  await submit(served, "stop", { action: "stop" });
  await Promise.all(begun.map(({ promise }) => promise));
  await Promise.all([worker.close(), worker.close(), worker[Symbol.asyncDispose]()]);
  assert.deepEqual(reasons, ["closing", "closing"]);
  assert.equal((await served.drover.task("finish")).result, "in time");
  const { state, attempt } = await served.drover.task("stop");
  assert.deepEqual([state, attempt], ["queued", 1]);
  assert.deepEqual(await served.drover.workers(), []);
});

test("a worker that the server drains finishes and leaves by itself", async () => {
  await using served = await openServer();
  const worker = await startWorker({ ...silent, url: served.url, id: "ann" }, () => 1);
  await served.drover.remote.drain("ann");
  await worker.closed;
  assert.deepEqual(await served.drover.workers(), []);
});

test("a token the server does not know is an error at once, and later the end of the worker", async () => {
  const worker = { token: "wwwwwwwwwwwwwwwwwwww", role: "worker" };
  const settings = { server: { tokens: [worker] } };
  await using served = await openServer({ settings });
  await assert.rejects(
    startWorker({ url: served.url, token: "wrong" }, () => 1),
    { code: "unauthorized", status: 401 },
  );
  await assert.rejects(
    startWorker({ url: served.url }, () => 1),
    { code: "unauthorized" },
  );
  const { handler, begun } = waiting();
  const { token } = worker;
  const joined = await startWorker({ ...silent, url: served.url, token }, handler);
  await submit(served, "t");
  const signal = await begun;
  const other = { token: "xxxxxxxxxxxxxxxxxxxx", role: "worker" };
  served.server.change(settingsOf({ server: { tokens: [other] } }));
  await assert.rejects(joined.closed, { code: "unauthorized" });
  assert.equal((signal.reason as AttemptStopped).why, "session-lost");
  await joined.close();
});

test("a worker waits for a server that is not there yet, and can be told not to", async () => {
  const drover = await openDrover();
  const first = await startWorkerServer(drover);
  const { port, url } = first;
  await first.close();
  const warned = Promise.withResolvers<void>();
  const joining = startWorker({ url, onWarning: () => warned.resolve() }, () => "at last");
  const given = new AbortController();
  const never = startWorker({ ...silent, url, signal: given.signal }, () => 1);
  await warned.promise;
  given.abort(new Error("enough"));
  await assert.rejects(never, /enough/);
  await using _ = await startWorkerServer(drover, { port });
  await using worker = await joining;
  await drover.submit({ id: "t", agentId: "ann", action: "go" });
  assert.equal((await drover.wait("t")).result, "at last");
  await worker.close();
  await drover.close();
});

test("a worker that is given a signal closes when it fires", async () => {
  await using served = await openServer();
  const given = new AbortController();
  const worker = await startWorker({ url: served.url, signal: given.signal }, () => 1);
  given.abort();
  await worker.closed;
  assert.deepEqual(await served.drover.workers(), []);
});

test("many workers of one process share one thread, and each has its own work", async () => {
  await using served = await openServer();
  const options = (index: number): PullWorkerOptions => ({ url: served.url, capabilities: [`c${index}`] });
  const workers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => startWorker(options(index), () => `by ${index}`)),
  );
  for (const [index] of workers.entries()) await submit(served, `t${index}`, { capabilities: [`c${index}`] });
  for (const [index] of workers.entries()) {
    const { result } = await served.drover.wait(`t${index}`);
    assert.equal(result, `by ${index}`);
  }
  await Promise.all(workers.map((worker) => worker.close()));
});

test("what is wrong with the options is said by name", async () => {
  const rows: [object, RegExp][] = [
    [{ slot: 1 }, /slot is not an option; known are id, slots/],
    [{ slots: 0 }, /slots is 0/],
    [{ slots: 1001 }, /slots is 1001, and must be at most 1000/],
    [{ id: "with space" }, /id is/],
    [{ capabilities: "git" }, /capabilities/],
    [{ resources: { cpu: 1 } }, /resources\.cpu/],
    [{ killGraceMs: -1 }, /killGraceMs is -1/],
    [{ giveUpMs: "soon" }, /giveUpMs is soon/],
    [{ limit: 1.5 }, /limit is 1\.5, and must be a whole number from 0/],
    [{ limit: -1 }, /limit is -1, and/],
    [{ ahead: -1 }, /ahead is -1, and must be a whole number from 0/],
    [{ ahead: 3, slots: 2 }, /ahead is 3, and must be at most slots, which is 2/],
    [{ actions: [] }, /actions is empty, so no task would ever come; all if absent/],
    [{ types: [] }, /types is empty/],
    [{ projects: [] }, /projects is empty/],
    [{ signal: {} }, /signal must be an AbortSignal/],
    [{ onWarning: 1 }, /onWarning must be a function/],
    [{ logs: null }, /logs\.read must be a function/],
    [{ logs: { place: "p" } }, /logs\.read must be a function/],
    [{ logs: { read: () => null } }, /logs\.place is null, and must be a name of 1 to 100/],
    [{ logs: { place: "a b", read: () => null } }, /logs\.place is "a b"/],
    [{ url: "ftp://x" }, /url is "ftp:\/\/x"/],
    [{ token: "with space" }, /token must be/],
  ];
  for (const [options, error] of rows)
    await assert.rejects(
      startWorker(options as PullWorkerOptions, () => 1),
      error,
    );
  await assert.rejects(startWorker({}, undefined as never), { code: "bad_request", message: /^handler is missing: / });
  await assert.rejects(
    startWorker(null as never, () => 1),
    /options must be an object/,
  );
});
