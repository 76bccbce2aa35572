import assert from "node:assert/strict";
import { execFile as execFileWith } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { getEventListeners, once } from "node:events";
import http from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import { until, within } from "../../test/kits/waits.ts";
import { usualFetch } from "./http-fetch.ts";
import { LeanAnswer } from "./lean-answer.ts";
import { createLeanHttp, type LeanHttp, leanText } from "./lean-http.ts";

const execFile = promisify(execFileWith);
const head = (...lines: string[]): string => `${lines.join("\r\n")}\r\n\r\n`;
const OK = "HTTP/1.1 200 OK";

const WHOLE: readonly {
  name: string;
  text: string;
  status: number;
  body: string;
  isKept?: boolean;
  end?: true;
  /** Bytes behind it. */
  more?: string;
}[] = [
  { name: "a length", text: `${head(OK, "Content-Length: 5")}hello`, status: 200, body: "hello" },
  { name: "no body", text: head(OK, "content-length: 0"), status: 200, body: "" },
  { name: "letters of several bytes", text: `${head(OK, "content-length: 6")}ä€x`, status: 200, body: "ä€x" },
  {
    name: "chunks, with more behind their sizes and at the end",
    text: `${head(OK, "Transfer-Encoding: chunked")}5\r\nhello\r\nA;more=1\r\n, 世界 x\r\n0\r\nmore: 1\r\n\r\n`,
    status: 200,
    body: "hello, 世界 x",
  },
  {
    name: "what comes before the answer",
    text: [
      head("HTTP/1.1 103 Early Hints", "link: </x>"),
      head("HTTP/1.1 100"),
      head(OK, "content-length: 1"),
      "x",
    ].join(""),
    status: 200,
    body: "x",
  },
  { name: "204", text: head("HTTP/1.1 204 No Content"), status: 204, body: "" },
  { name: "no reason", text: `${head("HTTP/1.1 503", "content-length: 2")}no`, status: 503, body: "no" },
  {
    name: "a server that closes",
    text: `${head(OK, "connection: close", "content-length: 2")}ok`,
    status: 200,
    body: "ok",
    isKept: false,
  },
  {
    name: "HTTP/1.0",
    text: `${head("HTTP/1.0 200 OK", "content-length: 2")}ok`,
    status: 200,
    body: "ok",
    isKept: false,
  },
  { name: "more", text: `${head(OK, "content-length: 2")}ok`, more: "!", status: 200, body: "ok", isKept: false },
  { name: "until the end", text: `${head(OK)}all of it`, status: 200, body: "all of it", isKept: false, end: true },
];

for (const { name, text, status, body, isKept = true, end = false, more = "" } of WHOLE)
  test(`an answer is read however it is cut: ${name}`, async () => {
    const bytes = Buffer.from(text + more);
    for (let first = 1; first <= bytes.length; first++)
      for (const second of [bytes.length, Math.min(bytes.length, first + 1), Math.min(bytes.length, first + 7)]) {
        const answer = new LeanAnswer();
        let isWhole = false;
        for (const part of [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)])
          if (part.length > 0) isWhole = answer.add(part);
        assert.equal(end ? answer.isWholeAtEnd() : isWhole, true, `cut at ${first} and ${second}`);
        const fetched = answer.fetched();
        assert.deepEqual([fetched.status, await fetched.text(), answer.keptMs > 0], [status, body, isKept]);
      }
  });

test("an answer is not whole before its last byte", () => {
  for (const { name, text, end } of WHOLE) {
    const bytes = Buffer.from(text);
    const answer = new LeanAnswer();
    for (const byte of bytes.subarray(0, -1)) assert.equal(answer.add(Buffer.of(byte)), false, name);
    assert.equal(answer.isWholeAtEnd(), end === true, name);
  }
});

test("headers are found by any spelling, and several of a name are one", () => {
  const answer = new LeanAnswer();
  answer.add(Buffer.from(head(OK, "Retry-After:  3 ", "X-A: 1", "x-a: 2", "content-length: 0")));
  const { headers } = answer.fetched();
  assert.deepEqual([headers.get("retry-after"), headers.get("X-a"), headers.get("y")], ["3", "1, 2", null]);
});

test("a connection is kept for some seconds, and less long than the server keeps it", () => {
  const keptMs = (...lines: string[]): number => {
    const answer = new LeanAnswer();
    answer.add(Buffer.from(head(OK, "content-length: 0", ...lines)));
    return answer.keptMs;
  };
  assert.deepEqual(
    [
      keptMs(),
      keptMs("keep-alive: timeout=65"),
      keptMs("Keep-Alive: max=5, timeout=3"),
      keptMs("keep-alive: timeout=1"),
    ],
    [4000, 4000, 2000, 0],
  );
});

