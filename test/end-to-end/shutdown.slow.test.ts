/**
 * The end of a server: nothing new is begun, what runs may end, nothing that was acknowledged is lost.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDrover } from "../../src/engine/drover.ts";
import { createMemoryLog } from "../../src/log/memory/memory-log.ts";
import { startServer } from "../../src/server/start-server.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { rawSocket } from "../kits/raw-socket.ts";
import { openServer, settingsOf, type TestServer } from "../kits/test-server.ts";
import { until, within } from "../kits/waits.ts";

const task = { agentId: "ann", action: "x" };
const slow = { settings: { server: { shutdownGrace: "60s" } } };

/** A worker that runs one task, and the session it does so under. */
async function busyWorker(at: TestServer): Promise<{ id: string; session: string; taskId: string }> {
  const { taskId } = (await at.ask("submit", { body: task })).json;
  const { workerId, session } = (await at.ask("joinWorker", { body: { slots: 2 } })).json;
  const first = await at.ask("sync", { params: { id: workerId }, body: { session, n: 1, waitMs: 5000 } });
  assert.equal(first.json.assignments[0]?.taskId, taskId);
  const running = [{ taskId, attempt: 1 }];
  await at.ask("sync", { params: { id: workerId }, body: { session, n: 2, running } });
  return { id: workerId, session, taskId };
}

/** How many calls are held back now, by the server's own count. */
async function polls(at: TestServer, count: number): Promise<void> {
  const metrics = async (): Promise<string> => (await at.call("GET", "/metrics")).text;
  await until(`${count} calls that wait`, async () => (await metrics()).includes(`drover_long_polls ${count}\n`));
}

test("P6 shutting down: no new work, workers hear of it, what runs may end, the rest stays in the log", async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-shutdown-"));
  const at = await openServer({ ...slow, open: { data: directory } });
  const { id, session, taskId } = await busyWorker(at);
  const { taskId: queued } = (await at.ask("submit", { body: { ...task, capabilities: ["never"] } })).json;
  const running = [{ taskId, attempt: 1 }];
  const poll = at.ask("sync", { params: { id }, body: { session, n: 3, running, waitMs: 60_000 } });
  const wait = at.ask("wait", { params: { id: taskId }, query: { timeoutMs: 60_000 } });
  await polls(at, 2);

  const closing = at.server.close();
  const told = await poll;
  assert.deepEqual([told.status, told.json.closing, told.json.drain], [200, true, undefined]);
  const submit = await at.ask("submit", { body: task });
  assert.deepEqual([submit.status, submit.problem.code, submit.problem.retryable], [503, "closed", true]);
  assert.ok(Number(submit.headers.get("retry-after")) >= 1);
  assert.equal(submit.headers.get("connection"), "close");
  const others = [
    await at.ask("submitBatch", { body: { agentId: "ann", tasks: [{ action: "x" }] } }),
    await at.ask("joinWorker", { body: {} }),
    await at.ask("putSchedule", { params: { id: "s" }, body: { cron: "@daily", task } }),
  ];
  assert.deepEqual(
    others.map(({ status }) => status),
    [503, 503, 503],
  );
  const ready = await at.ask("ready", {});
  assert.deepEqual([ready.status, ready.problem.code], [503, "closed"]);
  assert.equal((await at.ask("health", {})).status, 200);
  assert.equal((await at.ask("task", { params: { id: taskId } })).json.state, "running");

  const [listed] = (await at.ask("workers", {})).json.workers;
  assert.equal(listed?.note, "the server it spoke to has closed");
  const said = { session, n: 4, running, brief: true, lean: true };
  const { json: heard } = await at.ask("sync", { params: { id }, body: said });
  assert.deepEqual([heard.closing, heard.assignments], [true, []]);
  assert.deepEqual([heard.named, heard.tasks], [undefined, undefined], "it names none where it gives none");
  const results = [{ taskId, attempt: 1, outcome: "done", result: 7 }] as const;
  const last = await at.ask("sync", { params: { id }, body: { session, n: 5, running: [], results } });
  assert.deepEqual([last.json.results[0]?.accepted, last.json.assignments], [true, []]);
  assert.equal((await wait).json.state, "done");
  await closing;
  await assert.rejects(at.ask("health", {}));
  assert.equal(at.server.close(), at.server.close());

  await using again = await openDrover({ data: directory });
  assert.equal((await again.task(taskId)).result, 7);
  assert.equal((await again.task(queued)).state, "queued");
  await again.close();
  await rm(directory, { recursive: true });
});

test("when the grace is over the server goes, and a worker goes on with the next one under its session", async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-shutdown-"));
  const at = await openServer({ open: { data: directory } });
  const { id, session, taskId } = await busyWorker(at);
  const wait = at.ask("wait", { params: { id: taskId }, query: { timeoutMs: 60_000 } });
  await polls(at, 1);
  await at.server.close();
  const refused = await wait;
  assert.deepEqual([refused.status, refused.problem.code], [503, "closed"]);

  const next = await openServer({ open: { data: directory } });
  assert.equal((await next.ask("task", { params: { id: taskId } })).json.state, "running");
  const results = [{ taskId, attempt: 1, outcome: "done" }] as const;
  const sync = await next.ask("sync", { params: { id }, body: { session, n: 5, running: [], results } });
  assert.deepEqual(sync.json.results, [{ taskId, attempt: 1, accepted: true }]);
  await next.server.close();
  await rm(directory, { recursive: true });
});

