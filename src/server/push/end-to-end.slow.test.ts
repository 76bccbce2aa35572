import assert from "node:assert/strict";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { answering } from "../../../test/kits/loopback.ts";
import { type Drover, openDrover } from "../../engine/drover.ts";
import type { TaskView } from "../../protocol/index.ts";
import type { Clock } from "../../std/clock.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createPushDriver, type PushDriver } from "./drivers.ts";

const LIMIT = { timeout: 60_000 };
type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};
type Answer = (response: ServerResponse, seen: Seen, request: IncomingMessage) => void;
type Instance = AsyncDisposable & { endpoint: string; port: number; seen: Seen[] } & {
  kill: () => Promise<void>;
  /** Resolves when a request that was made now has been answered. */
  knock: () => Promise<void>;
};

/** A real HTTP server on loopback that knows nothing of Drover. */
async function instance(answer: Answer, port = 0): Promise<Instance> {
  const seen: Seen[] = [];
  const {
    url: endpoint,
    port: bound,
    close: kill,
  } = await answering(async (request, response) => {
    const { method = "", url = "", headers } = request;
    if (method === "GET") return void response.writeHead(404).end();
    const one = { method, url, headers, body: await text(request) };
    seen.push(one);
    answer(response, one, request);
  }, port);
  const knock = async (): Promise<void> => void (await (await fetch(`${endpoint}/knock`)).text());
  return { endpoint, port: bound, seen, kill, knock, [Symbol.asyncDispose]: kill };
}

async function service(
  config: object = {},
  world: { readonly clock?: Clock } = {},
): Promise<{ drover: Drover; driver: PushDriver } & AsyncDisposable> {
  const drover = await openDrover({ config, ...world });
  const driver = createPushDriver({ drover, version: "0.0.0", onProblem: assert.ifError, ...world });
  const close = async (): Promise<void> => {
    await driver.stop();
    await drover.close();
  };
  return { drover, driver, [Symbol.asyncDispose]: close };
}

async function ended(drover: Drover, body: Parameters<Drover["submit"]>[0]): Promise<TaskView> {
  const { taskId } = await drover.submit(body);
  return drover.wait(taskId);
}

const json = (response: ServerResponse, value: unknown): void =>
  void response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));

test(
  "seed 002: a queued action reaches the instance that owns its tab, as the action would directly",
  LIMIT,
  async () => {
    await using first = await instance((response) => json(response, { success: true, by: "first" }));
    await using second = await instance((response) => json(response, { success: true, by: "second" }));
    await using kit = await service();
    await kit.driver.join({ id: "i1", endpoint: first.endpoint, slots: 4, capabilities: ["tab:t1", "tab:t2"] });
    await kit.driver.join({ id: "i2", endpoint: `${second.endpoint}/`, slots: 4, capabilities: ["tab:t3"] });
    const params = { button: "left", kind: "type", ref: "e9", selector: "#x", tabId: "t1" };
    const task = await ended(kit.drover, { agentId: "agent-1", action: "click", tabId: "t3", ref: "e5", params });
    assert.deepEqual([task.state, task.result, task.worker], ["done", { success: true, by: "second" }, "i2"]);
    assert.deepEqual(first.seen, []);
    const { method, url, body, headers } = second.seen[0] as Seen;
    assert.deepEqual([method, url], ["POST", "/tabs/t3/action"]);
    assert.deepEqual(JSON.parse(body), { kind: "click", ref: "e5", selector: "#x", button: "left" });
    assert.equal(headers["content-type"], "application/json");
    assert.equal(headers["x-drover-task-id"], task.taskId);
    assert.equal(headers["x-drover-attempt"], "1");
    assert.equal(headers["idempotency-key"], `${task.taskId}:1`);
    const plain = await ended(kit.drover, { agentId: "agent-1", action: "list" });
    const { url: where, body: what } = (plain.worker === "i1" ? first : second).seen.at(-1) as Seen;
    assert.deepEqual([plain.state, where, what], ["done", "/action", '{"kind":"list"}']);
  },
);

test("seed 002: a browser-side failure is the task's error, and the action is not repeated", LIMIT, async () => {
  await using browser = await instance((response) => void response.writeHead(500).end('{"error":"ref e5 not found"}'));
  await using kit = await service();
  await kit.driver.join({ endpoint: browser.endpoint, capabilities: ["tab:t"] });
  const task = await ended(kit.drover, { agentId: "a", action: "click", tabId: "t", ref: "e5" });
  assert.deepEqual([task.state, task.error], ["failed", 'HTTP 500: {"error":"ref e5 not found"}']);
  assert.equal(browser.seen.length, 1);
});

