/**
 * The feed of events over HTTP: pages, and streams that go on where they broke off.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDrover } from "../../src/engine/drover.ts";
import { createMemoryLog, type Log } from "../../src/engine/index.ts";
import type { EventJson } from "../../src/protocol/index.ts";
import { openServer } from "../kits/test-server.ts";
import { until } from "../kits/waits.ts";

type Message = { readonly id: string; readonly event: string; readonly data: EventJson };

/** Messages of a stream, one by one. */
async function* messages(response: Response): AsyncGenerator<Message> {
  let rest = "";
  for await (const chunk of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      ) as Record<string, string>;
      if (fields.id !== undefined)
        yield { id: fields.id, event: fields.event ?? "", data: JSON.parse(fields.data ?? "") as EventJson };
    }
  }
}

test("pages cover every event once, each linked to the one before", async () => {
  await using at = await openServer();
  for (let count = 0; count < 5; count++) await at.ask("submit", { body: { agentId: "ann", action: "x" } });
  const all: EventJson[] = [];
  let after: number | undefined = 0;
  while (after !== undefined) {
    const page: { json: { events: readonly EventJson[]; nextAfter?: number } } = await at.ask("events", {
      query: { after, limit: 2 },
    });
    assert.ok(page.json.events.length <= 2);
    all.push(...page.json.events);
    after = page.json.nextAfter;
  }
  assert.deepEqual(
    all.map(({ seq }) => seq),
    all.map((_, index) => index + 1),
  );
  for (const [index, { priorHash }] of all.entries())
    assert.equal(priorHash, index === 0 ? "0".repeat(64) : all[index - 1]?.postHash);
  assert.equal(all.at(-1)?.seq, at.drover.state.seq);
});

test("a stream follows what happens, and one that broke off goes on behind the last id it saw", async () => {
  await using at = await openServer();
  const controller = new AbortController();
  const headers = { accept: "text/event-stream" };
  const response = await fetch(`${at.url}/events?after=1`, { headers, signal: controller.signal });
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  const stream = messages(response);
  await at.ask("submit", { body: { id: "t", agentId: "ann", action: "x" } });
  const seen: Message[] = [];
  await until(
    "the task's event",
    () => seen.at(-1)?.event === "task-submitted",
    async () => seen.push((await stream.next()).value as Message),
  );
  assert.deepEqual(
    seen.map(({ id }) => Number(id)),
    seen.map((_, index) => index + 2),
  );
  assert.equal(seen.at(-1)?.data.task, "t");
  controller.abort();
  await stream.next().catch(() => {});
  await at.ask("cancel", { params: { id: "t" }, body: {} });
  const last = seen.at(-1)?.id ?? "";
  const again = await fetch(`${at.url}/events?after=1`, { headers: { ...headers, "last-event-id": last } });
  const next = await messages(again).next();
  assert.deepEqual(
    [(next.value as Message).id, (next.value as Message).event],
    [String(Number(last) + 1), "task-cancelled"],
  );
});

test("what is said of an event in a stream is what a page says of it", async () => {
  await using at = await openServer();
  const page = await at.ask("events", { query: { limit: 1 } });
  const response = await fetch(`${at.url}/events`, { headers: { accept: "text/event-stream" } });
  const first = await messages(response).next();
  assert.deepEqual((first.value as Message).data, page.json.events[0]);
});

test("a filter by task and by kind holds for pages and streams", async () => {
  await using at = await openServer();
  for (const id of ["a", "b", "c"]) await at.ask("submit", { body: { id, agentId: "ann", action: "x" } });
  await at.ask("cancel", { params: { id: "b" }, body: {} });
  const ofTask = await at.ask("events", { query: { task: "b" } });
  assert.deepEqual(
    ofTask.json.events.map(({ kind, task }) => [kind, task]),
    [
      ["task-submitted", "b"],
      ["task-cancelled", "b"],
    ],
  );
  const seen: string[] = [];
  let after: number | undefined = 0;
  while (after !== undefined) {
    const query = { after, limit: 2, kind: ["task-submitted", "task-cancelled"] as const };
    const page: { json: { events: readonly EventJson[]; nextAfter?: number } } = await at.ask("events", { query });
    seen.push(...page.json.events.map(({ task = "" }) => task));
    after = page.json.nextAfter;
  }
  assert.deepEqual(seen, ["a", "b", "c", "b"]);
  const response = await fetch(`${at.url}/events?task=c`, { headers: { accept: "text/event-stream" } });
  assert.equal(((await messages(response).next()).value as Message).data.task, "c");
});

