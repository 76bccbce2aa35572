import assert from "node:assert/strict";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { answering, listening } from "../../../test/kits/loopback.ts";
import { type Exchange, exchange } from "../../http/outbound.ts";
import type { WebhookSettings } from "../../protocol/index.ts";
import { createHandClock, type HandClock } from "../../std/hand-clock.ts";
import { deliver, headersOf, type Outside, type Verdict } from "./delivery.ts";
import { verifySignature } from "./signature.ts";

const NOW = Date.parse("2026-01-31T12:00:00Z");
const LIMIT = { timeout: 60_000 };
const SETTINGS: WebhookSettings = {
  ...{ timeout: 10_000, attempts: 8, concurrency: 16, allowPrivate: true, secret: null },
};
const never = new AbortController().signal;

type Seen = { headers: IncomingHttpHeaders; body: string; method: string | undefined };
type Receiver = AsyncDisposable & { port: number; url: string; seen: Seen[]; asked: Promise<void> };

/** A receiver that keeps what it was sent and answers as it is told. */
async function receiver(answer: (response: ServerResponse, count: number) => void): Promise<Receiver> {
  const seen: Seen[] = [];
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const server = await answering(async (request, response) => {
    seen.push({ headers: request.headers, method: request.method, body: await text(request) });
    resolve();
    answer(response, seen.length);
  });
  return { ...server, url: `${server.url}/hook?key=k`, seen, asked };
}

type Kit = {
  readonly clock: HandClock;
  readonly send: (url: string, settings?: Partial<WebhookSettings>) => Promise<Verdict>;
};

function kit(more: Partial<Outside> = {}, stop: AbortSignal = never): Kit {
  const clock = createHandClock({ at: NOW });
  const resolve: Outside["resolve"] = async () => [{ address: "127.0.0.1", family: 4 }];
  const world: Outside = { clock, resolve, exchange, version: "1.2.3", ...more };
  const snapshot = { taskId: "größe/1", state: "done", callbackUrl: "x", result: { n: 1 } };
  return {
    clock,
    send: (url, settings) =>
      deliver({ snapshot, url, deliveryId: "größe/1:17" }, { ...SETTINGS, ...settings }, world, stop),
  };
}

test("the snapshot arrives as JSON, with who it is of and what happened in the headers", LIMIT, async () => {
  await using target = await receiver((response) => void response.end("thanks"));
  assert.deepEqual(await kit().send(target.url), { ok: true, status: 200 });
  const [{ headers, method, body } = { headers: {}, method: "", body: "" }] = target.seen;
  assert.deepEqual(JSON.parse(body), { taskId: "größe/1", state: "done", callbackUrl: "x", result: { n: 1 } });
  assert.equal(method, "POST");
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["user-agent"], "drover/1.2.3");
  assert.equal(headers["x-drover-event"], "task.done");
  assert.equal(decodeURIComponent(String(headers["x-drover-task-id"])), "größe/1");
  assert.equal(decodeURIComponent(String(headers["x-drover-delivery"])), "größe/1:17");
  assert.equal(headers["x-drover-signature"], undefined);
});

test("with a secret it is signed over what was sent", LIMIT, async () => {
  await using target = await receiver((response) => void response.end());
  await kit().send(target.url, { secret: "s3cret" });
  const body = target.seen[0]?.body ?? "";
  const header = String(target.seen[0]?.headers["x-drover-signature"]);
  assert.ok(verifySignature({ secret: "s3cret", header, body, now: NOW }));
  assert.ok(!verifySignature({ secret: "other", header, body, now: NOW }));
});

