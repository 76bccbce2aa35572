/**
 * Files over HTTP: who may put and read them, what is refused, and how a report that lists them is judged.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import type { FileRef, ResultReport } from "../../src/protocol/index.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { until, within } from "../kits/waits.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "worker", token: tokenOf("worker") },
  { role: "agent", token: tokenOf("ann"), agentId: "ann" },
  { role: "agent", token: tokenOf("bob"), agentId: "bob" },
  { role: "viewer", token: tokenOf("looker") },
];
const LARGEST = 4096;
const hashOf = (text: string): string => hash("sha256", text, "hex");
const refOf = (path: string, text: string): FileRef => ({ path, hash: hashOf(text), size: text.length });

let at: TestServer;
let session = "";
const admin = { token: tokenOf("admin") };
const clientOf = (name: string) => createClient({ url: at.url, token: tokenOf(name), retries: 0 });
before(async () => {
  const files = { maxFile: LARGEST, maxTask: 2 * LARGEST, maxFilesPerTask: 2 };
  at = await openServer({ settings: { server: { tokens }, files } });
  ({ session } = (await at.ask("joinWorker", { body: { id: "w", slots: 100 } }, { token: tokenOf("worker") })).json);
});
after(() => at.server.close());

let submits = 0;
/** A task of an agent that the worker runs. */
async function running(agentId = "ann", more: object = {}): Promise<string> {
  const id = `t${submits++}`;
  const reply = await at.ask("submit", { body: { id, agentId, action: "x", ...more } }, admin);
  assert.equal(reply.status, 202, reply.text);
  await until("it is assigned", () => at.drover.state.tasks.get(id as never)?.attempt != null);
  return id;
}
async function report(taskId: string, more: Partial<ResultReport>): Promise<unknown> {
  const results = [{ taskId, attempt: 1, outcome: "done" as const, ...more }];
  const { json } = await at.ask("sync", { params: { id: "w" }, body: { session, results } }, admin);
  return json.results.map(({ accepted, code }) => code ?? accepted);
}

test("a worker puts a file for its attempt, reports it, and whoever may read the task reads the file", async () => {
  const id = await running();
  const put = { task: id, attempt: 1, session };
  assert.deepEqual(await clientOf("worker").files.put("hello", put), { hash: hashOf("hello"), size: 5 });
  assert.deepEqual(await report(id, { files: [refOf("a/hello.txt", "hello")] }), [true]);
  assert.deepEqual((await at.ask("task", { params: { id } }, admin)).json.files, [refOf("a/hello.txt", "hello")]);
  for (const name of ["admin", "ann", "looker"])
    assert.equal(Buffer.from(await clientOf(name).files.get(hashOf("hello"))).toString(), "hello", name);
  await assert.rejects(clientOf("bob").files.get(hashOf("hello")), { code: "not_found" });
  await assert.rejects(clientOf("bob").files.get(hashOf("hello"), { task: id }), { code: "not_found" });
});

test("what no task lists is not there for anybody, and asking tells nothing of it", async () => {
  await at.drover.files.put("unlisted");
  for (const name of ["admin", "ann", "looker"])
    await assert.rejects(clientOf(name).files.get(hashOf("unlisted")), { code: "not_found" });
});

test("a worker's token reads what the attempt it runs needs, and nothing else", async () => {
  const id = await running();
  await clientOf("worker").files.put("needed", { task: id, attempt: 1, session });
  const large = "y".repeat(200_000);
  await report(id, { files: [refOf("f", "needed")], result: large });
  const child = await running("ann", { needs: [id] });
  const stranger = await running("bob");
  const { files } = clientOf("worker");
  const ask = { task: child, attempt: 1, session };
  assert.equal(Buffer.from(await files.get(hashOf("needed"), ask)).toString(), "needed");
  // A result that does not fit into the inputs of a task is read the same way.
  const { resultHash } = at.drover.state.tasks.get(id as never)?.end ?? {};
  assert.equal(Buffer.from(await files.get(resultHash ?? "", ask)).toString(), JSON.stringify(large));
  await assert.rejects(files.get(hashOf("needed")), { code: "bad_request" });
  await assert.rejects(files.get(hashOf("needed"), { ...ask, session: "another" }), { code: "forbidden" });
  await assert.rejects(files.get(hashOf("needed"), { ...ask, attempt: 2 }), { code: "forbidden" });
  await assert.rejects(files.get(hashOf("needed"), { ...ask, task: stranger }), { code: "not_found" });
});