test("a stream ends with a comment when the server stops", async () => {
  const at = await openServer();
  const response = await fetch(`${at.url}/events`, { headers: { accept: "text/event-stream" } });
  const text = response.text();
  await at.server.close();
  assert.match(await text, /: this stream ends here; come back with Last-Event-ID\n\n$/);
});

test("a caller that was refused in the middle of its body keeps no server that closes", {
  timeout: 60_000,
}, async () => {
  // The hand clock never comes to the moment at which connections are cut.
  await using at = await openServer({ server: { clock: createHandClock({ at: 0 }) } });
  const { bodyLimit } = settingsOf().server;
  const caller = await rawSocket(at.url);
  const length = `Content-Length: ${bodyLimit + 1}`;
  const head = ["POST /tasks HTTP/1.1", "Host: localhost", "Content-Type: application/json", length, "", ""];
  caller.send(head.join("\r\n"));
  assert.match(await caller.until("bodyLimit"), /^HTTP\/1\.1 413 /);
  const closed = at.server.close();
  await until("a server that listens no more", () => !at.server.listener.servers.some(({ listening }) => listening));
  caller.send("x".repeat(bodyLimit + 1));
  await Promise.all([caller.closed, closed]);
});

test("a log that fails makes the server unready and refuses work, and it can still be closed", async () => {
  const log = createMemoryLog();
  let isBroken = false;
  const append: typeof log.append = (...given) =>
    isBroken ? Promise.reject(new Error("disk full")) : log.append(...given);
  const at = await openServer({ open: { log: { ...log, append } } });
  assert.equal((await at.ask("submit", { body: task })).status, 202);
  isBroken = true;
  const failed = await at.ask("submit", { body: task });
  assert.deepEqual([failed.status, failed.problem.code], [503, "log_failed"]);
  const ready = await at.ask("ready", {});
  assert.deepEqual([ready.status, ready.problem.code, ready.headers.get("retry-after")], [503, "log_failed", "1"]);
  assert.equal((await at.ask("health", {})).status, 200);
  assert.equal((await at.call("GET", "/metrics")).status, 200);
  await at.server.close();
});

test("a caller that hangs up leaves no poll behind", async () => {
  await using at = await openServer();
  const { taskId } = (await at.ask("submit", { body: { ...task, capabilities: ["never"] } })).json;
  const { workerId, session } = (await at.ask("joinWorker", { body: {} })).json;
  await at.ask("askPermit", { body: { gate: "g", id: "first" } });
  await at.ask("putProject", { params: { id: "default" }, body: {} });
  const controller = new AbortController();
  const { signal } = controller;
  const waits = [
    at.ask("wait", { params: { id: taskId }, query: {} }, { signal }),
    at.ask("sync", { params: { id: workerId }, body: { session, waitMs: 60_000 } }, { signal }),
    ...Array.from({ length: 12 }, () => at.ask("askPermit", { body: { gate: "g", waitMs: 60_000 } }, { signal })),
  ];
  const ended = Promise.allSettled(waits);
  await polls(at, 5);
  controller.abort();
  await ended;
  await polls(at, 0);
});

test("one wait too many is 503, and says when to come back", async () => {
  await using at = await openServer({ server: { limits: { pollsMax: 1 } } });
  const { taskId } = (await at.ask("submit", { body: task })).json;
  const first = at.ask("wait", { params: { id: taskId }, query: {} });
  await polls(at, 1);
  const second = await at.ask("wait", { params: { id: taskId }, query: {} });
  assert.deepEqual([second.status, second.problem.code, second.headers.get("retry-after")], [503, "overloaded", "1"]);
  await at.ask("cancel", { params: { id: taskId }, body: {} });
  assert.equal((await first).json.state, "cancelled");
});

test("a port that is taken is said in words", async () => {
  await using at = await openServer();
  await assert.rejects(
    openServer({ settings: { server: { port: at.server.port } } }),
    /port \d+ of 127\.0\.0\.1 is taken/,
  );
});

test("a log that cannot be closed does not leave a server that listens", async () => {
  const drover = await openDrover();
  const close = async (): Promise<void> => {
    await drover.close();
    throw new Error("the disk is gone");
  };
  const server = await startServer({ drover: { ...drover, close }, settings: settingsOf() });
  await assert.rejects(server.close(), /the disk is gone/);
  await assert.rejects(fetch(server.url), { message: "fetch failed" });
});

test("what goes wrong before the log is closed keeps neither the log open nor the port taken", async () => {
  const log = createMemoryLog();
  const drover = await openDrover({ log });
  let isClosing = false;
  const workers: typeof drover.workers = async () => {
    if (isClosing) throw new Error("the fleet is not to be read");
    return drover.workers();
  };
  const server = await startServer({ drover: { ...drover, workers }, settings: settingsOf() });
  isClosing = true;
  await assert.rejects(server.close(), /the fleet is not to be read/);
  await assert.rejects(fetch(server.url), { message: "fetch failed" });
  await assert.rejects(drover.submit(task), { code: "closed" });
});

test("in a test whose clock stands still, a caller in the middle of a request does not keep the server", async () => {
  const at = await openServer({ server: { clock: createHandClock({ at: 0 }) } });
  const caller = await rawSocket(at.url);
  // The answer shows that the server has read on to the second, of which the rest never comes.
  caller.send(`GET /healthz HTTP/1.1\r\nhost: ${new URL(at.url).host}\r\n\r\nGET /heal`);
  await caller.until("200 OK");
  await within("the end of the server", Promise.resolve(at[Symbol.asyncDispose]()));
  await caller.closed;
});
