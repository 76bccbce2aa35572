/**
 * Connections that are slow, half open, greedy or not HTTP at all: each ends within its limit, and nobody else notices.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import { connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { rawSocket } from "../kits/raw-socket.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { within } from "../kits/waits.ts";

/** A process that others keep from running for a moment must not find its own requests too slow. */
const limits = {
  ...{ headersMs: 2000, requestMs: 3000, keepAliveMs: 300, silenceMs: 2000, lookMs: 50 },
  ...{ connectionsMax: 300, headerBytesMax: 4096, requestsPerConnectionMax: 3 },
};
let at: TestServer;
before(async () => {
  at = await openServer({ server: { limits } });
});
after(() => at.server.close());

const nextConnection = ({ listener }: TestServer["server"]): Promise<unknown[]> =>
  once(listener.servers[0] as Server, "connection");
const isServing = async (): Promise<boolean> => (await at.ask("health", {})).status === 200;
const head = (more = ""): string =>
  `POST /tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}`;

const endless: [name: string, text: string, answer: RegExp][] = [
  ["says nothing at all", "", /^$|408/],
  [
    "begins a head and never ends it",
    "POST /tasks HTTP/1.1\r\nHost: local",
    /^HTTP\/1\.1 408 .*"the request took too long/s,
  ],
  ["sends a head line by line", head("X-A: b\r\n"), /^HTTP\/1\.1 408/],
  ["promises a body and never sends it", head("Content-Length: 100\r\n\r\n"), /^HTTP\/1\.1 408/],
  ["sends half a body", head('Content-Length: 100\r\n\r\n{"agentId"'), /^HTTP\/1\.1 408/],
  ["never ends its chunks", head("Transfer-Encoding: chunked\r\n\r\n5\r\n{    "), /^HTTP\/1\.1 408/],
];
describe("a connection that", { concurrency: true }, () => {
  for (const [name, text, answer] of endless)
    test(`${name} is closed in time, and others are served meanwhile`, async () => {
      const { send, closed } = await rawSocket(at.url);
      send(text);
      assert.ok(await isServing());
      assert.match(await closed, answer);
    });
});

test("a connection that is idle after its answer is closed, and so is one that has asked often enough", async () => {
  const idle = await rawSocket(at.url);
  idle.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  assert.match(await idle.closed, /^HTTP\/1\.1 200/);
  const greedy = await rawSocket(at.url);
  for (let count = 0; count < 3; count++) greedy.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const text = await greedy.closed;
  assert.equal(text.split("HTTP/1.1 200").length - 1, 3);
  assert.match(text, /connection: close/i);
});