test("of a log that was pruned, events are read from the first there is, and earlier ones are refused", async () => {
  await using at = await openServer({ open: { log: await prunedLog() } });
  const whole = await at.ask("events", { query: {} });
  const first = whole.json.events[0]?.seq ?? 0;
  assert.ok(first > 1);
  const headers = { accept: "text/event-stream" };
  const stream = messages(await fetch(`${at.url}/events`, { headers }));
  assert.equal(((await stream.next()).value as Message).id, String(first));
  const early = [
    await at.ask("events", { query: { after: 1 } }),
    await at.call("GET", "/events", { headers: { ...headers, "last-event-id": "1" } }),
  ];
  for (const { status, problem } of early)
    assert.deepEqual([status, problem.details?.field, /at least/.test(problem.error)], [400, "after", true]);
  const zero = await at.ask("events", { query: { after: 0 } });
  assert.equal(zero.json.events[0]?.seq, first, "0 is the beginning");
  const since = await at.ask("events", { query: { since: "2026-01-01T00:00:00Z" } });
  assert.equal(since.json.events[0]?.seq, first);
  const beyond = await at.ask("events", { query: { after: 1_000_000 } });
  assert.deepEqual([beyond.status, beyond.json], [200, { events: [] }]);
});

/** A log whose first events are gone. */
async function prunedLog(): Promise<Log> {
  const log = createMemoryLog();
  const drover = await openDrover({ log: { ...log, close: async () => {} } });
  for (let count = 0; count < 5; count++) await drover.submit({ agentId: "ann", action: "x" });
  const snapshot = await drover.snapshot();
  await log.prune(snapshot as Parameters<Log["prune"]>[0], []);
  await drover.close();
  return log;
}

test("an unknown kind is refused, with what was probably meant", async () => {
  await using at = await openServer();
  const { status, json } = await at.call("GET", "/events?kind=task-done,task-fialed");
  assert.equal(status, 400);
  const { error } = json as { error: string };
  assert.match(
    error,
    /^kind\[1\] is "task-fialed", and must be one of engine-started, .* \(did you mean task-failed\?\)/,
  );
});

test("a Last-Event-ID that is no number is 400 and named", async () => {
  await using at = await openServer();
  for (const id of ["x", "-1", "1.5", "1e3", "9".repeat(30)]) {
    const reply = await at.call("GET", "/events", { headers: { accept: "text/event-stream", "last-event-id": id } });
    assert.deepEqual([reply.status, reply.problem.details?.field], [400, "header last-event-id"], id);
  }
});

test("one reader too many may try again later, and a place is free again when one has left", async () => {
  await using at = await openServer({ server: { limits: { streamsMax: 1 } } });
  const headers = { accept: "text/event-stream" };
  const controller = new AbortController();
  const first = await fetch(`${at.url}/events`, { headers, signal: controller.signal });
  const second = await at.call("GET", "/events", { headers });
  const { code, retryable, error } = second.problem;
  assert.deepEqual([second.status, code, retryable, second.headers.get("retry-after")], [503, "overloaded", true, "1"]);
  assert.equal(error, "1 readers follow the events already; try again later");
  controller.abort();
  await first.text().catch(() => {});
  await until("room for another reader", async () => {
    const third = await fetch(`${at.url}/events`, { headers });
    await third.body?.cancel();
    return third.status === 200;
  });
});

test("a reader that hangs up leaves nothing behind", async () => {
  await using at = await openServer();
  const controllers = Array.from({ length: 20 }, () => new AbortController());
  await Promise.all(
    controllers.map(({ signal }) => fetch(`${at.url}/events`, { headers: { accept: "text/event-stream" }, signal })),
  );
  const count = async (): Promise<string> =>
    /drover_event_streams (\d+)/.exec((await at.call("GET", "/metrics")).text)?.[1] ?? "";
  assert.equal(await count(), "20");
  for (const controller of controllers) controller.abort();
  await until("the end of every stream", async () => (await count()) === "0");
});