const BROKEN: readonly [name: string, text: string, says: RegExp][] = [
  ["no HTTP", head("SSH-2.0-OpenSSH_9"), /does not begin as one/],
  ["the first line of another protocol, which then waits for a word", "220 mail ESMTP\r\n", /does not begin as one/],
  ["two letters of it", "HE", /does not begin as one/],
  ["another version", head("HTTP/2 200"), /does not begin as one/],
  ["two lengths", `${head(OK, "content-length: 2", "content-length: 3")}ok`, /its length is 2, 3/],
  ["a length below zero", head(OK, "content-length: -1"), /its length is -1/],
  ["a length and chunks", head(OK, "content-length: 1", "transfer-encoding: chunked"), /a length and comes in chunks/],
  ["packed", head(OK, "transfer-encoding: gzip, chunked"), /transfer-encoding is gzip, chunked/],
  ["a chunk without a size", `${head(OK, "transfer-encoding: chunked")}xyz\r\n`, /no size/],
  ["a chunk that is longer", `${head(OK, "transfer-encoding: chunked")}1\r\nab\r\n`, /longer than it says/],
  ["a header that is none", head(OK, "what is this"), /no header/],
  ["a blank behind a name", head(OK, "content-length : 5"), /no header/],
  ["a header on two lines", head(OK, "a: 1", " 2"), /no header/],
  ["another protocol", head("HTTP/1.1 101 Switching Protocols"), /another protocol/],
  ["an endless head", `${OK}\r\n${"a: b\r\n".repeat(20_000)}`, /head is over 65536 bytes/],
  ["endless heads before it", head("HTTP/1.1 103", "a: b").repeat(5000), /head is over 65536 bytes/],
  [
    "endless lines behind it",
    `${head(OK, "transfer-encoding: chunked")}0\r\n${"a: b\r\n".repeat(20_000)}`,
    /head is over/,
  ],
  ["an endless size", `${head(OK, "transfer-encoding: chunked")}${"0".repeat(9000)}`, /size of a chunk is over 8192/],
];
for (const [name, text, says] of BROKEN)
  test(`an answer that breaks the rules is refused: ${name}`, () => {
    assert.throws(() => new LeanAnswer().add(Buffer.from(text)), says);
  });

const SERVER = { hostname: "127.0.0.1", port: "4747" };

test("a request is one text: its length in bytes, and nothing that could end a line of its head", () => {
  const request = { method: "POST", path: "/bulk", headers: { accept: "x" }, body: "ä" };
  assert.equal(
    leanText(SERVER, request),
    "POST /bulk HTTP/1.1\r\nhost: 127.0.0.1:4747\r\nconnection: keep-alive\r\naccept: x\r\ncontent-length: 2\r\n\r\nä",
  );
  assert.match(leanText({ hostname: "::1", port: "" }, { ...request, body: undefined }) ?? "", /host: \[::1\]\r\n/);
  assert.match(leanText(SERVER, { ...request, body: undefined }) ?? "", /content-length: 0\r\n/);
  for (const value of ["a\r\nb: c", "a\nb", "ä", "\0"]) {
    assert.equal(leanText(SERVER, { ...request, headers: { accept: value } }), null, JSON.stringify(value));
    assert.equal(leanText(SERVER, { ...request, path: value }), null, JSON.stringify(value));
  }
});