const broken: [name: string, text: string | Uint8Array, answer: RegExp][] = [
  ["not HTTP", "\x16\x03\x01\x02\x00\x01", /^HTTP\/1\.1 400 .*"code":"bad_request"/s],
  ["a line that is not HTTP", "hello there\r\n\r\n", /^HTTP\/1\.1 400 .*"this is not HTTP\/1\.1"/s],
  ...["FOO", "get", "CONNECT"].map((method): [string, string, RegExp] => [
    `the method ${method}`,
    `${method} ${method === "CONNECT" ? "example.com:443" : "/tasks"} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    new RegExp(
      `^HTTP/1\\.1 405 .*nosniff.*: close.*allow: DELETE, .*"${method} is no method .* takes; it takes D`,
      "s",
    ),
  ]),
  ...["PROPFIND", "OPTIONS", "QUERY"].map((method): [string, string, RegExp] => [
    `${method}, which is a method of HTTP,`,
    `${method} /tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    new RegExp(`^HTTP/1\\.1 405 .*allow: POST, GET, HEAD.*"/tasks takes POST, GET, HEAD, not ${method}"`, "s"),
  ]),
  [
    "a head that is too long",
    head(`X-A: ${"b".repeat(5000)}\r\n\r\n`),
    /^HTTP\/1\.1 431 .*"the headers are too long"/s,
  ],
  ["two lengths at once", head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), /^HTTP\/1\.1 400/],
  ["two different lengths", head("Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345"), /^HTTP\/1\.1 400/],
  ["a length that is none", head("Content-Length: five\r\n\r\n"), /^HTTP\/1\.1 400/],
  ["no Host", "GET /healthz HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 .*by the header Host.*"code":"bad_request"/s],
  ["no Host, where nothing is,", "GET /nope HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 .*"code":"bad_request"/s],
  ["HTTP/1.0 without a Host", "GET /healthz HTTP/1.0\r\n\r\n", /^HTTP\/1\.1 400 .*"code":"bad_request"/s],
  ...["/healthz", "/", "/nope"].map((path): [string, string, RegExp] => [
    `an Expect that nobody knows, at ${path},`,
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nExpect: 200-ok\r\n\r\n`,
    /^HTTP\/1\.1 400 .*"the header expect may only be 100-continue","code":"bad_request"/s,
  ]),
  ...["gzip, chunked", "gzip\r\nTransfer-Encoding: chunked"].map((coding): [string, string, RegExp] => [
    `a body in the transfer coding ${JSON.stringify(coding)}`,
    head(`Content-Type: application/json\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`),
    /^HTTP\/1\.1 400 .*"the header transfer-encoding may only be chunked","code":"bad_request"/s,
  ]),
  [
    "a target of another server",
    "GET http://evil.example/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    /403.*this server is not called evil\.example/s,
  ],
  [
    "a second Host",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nhOST: evil.example\r\nConnection: close\r\n\r\n",
    /^HTTP\/1\.1 400 .*"the header host is there 2 times; a request has one"/s,
  ],
  [
    "the same Host twice, on a page,",
    "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    /^HTTP\/1\.1 400/,
  ],
  [
    "a second Authorization, where nothing is,",
    "GET /nope HTTP/1.1\r\nHost: localhost\r\nAuthorization: a\r\nAuthorization: b\r\nConnection: close\r\n\r\n",
    /^HTTP\/1\.1 400 .*"the header authorization is there 2 times/s,
  ],
  ["a foreign Host", "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", /^HTTP\/1\.1 403/],
  [
    "an absolute URL to elsewhere",
    "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    /403/,
  ],
];
describe("what is broken", { concurrency: true }, () => {
  for (const [name, text, answer] of broken)
    test(`${name} is refused in words and the connection ends`, async () => {
      const { send, closed } = await rawSocket(at.url);
      send(text);
      assert.match(await closed, answer);
      assert.ok(await isServing());
    });
});

for (const protocol of ["websocket", "h2c"])
  test(`a request to go on as ${protocol} is answered as if it had not asked`, async () => {
    const { send, closed } = await rawSocket(at.url);
    send(`GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`);
    assert.match(await closed, /^HTTP\/1\.1 200 .*"status":"ok"/s);
  });

const tunnel = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";
test("CONNECT with the first bytes of its tunnel is refused in words", async () => {
  const { send, closed } = await rawSocket(at.url);
  send(`${tunnel}${"x".repeat(20_000)}`);
  assert.match(await closed, /^HTTP\/1\.1 405 .*"code":"method_not_allowed"/s);
});

test("CONNECT from a caller that goes on sending is read for a moment only", async () => {
  const socket = connect({ port: at.server.port, host: "127.0.0.1", allowHalfOpen: true });
  const accepted = nextConnection(at.server);
  socket.on("error", () => {});
  const piece = Buffer.alloc(64 * 1024);
  const pour = (error?: Error | null): unknown => error ?? socket.write(piece, pour);
  socket.write(tunnel, pour);
  const [theirs] = (await accepted) as [Socket];
  await once(theirs, "close");
  socket.destroy();
  assert.ok(theirs.bytesRead < 1_000_000, `it read ${theirs.bytesRead} bytes`);
});

test("CONNECT behind a request that still waits for its answer is not taken for that answer", async () => {
  await using waiting = await openServer();
  await waiting.ask("submit", { body: { agentId: "ann", action: "x", id: "t" } });
  const { send, closed } = await rawSocket(waiting.url);
  send(`GET /tasks/t/wait HTTP/1.1\r\nHost: localhost\r\n\r\n${tunnel}`);
  assert.equal(await closed, "");
});

/** Says something, takes nothing of what comes back and never hangs up; resolves when the server has. */
async function sayAndSleep({ server, url }: TestServer, text: string): Promise<void> {
  const accepted = nextConnection(server);
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.write(text);
  const [theirs] = (await accepted) as [Socket];
  await once(theirs, "close");
  socket.destroy();
}