test("only a worker or an admin puts files, for an attempt that runs", async () => {
  const id = await running();
  for (const name of ["ann", "looker"]) await assert.rejects(clientOf(name).files.put("x"), { code: "forbidden" });
  const { files } = clientOf("worker");
  await assert.rejects(files.put("x"), { code: "bad_request" });
  await assert.rejects(files.put("x", { task: id, attempt: 1 }), { code: "bad_request" });
  await assert.rejects(files.put("x", { task: id, attempt: 2, session }), { code: "forbidden" });
  await assert.rejects(clientOf("admin").files.put("x", { task: id, attempt: 2 }), { code: "stale_attempt" });
  await clientOf("admin").files.put("x");
});

test("what is not what its name says, too large, or no octets is refused, and nothing of it stays", async () => {
  const before = at.drover.files.totals();
  const put = async (text: string, headers: Record<string, string> = {}, one = hashOf(text)) => {
    const init = { method: "PUT", body: text, headers: { authorization: `Bearer ${admin.token}`, ...headers } };
    const reply = await fetch(`${at.url}/files/${one}`, init);
    return `${reply.status} ${((await reply.json()) as { code: string }).code}`;
  };
  const octets = { "content-type": "application/octet-stream" };
  assert.equal(await put("abc", octets, hashOf("abd")), "400 bad_request");
  assert.equal(await put("abc", octets, "../../etc/passwd"), "404 not_found");
  assert.equal(await put("abc", octets, "ABC"), "400 bad_request");
  assert.equal(await put("abc", { "content-type": "text/html" }), "415 unsupported_media_type");
  assert.equal(await put("x".repeat(LARGEST + 1), octets), "413 too_large");
  assert.deepEqual(at.drover.files.totals(), before);
});

test("one that lies about its length, or goes away in the middle, leaves nothing", async () => {
  const before = at.drover.files.totals();
  const head = (length: string): string =>
    `PUT /files/${hashOf("abc")} HTTP/1.1\r\nhost: 127.0.0.1:${at.server.port}\r\n` +
    `authorization: Bearer ${admin.token}\r\ncontent-type: application/octet-stream\r\n${length}\r\n\r\n`;
  const gone = connect(at.server.port, "127.0.0.1");
  gone.write(`${head("content-length: 1000")}half`);
  await until("a part is sent", () => gone.bytesWritten > 100);
  gone.destroy();
  const endless = connect(at.server.port, "127.0.0.1");
  const chunk = `${(1024).toString(16)}\r\n${"x".repeat(1024)}\r\n`;
  endless.write(head("transfer-encoding: chunked") + chunk.repeat(8));
  const [answer] = (await new Promise<Buffer[]>((resolve) => endless.once("data", (data) => resolve([data])))) as [
    Buffer,
  ];
  assert.match(answer.toString(), /413/);
  endless.destroy();
  assert.deepEqual(at.drover.files.totals(), before);
});