const statuses: [status: number, headers: Record<string, string>, verdict: Verdict][] = [
  [200, {}, { ok: true, status: 200 }],
  [202, {}, { ok: true, status: 202 }],
  [204, {}, { ok: true, status: 204 }],
  [299, {}, { ok: true, status: 299 }],
  [300, {}, { ok: false, status: 300, reason: "HTTP 300; redirects are not followed" }],
  [302, { Location: "/a" }, { ok: false, status: 302, reason: "HTTP 302; redirects are not followed" }],
  [308, { Location: "/a" }, { ok: false, status: 308, reason: "HTTP 308; redirects are not followed" }],
  [400, {}, { ok: false, status: 400, reason: "HTTP 400" }],
  [410, {}, { ok: false, status: 410, reason: "HTTP 410", isFinal: true }],
  [429, { "Retry-After": "7" }, { ok: false, status: 429, reason: "HTTP 429", retryAfterMs: 7000 }],
  [500, {}, { ok: false, status: 500, reason: "HTTP 500" }],
  [
    ...([503, { "Retry-After": "Sat, 31 Jan 2026 12:01:00 GMT" }] as const),
    { ok: false, status: 503, reason: "HTTP 503", retryAfterMs: 60_000 },
  ],
];

for (const [status, headers, verdict] of statuses)
  test(`${status} ${JSON.stringify(headers)}: ${JSON.stringify(verdict)}`, LIMIT, async () => {
    await using target = await receiver((response) => void response.writeHead(status, headers).end());
    assert.deepEqual(await kit().send(target.url), verdict);
    assert.equal(target.seen.length, 1);
  });

test("a receiver that hangs is given up when its time is over, and not before", LIMIT, async () => {
  await using target = await receiver(() => {});
  const { send, clock } = kit();
  let isOver = false;
  const sent = send(target.url, { timeout: 10_000 }).finally(() => {
    isOver = true;
  });
  await target.asked;
  await clock.advance(9999);
  assert.equal(isOver, false);
  await clock.advance(1);
  assert.deepEqual(await sent, { ok: false, reason: "no answer in 10000 ms" });
});

test("a receiver that says 200 and then hangs has received it, and holds nothing beyond the time", LIMIT, async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await using target = await receiver((response) => {
    response.once("close", resolve);
    response.writeHead(200).write("one moment", () => begun.resolve());
  });
  const { send, clock } = kit({
    exchange: async (request) => {
      const answer = await exchange(request);
      begun.promise.then(() => clock.advance(10_000));
      return answer;
    },
  });
  assert.deepEqual(await send(target.url), { ok: true, status: 200 });
  await closed;
});

test("an endless answer is cut off", LIMIT, async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  await using target = await receiver((response) => {
    const more = (): void => void (response.destroyed || response.write("x".repeat(10_000), more));
    response.once("close", resolve);
    more();
  });
  assert.deepEqual(await kit().send(target.url), { ok: true, status: 200 });
  await closed;
});

test("a connection that is cut is a failure", LIMIT, async () => {
  await using target = await listening(createTcpServer((socket) => socket.once("data", () => socket.destroy())));
  const verdict = await kit().send(`http://127.0.0.1:${target.port}/`);
  assert.ok(!verdict.ok && verdict.status === undefined && verdict.isFinal === undefined, JSON.stringify(verdict));
});

test("a refused connection is a failure", LIMIT, async () => {
  const target = await listening(createTcpServer());
  await target[Symbol.asyncDispose]();
  const verdict = await kit().send(`http://127.0.0.1:${target.port}/`);
  assert.match(verdict.ok ? "" : verdict.reason, /ECONNREFUSED/);
});

test("a try that is over leaves no timer behind", LIMIT, async () => {
  await using target = await receiver((response) => void response.end());
  const clock = createHandClock({ at: NOW });
  let timers = 0;
  const counting: Outside["clock"] = {
    ...clock,
    ringAt: (...given) => {
      timers++;
      const cancel = clock.ringAt(...given);
      return () => {
        timers--;
        cancel();
      };
    },
  };
  await kit({ clock: counting }).send(target.url);
  assert.equal(timers, 0);
});

test("stopping cuts a try off", LIMIT, async () => {
  await using target = await receiver(() => {});
  const stop = new AbortController();
  const sent = kit({}, stop.signal).send(target.url);
  await target.asked;
  stop.abort(new Error("the server stops"));
  assert.deepEqual(await sent, { ok: false, reason: "the server stops" });
});