test("a caller that takes nothing of what it is sent is cut off", async () => {
  const more = { ...limits, keepAliveMs: 60_000, silenceMs: 300, heartbeatMs: 60_000, stallMs: 60_000 };
  await using large = await openServer({ server: { limits: { ...more, requestsPerConnectionMax: 100 } } });
  const body = { agentId: "ann", action: "x", payload: "x".repeat(1_000_000) };
  for (let count = 0; count < 2; count++) assert.equal((await large.ask("submit", { body })).status, 202);
  await sayAndSleep(large, "GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20));
  await sayAndSleep(large, "GET /events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
  await sayAndSleep(large, "\x16\x03\x01\x02\x00\x01");
  await sayAndSleep(large, tunnel);
});

const page = "GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n";
test("when answers that nobody takes are too much together, one is cut off, and no more than that", async () => {
  const more = { ...limits, keepAliveMs: 60_000, silenceMs: 60_000, requestsPerConnectionMax: 100 };
  await using large = await openServer({ server: { limits: { ...more, unreadBytesMax: 1_500_000 } } });
  const body = { agentId: "ann", action: "x", payload: "x".repeat(1_000_000) };
  for (let count = 0; count < 2; count++) assert.equal((await large.ask("submit", { body })).status, 202);
  const theirs: Socket[] = [];
  const sleepers: Awaited<ReturnType<typeof rawSocket>>[] = [];
  for (let count = 0; count < 3; count++) {
    const accepted = nextConnection(large.server);
    sleepers.push(await rawSocket(large.url));
    theirs.push(...((await accepted) as [Socket]));
  }
  const cut = Promise.race(theirs.map((socket) => once(socket, "close")));
  for (const { socket, send } of sleepers) {
    socket.pause();
    send(page.repeat(20));
  }
  await cut;
  assert.equal(theirs.filter(({ destroyed }) => destroyed).length, 1);
  for (const { socket } of sleepers) socket.destroy();
});

/** Resolves when Node has handed over so many further requests. */
function handedOver({ server: { listener } }: TestServer, count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    listener.servers[0]?.on("request", () => --left === 0 && resolve());
  });
}

test("a body that waits for 100 Continue is asked for", async () => {
  await using patient = await openServer();
  const { send, until, socket } = await rawSocket(patient.url);
  const body = JSON.stringify({ agentId: "ann", action: "x" });
  send(head(`Expect: 100-Continue\r\nContent-Length: ${body.length}\r\n\r\n`));
  await until("100 Continue");
  send(body);
  await until("202 Accepted");
  socket.destroy();
});

