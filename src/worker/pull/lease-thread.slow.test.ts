/**
 * The thread that keeps leases, and a wire that loses answers: what the server did counts once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answering } from "../../../test/kits/loopback.ts";
import { type Asked, type Fault, startWorkerServer } from "../../../test/kits/worker-server.ts";
import { openDrover } from "../../engine/index.ts";
import type { ResultReport, SyncBody } from "../../protocol/index.ts";
import { startWorker } from "../index.ts";
import { openThreadLink } from "./lease-thread-client.ts";
import type { ToHandlers } from "./messages.ts";
import { createLeaseCell } from "./messages.ts";

const resultsIn = ({ body }: Asked): readonly ResultReport[] => (body as SyncBody).results ?? [];

test("answers that are lost after the server acted cost nothing: joined once, each result counts once", async () => {
  const drover = await openDrover();
  const lost = new Map<string, number>();
  /** The answers to the first join, the first three syncs with a result and the first leave are lost. */
  const fault = (asked: Asked): Fault => {
    const kind = asked.path.endsWith("/sync") ? (resultsIn(asked).length > 0 ? "result" : "poll") : asked.method;
    const times = lost.get(kind) ?? 0;
    if (kind === "poll" ? times >= 2 : times >= (kind === "result" ? 3 : 1)) return null;
    lost.set(kind, times + 1);
    return "lose-answer";
  };
  await using server = await startWorkerServer(drover, { fault });
  const begun: string[] = [];
  const worker = await startWorker({ url: server.url, onWarning: () => {} }, ({ taskId, attempt }) => {
    begun.push(`${taskId}#${attempt}`);
    return "result";
  });
  for (const id of ["a", "b", "c"]) await drover.submit({ id, agentId: "ann", action: "go" });
  for (const id of ["a", "b", "c"]) assert.equal((await drover.wait(id)).result, "result");
  await worker.drain();
  assert.deepEqual(begun, ["a#1", "b#1", "c#1"]);
  assert.deepEqual([...lost.values()].toSorted(), [1, 1, 2, 3]);
  const said = server.asked.flatMap(resultsIn).filter(({ taskId }) => taskId === "a");
  assert.ok(said.length >= 2, "it was said until it was answered");
  const ends: string[] = [];
  for await (const { kind, task } of drover.events()) if (kind === "task-done") ends.push(task ?? "");
  assert.deepEqual(ends.toSorted(), ["a", "b", "c"]);
  assert.deepEqual(await drover.workers(), []);
  await drover.close();
});

test("requests that are lost on the way are sent again", async () => {
  const drover = await openDrover();
  let count = 0;
  await using server = await startWorkerServer(drover, { fault: () => (++count % 2 === 1 ? "lose-request" : null) });
  const worker = await startWorker({ url: server.url, onWarning: () => {} }, () => "result");
  await drover.submit({ id: "t", agentId: "ann", action: "go" });
  assert.equal((await drover.wait("t")).state, "done");
  await worker.close();
  await drover.close();
});

test("progress and usage reach the server while the handler runs", async () => {
  const drover = await openDrover();
  const told = Promise.withResolvers<void>();
  const fault = ({ body }: Asked): Fault => {
    const [running] = (body as SyncBody).running ?? [];
    if (running?.progress !== undefined && running.usage !== undefined) told.resolve();
    return null;
  };
  await using server = await startWorkerServer(drover, { fault });
  const go = Promise.withResolvers<void>();
  const worker = await startWorker({ url: server.url }, async (_, { progress, usage }) => {
    progress({ step: 1 });
    usage({ inputTokens: 3 });
    progress({ step: 2 });
    await go.promise;
  });
  await drover.submit({ id: "t", agentId: "ann", action: "go" });
  await told.promise;
  go.resolve();
  assert.equal((await drover.wait("t")).state, "done");
  const used: number[] = [];
  for await (const { payload } of drover.events()) if (payload.kind === "attempt-used") used.push(payload.tokens);
  assert.deepEqual(used, [3]);
  await worker.close();
  await drover.close();
});

test("a thread that dies takes every worker with it, and says so", async () => {
  const failed = Promise.withResolvers<ToHandlers>();
  const settings = { join: { id: "ann", slots: 1 }, giveUpMs: null };
  const common = { server: {}, cell: createLeaseCell() };
  // One that is well, and one whose settings the thread falls over.
  openThreadLink({ ...common, settings, onMessage: (message) => message.type === "failed" && failed.resolve(message) });
  openThreadLink({ ...common, settings: null as never, onMessage: () => {} });
  const message = await failed.promise;
  assert.match(message.type === "failed" ? message.error.message : "", /the thread that keeps the lease is gone/);
});

test("after a thread has died the next worker gets a new one", async () => {
  const drover = await openDrover();
  await using server = await startWorkerServer(drover);
  const worker = await startWorker({ url: server.url }, () => "well");
  await drover.submit({ id: "t", agentId: "ann", action: "go" });
  assert.equal((await drover.wait("t")).result, "well");
  await worker.close();
  await drover.close();
});

/** A server that gives these tasks, one with each answer, the first as a text that is none of JSON. */
async function givingOneByOne(ids: readonly string[]) {
  const left = [...ids];
  const said: SyncBody[] = [];
  const isOver = Promise.withResolvers<void>();
  const server = await answering(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const send = (text: string): void => void response.writeHead(200, { "content-type": "application/json" }).end(text);
    if (request.url === "/workers")
      return send(
        JSON.stringify({ workerId: "w", session: "s", leaseMs: 60_000, brief: true, ahead: true, tokenKey: "k" }),
      );
    if (request.url?.includes("/sync") !== true) return send("{}");
    const body = JSON.parse(Buffer.concat(chunks).toString()) as SyncBody;
    said.push(body);
    const ended = said.flatMap(({ results = [] }) => results);
    if (ended.length >= ids.length) isOver.resolve();
    // One after the other: the next when the one before has ended.
    const id = ended.length + left.length === ids.length ? left.shift() : undefined;
    const named = id === undefined ? "" : `{"taskId":"${id}","attempt":1,"taskSeq":7}`;
    const task = id === undefined ? "" : id === ids[0] ? "{oops}" : '{"agentId":"ann","action":"go"}';
    const rest = '"cancel":[],"results":[],"leaseUntil":"","leaseMs":60000,"assignments":[]';
    return send(`{"named":[${named}],${rest},"tasks":[${task}]}`);
  });
  return { server, said, isOver: isOver.promise };
}

test("a task that cannot be read goes back, and those behind it are begun, reported and counted as ever", async () => {
  const { server, said, isOver } = await givingOneByOne(["bad", "a", "b"]);
  await using _ = server;
  const warnings: string[] = [];
  const begun: string[] = [];
  const options = { url: `http://127.0.0.1:${server.port}`, onWarning: (text: string) => void warnings.push(text) };
  const worker = await startWorker(options, ({ taskId }) => void begun.push(taskId));
  await isOver;
  await worker.close();
  assert.deepEqual(begun, ["a", "b"]);
  const ends = said.flatMap(({ results = [] }) => results.map(({ taskId, outcome }) => `${taskId} ${outcome}`));
  assert.deepEqual([...new Set(ends)], ["bad requeue", "a done", "b done"]);
  assert.deepEqual(
    said.flatMap(({ unbegun = [] }) => unbegun),
    [],
  );
  assert.match(warnings.join(), /an answer of the server cannot be read/);
});