test("seed 002: cancelling a running task ends its request at the instance", LIMIT, async () => {
  const asked = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<void>();
  await using browser = await instance((response) => {
    response.once("close", cut.resolve);
    asked.resolve();
  });
  await using kit = await service();
  await kit.driver.join({ endpoint: browser.endpoint });
  const { taskId } = await kit.drover.submit({ agentId: "a", action: "wait" });
  await asked.promise;
  await kit.drover.cancel(taskId);
  await cut.promise;
  assert.equal((await kit.drover.task(taskId)).state, "cancelled");
});

test("seed 002: the deadline ends a running request", LIMIT, async () => {
  const asked = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<void>();
  await using browser = await instance((response) => {
    response.once("close", cut.resolve);
    asked.resolve();
  });
  const clock = createHandClock({ at: Date.parse("2026-01-31T12:00:00Z") });
  await using kit = await service({}, { clock });
  await kit.driver.join({ endpoint: browser.endpoint });
  const { taskId } = await kit.drover.submit({ agentId: "a", action: "wait" });
  await asked.promise;
  await kit.drover.patch(taskId, { deadline: new Date(clock.now() + 200).toISOString() });
  await clock.advance(200);
  const task = await kit.drover.wait(taskId);
  await cut.promise;
  assert.deepEqual([task.state, task.error], ["failed", "deadline exceeded"]);
});

test("many at once: each task is posted once, and no more at a time than the instance has slots", LIMIT, async () => {
  const open: (() => void)[] = [];
  let most = 0;
  await using browser = await instance((response, { body }) => {
    most = Math.max(
      most,
      open.push(() => json(response, JSON.parse(body))),
    );
    // A sixth, if there were one, would have arrived by then.
    if (open.length === 5) void browser.knock().then(() => open.splice(0).map((answer) => answer()));
  });
  await using kit = await service({ scheduler: { maxPerAgentInFlight: 100, maxBatch: 200 } });
  await kit.driver.join({ endpoint: browser.endpoint, slots: 5 });
  const tasks = Array.from({ length: 100 }, (_, n) => ({ id: `t${n}`, action: "echo", params: { n } }));
  await kit.drover.submitBatch({ agentId: "a", tasks });
  const ends = await Promise.all(tasks.map(({ id }) => kit.drover.wait(id)));
  assert.deepEqual(
    ends.map(({ result }) => (result as { n: number }).n),
    tasks.map(({ params }) => params.n),
  );
  assert.equal(new Set(browser.seen.map(({ headers }) => headers["idempotency-key"])).size, 100);
  assert.deepEqual([browser.seen.length, most], [100, 5]);
});

const answers: [claim: string, answer: Answer, state: string, told: RegExp][] = [
  ["an endless body is cut off", endless, "failed", /over 262144 bytes/],
  ["a body that breaks off is a failure", (response) => breakOff(response), "failed", /broke off the connection/],
  ["no answer at all is a failure", (response) => void response.destroy(), "failed", /broke off the connection/],
  ["a redirect is not followed", (response) => void response.writeHead(307, { Location: "/x" }).end(), "failed", /307/],
  ["text is the result", (response) => void response.end("hello"), "done", /^hello$/],
];

function endless(response: ServerResponse): void {
  const more = (): void => void (response.destroyed || response.write("x".repeat(50_000), more));
  more();
}

function breakOff(response: ServerResponse): void {
  response.writeHead(200, { "Content-Length": "100" });
  response.write("half", () => response.destroy());
}

for (const [claim, answer, state, told] of answers)
  test(claim, LIMIT, async () => {
    await using browser = await instance(answer);
    await using kit = await service();
    await kit.driver.join({ endpoint: browser.endpoint, capabilities: ["tab:t"] });
    const task = await ended(kit.drover, { agentId: "a", action: "x", tabId: "t" });
    assert.equal(task.state, state);
    assert.match(String(task.error ?? task.result), told);
    assert.equal(browser.seen.length, 1);
  });

test("an instance that is killed loses its task, and does it when it is back", LIMIT, async () => {
  const asked = Promise.withResolvers<void>();
  const browser = await instance(() => asked.resolve());
  await using kit = await service({ workers: { lease: "1s" } });
  await kit.driver.join({ id: "b", endpoint: browser.endpoint });
  await kit.drover.submit({ id: "t", agentId: "a", action: "x" });
  await asked.promise;
  await browser.kill();
  for await (const { kind } of kit.drover.events({ follow: true })) if (kind === "worker-left") break;
  await using again = await instance((response) => json(response, "back"), browser.port);
  const task = await kit.drover.wait("t");
  assert.deepEqual([task.state, task.result], ["done", "back"]);
  assert.ok(Number(again.seen[0]?.headers["x-drover-attempt"]) > 1);
});