describe("requests that are sent before the answers are read", () => {
  test("are begun one after the other, and answered in order", async () => {
    await using patient = await openServer();
    await patient.ask("submit", { body: { agentId: "ann", action: "x", id: "t" } });
    const { send, until, socket } = await rawSocket(patient.url);
    const read = handedOver(patient, 3);
    const body = JSON.stringify({ agentId: "ann", action: "x", id: "second" });
    const submit = `${head(`Content-Length: ${body.length}\r\n\r\n`)}${body}`;
    send(
      `GET /tasks/t/wait HTTP/1.1\r\nHost: localhost\r\n\r\n${submit}GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    await read;
    assert.equal((await patient.ask("tasks", { query: {} })).json.count, 1);
    await patient.ask("cancel", { params: { id: "t" }, body: {} });
    const text = await until('"status":"ok"');
    assert.deepEqual(
      [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ["200", "202", "200"],
    );
    assert.match(text, /"state":"cancelled".*"taskId":"second".*"status":"ok"/s);
    socket.destroy();
  });

  const wait = "GET /tasks/t/wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  test("are refused where one connection has too many, behind the answers to those before", async () => {
    await using server = await openServer();
    await server.ask("submit", { body: { agentId: "ann", action: "x", id: "t" } });
    const many = await rawSocket(server.url);
    const read = handedOver(server, 1001);
    many.send(wait + health.repeat(1000));
    await read;
    await server.ask("cancel", { params: { id: "t" }, body: {} });
    const text = await many.closed;
    assert.equal(text.split("HTTP/1.1 200").length - 1, 101);
    assert.match(text, /HTTP\/1\.1 503 .*connection: close\r\n.*"100 requests of this [^}]*"code":"overloaded".*\}$/s);
    assert.equal(text.split("HTTP/1.1 ").length - 1, 102);
  });

  test("of a connection that was refused are given up first when all are too many", async () => {
    const more = { ...limits, pipelinedMax: 5, pipelinedInAllMax: 7, requestsPerConnectionMax: 100 };
    await using server = await openServer({ server: { limits: more } });
    await server.ask("submit", { body: { agentId: "ann", action: "x", id: "t" } });
    const many = await rawSocket(server.url);
    const read = handedOver(server, 7);
    many.send(wait + health.repeat(6));
    await read;
    const some = await rawSocket(server.url);
    some.send(wait + health.repeat(5));
    assert.equal(await many.closed, "");
    await server.ask("cancel", { params: { id: "t" }, body: {} });
    await some.until("HTTP/1.1 200", 6);
    some.socket.destroy();
  });

  test("are not more than their limit of all connections", async () => {
    const more = { ...limits, pipelinedMax: 5, pipelinedInAllMax: 7, requestsPerConnectionMax: 100 };
    await using server = await openServer({ server: { limits: more } });
    await server.ask("submit", { body: { agentId: "ann", action: "x", id: "t" } });
    const some = await rawSocket(server.url);
    const read = handedOver(server, 6);
    some.send(wait + health.repeat(5));
    await read;
    const over = await rawSocket(server.url);
    over.send(wait + health.repeat(3));
    assert.equal(await over.closed, "");
    const room = await rawSocket(server.url);
    const last = handedOver(server, 3);
    room.send(wait + health.repeat(2));
    await last;
    await server.ask("cancel", { params: { id: "t" }, body: {} });
    for (const [{ until, socket }, count] of [
      [some, 6],
      [room, 3],
    ] as const) {
      await until("HTTP/1.1 200", count);
      socket.destroy();
    }
  });
});

test("when unfinished bodies are too much together, the one that began first is told so and let go", async () => {
  await using small = await openServer({ server: { limits: { ...limits, bodyBytesMax: 1000 } } });
  const begin = head(`Content-Length: 2000\r\n\r\n{"agentId":"${"a".repeat(600)}`);
  const first = await rawSocket(small.url);
  const begun = handedOver(small, 1);
  first.send(begin);
  await begun;
  const second = await rawSocket(small.url);
  second.send(begin);
  assert.match(await first.until("bodyBytesMax"), /^HTTP\/1.1 503 .*"code":"overloaded"/s);
  first.socket.destroy();
  const body = { agentId: "ann", action: "x", params: { text: "x".repeat(5000) } };
  assert.equal((await small.ask("submit", { body })).status, 202);
  second.socket.destroy();
});

test("whoever hangs up in the middle of a body leaves nothing behind", async () => {
  for (let count = 0; count < 20; count++) {
    const { socket, send } = await rawSocket(at.url);
    send(head('Content-Length: 1000\r\n\r\n{"agentId":"ann"'));
    socket.resetAndDestroy();
  }
  assert.ok(await isServing());
  assert.equal((await at.ask("tasks", { query: {} })).json.count, 0);
});

test("half-open connections up to the limit do not stop anybody, and one over it is let go at once", async () => {
  await using full = await openServer({
    server: { limits: { ...limits, connectionsMax: 21, headersMs: 60_000, requestMs: 60_000, keepAliveMs: 60_000 } },
  });
  const slow = await Promise.all(Array.from({ length: 20 }, () => rawSocket(full.url)));
  for (const { send } of slow) send("POST /tasks HTTP/1.1\r\n");
  const one = await rawSocket(full.url);
  one.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await one.until("200 OK");
  const over = await rawSocket(full.url);
  assert.equal(await over.closed, "");
  for (const { socket } of slow) socket.destroy();
  one.socket.destroy();
});

test("a body that is sent though it was refused does not become the next request", async () => {
  await using patient = await openServer();
  const { send, until, socket } = await rawSocket(patient.url);
  const inner = "POST /tasks/cancel HTTP/1.1\r\nHost: localhost\r\n\r\n";
  send(`POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`);
  await until("404 Not Found");
  send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const text = await until("200 OK");
  assert.equal(text.split("HTTP/1.1 ").length - 1, 2);
  socket.destroy();
  await once(socket, "close");
});

for (const length of ["Content-Length: 90000000000", "Transfer-Encoding: chunked"])
  test(`whoever is refused and goes on sending is read for a moment only (${length})`, async () => {
    const settings = { server: { tokens: [{ role: "admin", token: "token-of-admin-0123456789" }] } };
    await using patient = await openServer({ settings, server: { limits: { requestMs: 3_600_000 } } });
    const { socket, closed } = await rawSocket(patient.url);
    const piece = `10000\r\n${"x".repeat(65_536)}\r\n`;
    const pour = (error?: Error | null): unknown => error ?? (socket.destroyed || socket.write(piece, pour));
    socket.write(head(`${length}\r\n\r\n`), pour);
    assert.match(await within("the end of the connection", closed), /^HTTP\/1\.1 401 /);
  });

test("whoever is refused with a body that is not long may use the connection again", async () => {
  await using patient = await openServer();
  const { send, until, socket } = await rawSocket(patient.url);
  send("POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  await until("404 Not Found");
  send("x".repeat(1_000_000));
  send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until("200 OK");
  socket.destroy();
});