const bad: readonly { readonly name: string; readonly files: readonly FileRef[]; readonly error: RegExp }[] = [
  { name: "too many", files: ["a", "b", "c"].map((path) => refOf(path, path)), error: /maxFilesPerTask/ },
  {
    name: "too much together",
    files: [
      { ...refOf("a", "a"), size: LARGEST },
      { ...refOf("b", "b"), size: LARGEST + 1 },
    ],
    error: /maxTask/,
  },
  { name: "one path twice", files: [refOf("a", "a"), refOf("a", "b")], error: /another has that path/ },
  { name: "a file below a file", files: [refOf("a", "a"), refOf("a/b", "b")], error: /another has that path/ },
];
for (const { name, files, error } of bad)
  test(`a report with ${name} fails the task for good, by name`, async () => {
    const id = await running();
    for (const text of ["a", "b", "c"]) await at.drover.files.put(text);
    assert.deepEqual(await report(id, { files }), ["bad_files"]);
    const { json } = await at.ask("task", { params: { id } }, admin);
    assert.equal(json.state, "failed");
    assert.match(json.error ?? "", error);
    assert.equal(json.files, undefined);
  });

test("a report that lists what was not put is refused, and the attempt is not over by it", async () => {
  const id = await running();
  assert.deepEqual(await report(id, { files: [refOf("f", "never put")] }), ["files_missing"]);
  assert.equal(at.drover.state.tasks.get(id as never)?.attempt?.number, 1);
  await at.drover.files.put("never put");
  assert.deepEqual(await report(id, { files: [refOf("f", "never put")] }), [true]);
});

for (const path of ["../up", "/etc/passwd", "a/../b", "a\\b", "C:/x", "a\nb", "", "a//b", `${"x".repeat(256)}`])
  test(`the path ${JSON.stringify(path.slice(0, 20))} is refused by its field`, async () => {
    const results = [{ taskId: "any", attempt: 1, outcome: "done" as const, files: [refOf(path, "x")] }];
    const reply = await at.ask("sync", { params: { id: "w" }, body: { session, results } }, admin);
    assert.equal(reply.status, 400, reply.text);
    assert.equal(reply.problem.details?.field, "results[0].files[0].path");
  });

test("a file over a slow line arrives after the time that other requests have, and the gauges count it", async () => {
  const limits = { headersMs: 200, requestMs: 300, lookMs: 20 };
  await using slow = await openServer({ server: { limits } });
  const text = "x".repeat(100);
  const asked = (path: string, type: string): string =>
    `PUT ${path} HTTP/1.1\r\nhost: 127.0.0.1:${slow.server.port}\r\ncontent-length: 100\r\n` +
    `content-type: application/${type}\r\n\r\n`;
  /** Half of a request, and what has been answered to it. */
  function halfOf(path: string, type: string): { answer: string; socket: Socket } {
    const half = { answer: "", socket: connect(slow.server.port, "127.0.0.1") };
    half.socket.on("data", (data) => {
      half.answer += data;
    });
    half.socket.write(`${asked(path, type)}${text.slice(0, 50)}`);
    return half;
  }
  const other = halfOf("/projects/default", "json");
  const file = halfOf(`/files/${hashOf(text)}`, "octet-stream");
  await until("another request has taken too long", () => /^HTTP\/1.1 408/.test(other.answer));
  assert.equal(file.answer, "");
  file.socket.write(text.slice(50));
  await until("the file is there", () => /^HTTP\/1.1 200/.test(file.answer));
  const { text: metrics } = await slow.call("GET", "/metrics");
  assert.match(metrics, /^drover_files 1$/m);
  assert.match(metrics, /^drover_files_bytes 100$/m);
  for (const { socket } of [file, other]) socket.destroy();
});

test("a file that waits for its turn longer than a request may take is read when that comes", async () => {
  const limits = { headersMs: 200, requestMs: 300, lookMs: 20 };
  await using slow = await openServer({ server: { limits } });
  function sent(path: string, type: string, text: string): { answer: string; socket: Socket } {
    const one = { answer: "", socket: connect(slow.server.port, "127.0.0.1") };
    one.socket.on("data", (data) => {
      one.answer += data;
    });
    const head = `PUT ${path} HTTP/1.1\r\nhost: 127.0.0.1:${slow.server.port}\r\ncontent-length: 4\r\n`;
    one.socket.write(`${head}content-type: application/${type}\r\n\r\n${text}`);
    return one;
  }
  const put = (): ReturnType<typeof sent> => sent(`/files/${hashOf("text")}`, "octet-stream", "te");
  const halves = Array.from({ length: 32 }, put);
  await until("all are connected", () => halves.every(({ socket }) => socket.readyState === "open"));
  const waiting = put();
  const other = sent("/projects/default", "json", "te");
  await until("another request has taken too long", () => /^HTTP\/1.1 408/.test(other.answer));
  assert.equal(waiting.answer, "");
  for (const { socket } of [...halves, waiting]) socket.write("xt");
  await until("its turn has come", () => /^HTTP\/1.1 200/.test(waiting.answer));
  for (const { socket } of [...halves, waiting, other]) socket.destroy();
});