/** A server whose answers the test writes, byte by byte. */
async function rawServer(onData: (socket: Socket, text: string) => void) {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {}).on("data", (bytes) => onData(socket, String(bytes)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    sockets,
    server: { hostname: "127.0.0.1", port: String(port) },
    url: `http://127.0.0.1:${port}/x`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
/** One that answers or fails in time. */
function leanHttp(sockets: Socket[] = []): LeanHttp {
  const ask = createLeanHttp((to) => {
    const socket = connect(to);
    sockets.push(socket);
    return socket;
  });
  return (server, text, signal) => within(`an answer to ${text.slice(0, 20)}`, ask(server, text, signal), 5000);
}
const never = (): AbortSignal => new AbortController().signal;
const answerOf = (body: string, ...lines: string[]): string =>
  `${head(OK, `content-length: ${body.length}`, ...lines)}${body}`;

test("a connection carries one call after the other, and another one what comes meanwhile", async () => {
  await using raw = await rawServer((socket, text) => void socket.write(answerOf(text)));
  const ask = leanHttp();
  const texts = await Promise.all(["a", "b"].map(async (text) => (await ask(raw.server, text, never())).text()));
  assert.deepEqual(texts, ["a", "b"]);
  for (const text of ["c", "d", "e"]) assert.equal(await (await ask(raw.server, text, never())).text(), text);
  assert.equal(raw.sockets.length, 2);
});

const keepsProcess = (): number => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;

test("a kept connection that is idle for long is closed, and keeps no process; with a call it is neither", async () => {
  const held = Promise.withResolvers<() => void>();
  await using raw = await rawServer((socket, text) => {
    if (text === "held") held.resolve(() => void socket.write(answerOf(text)));
    else socket.write(answerOf(text));
  });
  const [sockets, { signal }]: [Socket[], AbortController] = [[], new AbortController()];
  const ask = leanHttp(sockets);
  await ask(raw.server, "first", signal);
  const [socket] = sockets as [Socket];
  const idle = keepsProcess();
  assert.equal(socket.timeout, 4000);
  const answer = ask(raw.server, "held", signal);
  const goOn = await held.promise;
  assert.deepEqual([socket.timeout, keepsProcess() - idle, sockets.length], [0, 1, 1]);
  goOn();
  await answer;
  assert.deepEqual([socket.timeout, keepsProcess() - idle], [4000, 0]);
  assert.deepEqual(getEventListeners(signal, "abort"), [], "of the calls that are over");
});

test("of many connections that have nothing to do 256 are kept", async () => {
  const held: Socket[] = [];
  await using raw = await rawServer((socket) => void held.push(socket));
  const sockets: Socket[] = [];
  const ask = leanHttp(sockets);
  const calls = Array.from({ length: 258 }, () => ask(raw.server, "x", never()));
  await until("all are out", () => held.length === 258);
  for (const socket of held) socket.write(answerOf("y"));
  await Promise.all(calls);
  assert.equal(sockets.filter((socket) => !socket.destroyed).length, 256);
});

test("a connection that the server closed, or wants closed, is not used again", async () => {
  await using raw = await rawServer((socket, text) => {
    socket.write(answerOf(text, ...(text === "a" ? ["connection: close"] : [])));
    if (text === "b") socket.end();
  });
  const ask = leanHttp();
  for (const [index, text] of ["a", "b", "c"].entries()) {
    assert.equal(await (await ask(raw.server, text, never())).text(), text);
    if (text === "b") await within("the end of a connection", once(raw.sockets[index] as Socket, "close"));
  }
  assert.equal(raw.sockets.length, 3);
});

test("what comes unasked ends a connection, and no call", async () => {
  await using raw = await rawServer((socket, text) => void socket.write(answerOf(text)));
  const ask = leanHttp();
  await ask(raw.server, "a", never());
  const [socket] = raw.sockets as [Socket];
  socket.write(answerOf("for nobody"));
  await within("the end of the connection, before it has been idle for long", once(socket, "close"), 2000);
  assert.equal(await (await ask(raw.server, "b", never())).text(), "b");
});

test("a connection that breaks fails its call: before the answer, in its midst, and by its bytes", async () => {
  await using raw = await rawServer((socket, text) => {
    if (text === "before") socket.end();
    if (text === "amidst") socket.end(answerOf("whole").slice(0, -1));
    if (text === "reset") socket.resetAndDestroy();
    if (text === "not HTTP") socket.write(head("what?"));
  });
  const ask = leanHttp();
  for (const text of ["before", "amidst", "reset"])
    await assert.rejects(ask(raw.server, text, never()), { code: "ECONNRESET" }, text);
  await assert.rejects(ask(raw.server, "not HTTP", never()), /is not HTTP: it does not begin as one/);
});

/** More than both sides of a connection take while nobody reads. */
const HUGE = "x".repeat(20_000_000);

test("a server that has said its last word is not waited for, whatever it has not read", async () => {
  const answers = ["", answerOf("whole").slice(0, -1), `${head("HTTP/1.1 413 Too Large")}no`];
  for (const [index, answer] of answers.entries()) {
    await using raw = await rawServer((socket) => void socket.pause().end(answer));
    const asked = leanHttp()(raw.server, HUGE, never());
    if (index < 2) await assert.rejects(asked, { code: "ECONNRESET" });
    else assert.deepEqual([(await asked).status, await (await asked).text()], [413, "no"]);
  }
});

test("a refusal that the end of its connection cuts is one all the same, and what is no refusal is lost", async () => {
  for (const status of [413, 200]) {
    await using raw = await rawServer((socket) => {
      socket.pause().write(`${head(`HTTP/1.1 ${status} X`)}said`);
      socket.resetAndDestroy();
    });
    const asked = leanHttp()(raw.server, HUGE, never());
    if (status === 413) assert.equal((await asked).status, 413);
    else await assert.rejects(asked, /ECONNRESET|EPIPE/);
  }
});

test("a call does not wait behind a request that was answered before it was read", async () => {
  await using raw = await rawServer((socket, text) => {
    socket.write(answerOf("early"));
    if (text.startsWith("x")) socket.pause();
  });
  const ask = leanHttp();
  assert.equal(await (await ask(raw.server, HUGE, never())).text(), "early");
  assert.equal(await (await ask(raw.server, "next", never())).text(), "early");
  assert.equal(raw.sockets.length, 2);
});

test("a peer that is gone is looked for by the system", async () => {
  const asked: unknown[] = [];
  await using raw = await rawServer((socket) => void socket.write(answerOf("")));
  const ask = createLeanHttp((to) => {
    asked.push({ ...to, port: 0 });
    return connect(to);
  });
  await within("an answer", ask(raw.server, "x", never()));
  const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 1000 };
  assert.deepEqual(asked, [{ ...options, host: "127.0.0.1", port: 0 }]);
});

test("a server that is not there is told by its code, and a call that is given up by its reason", async () => {
  const refused = await rawServer(() => {});
  await refused[Symbol.asyncDispose]();
  const ask = leanHttp();
  await assert.rejects(ask(refused.server, "x", never()), { code: "ECONNREFUSED" });
  const given = new AbortController();
  const reason = new Error("enough");
  await using raw = await rawServer(() => given.abort(reason));
  await assert.rejects(ask(raw.server, "x", given.signal), reason);
  const [socket] = raw.sockets as [Socket];
  await within("the end of the connection", once(socket, "close"));
});

const STARTED = "http.client.request.start";

test("what is read whole goes as text, but for a strange header and where node:http is not as usual", async () => {
  const asked: string[] = [];
  await using raw = await rawServer((socket, text) => {
    asked.push(/^connection: keep-alive$/m.test(text) ? "lean" : "node:http");
    socket.write(answerOf("{}", "connection: close"));
  });
  const request = { method: "POST", headers: {}, redirect: "manual", signal: never(), body: "{}" } as const;
  const ask = async (more: object = { isWhole: true }): Promise<void> =>
    void (await (await usualFetch(raw.url, { ...request, ...more })).text());
  const strange = { isWhole: true, headers: { accept: "a\r\nb: c" } };
  await ask();
  await ask({});
  await ask({ isWhole: true, headers: { accept: "ä" } });
  await assert.rejects(ask(strange), { code: "ERR_INVALID_CHAR" });
  const { request: ownRequest, globalAgent } = http;
  const onStart = (): void => {};
  const wrapped = (...given: Parameters<typeof ownRequest>) => ownRequest(...given);
  const changes: readonly [change: () => void, back: () => void][] = [
    [() => Object.assign(http, { globalAgent: new http.Agent() }), () => Object.assign(http, { globalAgent })],
    [() => Object.assign(globalAgent, { maxSockets: 2 }), () => Object.assign(globalAgent, { maxSockets: Infinity })],
    [() => Object.assign(http, { request: wrapped }), () => Object.assign(http, { request: ownRequest })],
    [() => subscribe(STARTED, onStart), () => unsubscribe(STARTED, onStart)],
  ];
  for (const [change, back] of changes) {
    change();
    await ask().finally(back);
  }
  await ask();
  assert.deepEqual(asked, ["lean", ...new Array(6).fill("node:http"), "lean"]);
});

const PROGRAM = `
  import http from "node:http";
  const [, url, module] = process.argv;
  if (process.env.OWN_AGENT) http.globalAgent = new (class extends http.Agent {})();
  const { usualFetch } = await import(module);
  const { signal } = new AbortController();
  const request = { method: "POST", headers: {}, redirect: "manual", signal, body: "{}", isWhole: true };
  console.log(await (await usualFetch(url, request)).text());
`;

test("an agent that a program sets before its first call is used, and a kept connection keeps no process", async () => {
  await using raw = await rawServer(
    (socket, text) => void socket.write(answerOf(/^connection: keep-alive$/m.test(text) ? "lean" : "node:http")),
  );
  const module = new URL("./http-fetch.ts", import.meta.url).href;
  const run = async (env: Readonly<Record<string, string>>): Promise<string> => {
    const { stdout } = await execFile(process.execPath, ["--input-type=module", "--eval", PROGRAM, raw.url, module], {
      env: { ...process.env, ...env },
    });
    return stdout.trim();
  };
  assert.equal(await within("the end of the program", run({})), "lean");
  assert.equal(await within("the end of the program", run({ OWN_AGENT: "1" })), "node:http");
});