test("P23 an address that is not public is refused at delivery too, without a connection", LIMIT, async () => {
  await using target = await receiver((response) => void response.end());
  for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"]) {
    const verdict = await kit().send(`http://${host}:${target.port}/`, { allowPrivate: false });
    assert.ok(!verdict.ok && verdict.isFinal === true, host);
    assert.match(verdict.reason, /must be a public address, not a loopback one/);
  }
  assert.equal(target.seen.length, 0);
});

const resolved: [claim: string, addresses: string[], reason: string][] = [
  ["a name that leads to loopback", ["127.0.0.1"], "its name leads to a loopback address"],
  ["one bad address among good ones", ["93.184.216.34", "10.0.0.1"], "its name leads to a private address"],
  ["the metadata service of a cloud", ["169.254.169.254"], "its name leads to a link-local address"],
  ["a mapped spelling", ["::ffff:7f00:1"], "its name leads to a loopback address"],
  ["an address with a zone", ["fe80::1%eth0"], "its name leads to a link-local address"],
];

for (const [claim, addresses, reason] of resolved)
  test(`P23 ${claim} gets no connection, and is asked again later`, async () => {
    const calls: unknown[] = [];
    const { send } = kit({
      resolve: async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      exchange: async (request) => {
        calls.push(request);
        throw new Error("must not be called");
      },
    });
    assert.deepEqual(await send("https://hook.example/", { allowPrivate: false }), { ok: false, reason });
    assert.deepEqual(calls, []);
  });

test("P23 a name that leads elsewhere when it is asked again (rebinding) is not asked again", LIMIT, async () => {
  await using inside = await receiver((response) => void response.end());
  const answers = [[{ address: "93.184.216.34", family: 4 }], [{ address: "127.0.0.1", family: 4 }]];
  let asked = 0;
  const pinned: unknown[] = [];
  const peek: Exchange = async (request) => {
    pinned.push(request.addresses);
    return { status: 200, headers: {}, read: async () => ({ bytes: Buffer.alloc(0), isWhole: true }), drop: () => {} };
  };
  const { send } = kit({ resolve: async () => answers[asked++] ?? [], exchange: peek });
  await send(`http://rebind.example:${inside.port}/`, { allowPrivate: false });
  assert.deepEqual([asked, pinned], [1, [answers[0]]]);
  assert.equal(inside.seen.length, 0);
});

test("a name is resolved and reached where that is allowed", LIMIT, async () => {
  await using target = await receiver((response) => void response.end());
  assert.deepEqual(await kit().send(`http://hook.example:${target.port}/`), { ok: true, status: 200 });
  assert.equal(target.seen[0]?.headers.host, `hook.example:${target.port}`);
});

test("a resolver that fails is a failure, and one that hangs is given up in time", async () => {
  const failing = kit({
    resolve: async () => {
      throw new Error("ENOTFOUND");
    },
  });
  assert.deepEqual(await failing.send("http://hook.example/"), { ok: false, reason: "ENOTFOUND" });
  const hanging = kit({ resolve: () => new Promise(() => {}) });
  const sent = hanging.send("http://hook.example/");
  await hanging.clock.advance(10_000);
  assert.deepEqual(await sent, { ok: false, reason: "no answer in 10000 ms" });
});

test("a name without any address is a failure", async () => {
  const verdict = await kit({ resolve: async () => [] }).send("http://hook.example/");
  assert.deepEqual(verdict, { ok: false, reason: "the name has no address" });
});

test("no header can be broken by a task's id", () => {
  const snapshot = { taskId: "a\r\nX-Evil: 1", state: "failed" };
  const headers = headersOf({ snapshot, url: "", deliveryId: `${snapshot.taskId}:3` }, "", {
    ...{ secret: null, version: "1", now: 0 },
  });
  for (const value of Object.values(headers)) assert.match(value, /^[\x20-\x7e]+$/);
});