test("the token of an attempt puts as much as its task may list, and no more", async () => {
  const files = { maxFile: 3000, maxTask: 5000, maxFilesPerTask: 3 };
  await using small = await openServer({ settings: { server: { tokens }, files } });
  await small.ask("joinWorker", { body: { id: "w", slots: 2 } }, { token: tokenOf("worker") });
  async function putterOf(id: string): Promise<(content: string) => Promise<unknown>> {
    await small.ask("submit", { body: { id, agentId: "ann", action: "x" } }, admin);
    await until("it is assigned", () => small.drover.attemptTokens.of(id, 1) !== null);
    const token = small.drover.attemptTokens.of(id, 1) as string;
    return (content) => createClient({ url: small.url, token, retries: 0 }).files.put(content);
  }
  const many = await putterOf("many");
  for (const content of ["a", "b", "a", "c", "b"]) await many(content);
  await assert.rejects(many("d"), { code: "too_large", message: /maxFilesPerTask/ });
  const large = await putterOf("large");
  await large("x".repeat(3000));
  await assert.rejects(large("y".repeat(2001)), { code: "too_large", message: /maxTask/ });
  await large("z".repeat(2000));
});

test("readers that read nothing keep no other caller from its files", async () => {
  await using roomy = await openServer({ settings: { server: { tokens } } });
  const [stalled, wanted] = ["z".repeat(32 * 1024 * 1024), "small"];
  const joined = await roomy.ask("joinWorker", { body: { id: "w", slots: 2 } }, { token: tokenOf("worker") });
  const results: ResultReport[] = [];
  for (const [agentId, content] of [
    ["ann", stalled],
    ["bob", wanted],
  ] as const) {
    await roomy.ask("submit", { body: { id: agentId, agentId, action: "x" } }, admin);
    await roomy.drover.files.put(content, { task: agentId, attempt: 1 });
    results.push({ taskId: agentId, attempt: 1, outcome: "done", files: [refOf("f", content)] });
  }
  await until("both are assigned", () =>
    [...roomy.drover.state.tasks.values()].every(({ attempt }) => attempt !== null),
  );
  const body = { session: joined.json.session, results };
  const reported = await roomy.ask("sync", { params: { id: "w" }, body }, admin);
  assert.deepEqual(
    reported.json.results.map(({ accepted }) => accepted),
    [true, true],
  );
  const head = `GET /files/${hashOf(stalled)} HTTP/1.1\r\nhost: 127.0.0.1:${roomy.server.port}\r\n`;
  let begun = 0;
  const readers = Array.from({ length: 40 }, () => {
    const reader = connect(roomy.server.port, "127.0.0.1");
    reader.once("data", () => {
      begun++;
      reader.pause();
    });
    reader.write(`${head}authorization: Bearer ${tokenOf("ann")}\r\n\r\n`);
    return reader;
  });
  await until("some are answered", () => begun >= 8);
  const bob = createClient({ url: roomy.url, token: tokenOf("bob"), retries: 0 });
  const read = await within("another reads its file", bob.files.get(hashOf(wanted)));
  assert.equal(Buffer.from(read).toString(), wanted);
  assert.equal(begun, 8, "no others of the first have begun meanwhile");
  for (const reader of readers) reader.destroy();
});
