import assert from "node:assert/strict";
import { createServer as createTcpServer } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { answering, listening } from "../../test/kits/loopback.ts";
import { type Exchange, ExchangeFailure, exchange, headerText } from "./outbound.ts";

const never = new AbortController().signal;
const LIMIT = { timeout: 60_000 };

function get(port: number, more: Partial<Parameters<Exchange>[0]> = {}): ReturnType<Exchange> {
  return exchange({ url: new URL(`http://127.0.0.1:${port}/`), method: "GET", headers: {}, signal: never, ...more });
}

async function failureOf(promise: Promise<unknown>): Promise<ExchangeFailure> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ExchangeFailure, String(error));
  return error;
}

test("a request arrives as it was given, and its answer comes back whole", LIMIT, async () => {
  const seen: unknown[] = [];
  await using server = await answering(async (request, response) => {
    const body = await text(request);
    seen.push(request.method, request.url, request.headers["x-a"], request.headers["content-length"], body);
    response.writeHead(207, { "X-B": "2" }).end("größe");
  });
  const url = new URL(`http://127.0.0.1:${server.port}/a%2Fb?c=d#e`);
  const answer = await get(0, { url, method: "POST", headers: { "X-A": "1" }, body: "ü" });
  assert.deepEqual(seen, ["POST", "/a%2Fb?c=d", "1", "2", "ü"]);
  assert.deepEqual([answer.status, answer.headers["x-b"]], [207, "2"]);
  assert.deepEqual(await answer.read(7), { bytes: Buffer.from("größe"), isWhole: true });
});

test("P23 the connection goes to the addresses that were checked, and the name stays in Host", LIMIT, async () => {
  let host: string | undefined;
  await using server = await answering((request, response) => {
    host = request.headers.host;
    response.end();
  });
  const url = new URL(`http://no-such-name.invalid:${server.port}/`);
  for (const addresses of [
    [{ address: "127.0.0.1", family: 4 }],
    [
      { address: "::1", family: 6 },
      { address: "127.0.0.1", family: 4 },
    ],
  ]) {
    (await get(0, { url, addresses })).drop();
    assert.equal(host, `no-such-name.invalid:${server.port}`);
  }
  assert.equal((await failureOf(get(0, { url, addresses: [] }))).reached, "none");
});

test("over TLS the name is asked for, not the address, and nothing is sent to a stranger", LIMIT, async () => {
  let name = "";
  const tls = createTlsServer({
    SNICallback: (servername, done) => {
      name = servername;
      done(new Error("no certificate"));
    },
  });
  tls.on("tlsClientError", () => {});
  await using server = await listening(tls);
  const url = new URL(`https://hook.example:${server.port}/`);
  const failure = await failureOf(get(0, { url, addresses: [{ address: "127.0.0.1", family: 4 }] }));
  assert.deepEqual([name, failure.reached, failure.isTaken], ["hook.example", "none", true]);
});

test("a redirect is an answer like any other", LIMIT, async () => {
  const paths: unknown[] = [];
  await using server = await answering((request, response) => {
    paths.push(request.url);
    response.writeHead(307, { Location: "/elsewhere" }).end();
  });
  const answer = await get(server.port);
  await answer.read(10);
  assert.deepEqual([answer.status, paths], [307, ["/"]]);
});

test("a refused connection has reached nobody", LIMIT, async () => {
  const server = await answering(() => {});
  const { port } = server;
  await server[Symbol.asyncDispose]();
  const failure = await failureOf(get(port));
  assert.deepEqual([failure.reached, failure.isTaken], ["none", false]);
  assert.match(failure.message, /ECONNREFUSED/);
});

test("a connection that is cut before an answer may have reached somebody", LIMIT, async () => {
  await using server = await listening(createTcpServer((socket) => socket.once("data", () => socket.destroy())));
  assert.equal((await failureOf(get(server.port))).reached, "connection");
});

test("an answer that is no HTTP may have reached somebody", LIMIT, async () => {
  await using server = await listening(createTcpServer((socket) => socket.end("220 smtp ready\r\n")));
  assert.equal((await failureOf(get(server.port))).reached, "connection");
});

test("an answer that breaks off in its body is told apart from a whole one", LIMIT, async () => {
  await using server = await answering((_request, response) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("half", () => response.destroy());
  });
  const answer = await get(server.port);
  assert.equal((await failureOf(answer.read(1000))).reached, "head");
});

test("an endless body is cut at the bound, and the connection let go", LIMIT, async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  await using server = await answering((_request, response) => {
    const more = (): void => void (response.destroyed || response.write("x".repeat(10_000), more));
    response.once("close", resolve);
    more();
  });
  const { bytes, isWhole } = await (await get(server.port)).read(25_000);
  assert.deepEqual([bytes.length, isWhole], [25_000, false]);
  await closed;
});

test("a body of exactly the bound is whole, one byte more is not", LIMIT, async () => {
  await using server = await answering((_request, response) => void response.end("x".repeat(1000)));
  assert.equal((await (await get(server.port)).read(1000)).isWhole, true);
  assert.equal((await (await get(server.port)).read(999)).isWhole, false);
});

test("the signal ends it before the connection, before the head and in the body", LIMIT, async () => {
  const asked = Promise.withResolvers<void>();
  await using server = await answering((request, response) => {
    if (request.url === "/hang") asked.resolve();
    else response.writeHead(200).write("begun");
  });
  const [before, waiting, reading] = [new AbortController(), new AbortController(), new AbortController()];
  before.abort(new Error("too late"));
  const early = await failureOf(get(server.port, { signal: before.signal }));
  assert.deepEqual([early.reached, early.message], ["none", "too late"]);

  const hanging = failureOf(get(0, { url: new URL(`http://127.0.0.1:${server.port}/hang`), signal: waiting.signal }));
  await asked.promise;
  waiting.abort(new Error("enough"));
  const late = await hanging;
  assert.deepEqual([late.reached, late.message], ["connection", "enough"]);

  const answer = await get(server.port, { signal: reading.signal });
  const body = failureOf(answer.read(1000));
  reading.abort(new Error("enough"));
  assert.equal((await body).reached, "head");
});

const names: [name: string, header: string][] = [
  ["tsk_17", "tsk_17"],
  ["sch_a/b:c,d;e=f", "sch_a/b:c,d;e=f"],
  ["100%", "100%25"],
  ["größe", "gr%C3%B6%C3%9Fe"],
  ["a\r\nX-Evil: 1", "a%0D%0AX-Evil:%201"],
  ["🐑", "%F0%9F%90%91"],
  ["\ud800", "%EF%BF%BD"],
];
for (const [name, header] of names)
  test(`a header holds ${JSON.stringify(name)} as ${header}`, () => {
    assert.equal(headerText(name), header);
    assert.equal(decodeURIComponent(header), name.toWellFormed());
  });
