/**
 * Servers over nodes of one cluster: any address works, whoever leads.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import { openDrover } from "../../src/engine/index.ts";
import { expireLead } from "../../src/log/journal/memory-journal.ts";
import { startServer } from "../../src/server/start-server.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { drover } from "../kits/cli/canned-server.ts";
import { type NodeServer, serveCluster } from "../kits/cluster-servers.ts";
import { rawSocket, statusUnder } from "../kits/raw-socket.ts";
import { startProxy } from "../kits/tcp-proxy.ts";
import { clientOf, settingsOf } from "../kits/test-server.ts";
import { isPending, until, within } from "../kits/waits.ts";

const task = (id: string | undefined, more: object = {}) => ({
  agentId: "ann",
  action: "build",
  ...(id === undefined ? {} : { id }),
  ...more,
});
const hasTask = ({ node }: NodeServer): boolean => node.drover.state.tasks.size > 0;
/** The address of a server that has ended. */
async function startServerNowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
const statusAs = (host: string, { url }: NodeServer): Promise<number> => statusUnder(`${url}/tasks`, { host });
const seqOf = ({ headers }: { headers: Headers }): number => Number(headers.get("x-drover-seq"));

test("the pulse of a node tells its role, and that it is cut off while nothing else happens", async (context) => {
  const { following, clock } = await serveCluster(context, ["a", "b"], {
    server: { clock: createHandClock({ at: 0 }) },
  });
  const [follower] = following();
  assert.ok(follower);
  const word = async () => (await follower.ask("pulse", {})).json.node;
  assert.deepEqual(await word(), { role: "follower" });
  follower.node.journal.fault({ cut: "both" });
  await clock.advance(8000);
  const { role, trouble, since = "" } = (await word()) ?? {};
  assert.deepEqual([role, trouble], ["follower", "journal-away"]);
  assert.match(since, /^20.*Z$/);
  follower.node.journal.fault({ cut: "none" });
  await clock.advance(4000);
  assert.deepEqual(await word(), { role: "follower" });
  const alone = await openDrover();
  context.after(() => alone.close());
  const server = await startServer({ drover: alone, settings: settingsOf() });
  context.after(() => server.close());
  assert.equal((await clientOf(server.url).ask("pulse", {})).json.node, undefined);
});

test("a write to a follower is the leader's, and names it and a seq at which every node shows it", async (context) => {
  const { leading, following } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  const submitted = await follower.ask("submit", { body: task("t") });
  assert.equal(submitted.status, 202, submitted.text);
  assert.equal(submitted.json.taskId, "t");
  assert.equal(submitted.headers.get("x-drover-leader"), leading().url);
  assert.ok(seqOf(submitted) > 0);
  const after = { headers: { "x-drover-after": String(seqOf(submitted)) } };
  const read = await follower.call("GET", "/tasks/t", after);
  assert.equal(read.status, 200, read.text);
  assert.ok(seqOf(read) >= seqOf(submitted));
  assert.match(read.headers.get("x-drover-age-ms") ?? "", /^\d+$/);
  assert.equal(read.headers.get("x-drover-leader"), leading().url);
  const own = await leading().call("GET", "/tasks/t");
  assert.equal(own.headers.get("x-drover-age-ms"), null);
  assert.equal(own.headers.get("x-drover-leader"), leading().url);
});

test("every call that changes something works at a follower, whatever it is", async (context) => {
  const { servers, following, leading } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  const body = { agentId: "ann", tasks: [{ action: "a" }, { action: "b", id: "own" }] };
  const batch = await follower.ask("submitBatch", { body });
  assert.equal(batch.json.accepted, 2, batch.text);
  const calls = [
    { call: "submit", body: task("bulked") },
    { call: "cancel", id: "own" },
  ];
  const bulk = await follower.ask("bulk", { body: { calls } as never });
  assert.deepEqual(
    bulk.json.answers.map(({ status }) => status),
    [202, 200],
  );
  assert.equal((await follower.call("PUT", "/projects/site", { body: { weight: 3 } })).status, 200);
  assert.equal((await follower.call("POST", "/scheduler/pause", { body: {} })).status, 200);
  assert.equal((await follower.call("POST", "/scheduler/resume")).status, 200);
  const joined = await follower.ask("joinWorker", { body: { id: "w", slots: 4 } });
  const { session } = joined.json;
  const synced = await follower.ask("sync", { params: { id: "w" }, body: { session, n: 1 } });
  assert.equal(synced.json.assignments.length, 2, synced.text);
  assert.equal((await follower.call("POST", "/workers/w/drain")).status, 200);
  const asked = await follower.ask("askPermit", { body: { gate: "g" } as never });
  const { permitId } = asked.json;
  // The gate lets ten out, and the last one waits in line.
  const ids = Array.from({ length: 10 }, (_, index) => `p${index}-of-ten`);
  for (const id of ids) await follower.ask("askPermit", { body: { gate: "g", id } });
  const waiting = follower.ask("waitPermits", { body: { ids: ids.slice(-1), timeoutMs: 60_000 } });
  assert.equal(await isPending(waiting), true);
  assert.equal((await follower.call("POST", `/permits/${permitId}/settle`, { body: {} })).status, 200, asked.text);
  assert.deepEqual((await waiting).json, { ids: ids.slice(-1) });
  const after = { headers: { "x-drover-after": String(seqOf(synced)) } };
  for (const { call } of servers) {
    const { json } = await call("GET", "/projects/site", after);
    assert.equal((json as { weight: number }).weight, 3);
  }
  assert.equal((await follower.ask("cancel", { params: { id: "nobody" }, body: {} })).status, 404, "its refusals too");
  assert.equal((await follower.ask("whoami", {})).headers.get("x-drover-leader"), leading().url);
});

test("a submit without an id gets one at the first node, so sent twice it is one task", async (context) => {
  const { servers, following, leader, store, clock, settle } = await serveCluster(context, ["a", "b", "c"]);
  const [follower] = following();
  assert.ok(follower);
  const old = leader();
  // The leader commits, and its answer is lost: it is cut off from the journal until another leads.
  old.journal.fault({ cut: "answers" });
  const submitted = follower.ask("submit", { body: task(undefined) });
  await until("the batch in the journal", () => store.head.seq > follower.node.applied().seq || hasTask(follower));
  expireLead(store);
  await settle();
  await clock.advance(100);
  const { status, json } = await submitted;
  assert.equal(status, 202, JSON.stringify(json));
  old.journal.fault({ cut: "none" });
  await clock.advance(8000);
  await settle();
  for (const { node } of servers) assert.equal(node.drover.state.tasks.size, 1, node.id);
});

test("a body as large as may be goes through a follower too, though its tasks get ids there", async (context) => {
  const { following } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  const { bodyLimit } = settingsOf().server;
  const batch = (...texts: string[]) => ({
    agentId: "ann",
    tasks: texts.map((text) => ({ action: "build", params: { text } })),
  });
  const bare = JSON.stringify(batch("", "")).length;
  const sized = (bytes: number) => batch("x".repeat(500_000), "x".repeat(bytes - bare - 500_000));
  const fits = await follower.ask("submitBatch", { body: sized(bodyLimit) });
  assert.equal(fits.json.accepted, 2, fits.text);
  const larger = await follower.ask("submitBatch", { body: sized(bodyLimit + 1) });
  assert.equal(larger.status, 413, larger.text);
  const around = JSON.stringify(task(undefined, { payload: "" })).length;
  const alone = await follower.ask("submit", { body: task(undefined, { payload: "x".repeat(bodyLimit - around) }) });
  assert.equal(alone.status, 202, alone.text.slice(0, 300));
});

test("the larger limit is for what a node has sent on, and proves: on no server by a header alone", async (context) => {
  const server = { bodyLimit: 4096 };
  const { leading, following } = await serveCluster(context, ["a", "b"], { settings: { server } });
  const alone = await startServer({ drover: await openDrover({}), settings: settingsOf({ server }) });
  context.after(() => alone.close());
  const [follower] = following() as [NodeServer];
  const body = task(undefined, { payload: "x".repeat(4096) });
  for (const { call } of [clientOf(alone.url), leading(), follower])
    for (const seal of [undefined, "a", "ab".repeat(32)]) {
      const headers = { "x-drover-forwarded": "a", ...(seal === undefined ? {} : { "x-drover-forward-seal": seal }) };
      const { status, problem } = await call("POST", "/tasks", { body, headers });
      assert.deepEqual([status, problem.details], [413, { bodyLimit: 4096 }], problem.error);
    }
});

test("a task at the limit of a body is taken at every node, whatever its token adds", async (context) => {
  const token = "0123456789abcdef-bob";
  const tokens = [{ token, role: "agent", agentId: "bob", project: "site" }];
  const { servers } = await serveCluster(context, ["a", "b"], { settings: { server: { tokens } } });
  const { bodyLimit } = settingsOf().server;
  const sized = (more: number) => {
    const bare = JSON.stringify({ action: "build", payload: "" }).length;
    return { action: "build", payload: "x".repeat(bodyLimit - bare + more) };
  };
  const headers = { authorization: `Bearer ${token}` };
  for (const { call, node } of servers) {
    const { status, text } = await call("POST", "/tasks", { body: sized(0), headers });
    assert.equal(status, 202, `${node.id}: ${text.slice(0, 300)}`);
    assert.equal((await call("POST", "/tasks", { body: sized(1), headers })).status, 413);
  }
});

test("what cannot be written anew is refused by a follower in the words of the leader", async (context) => {
  const { servers } = await serveCluster(context, ["a", "b"]);
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  const grows = `[${Array(100_000).fill("1e20").join()}]`;
  for (const [payload, says] of [
    [deep, /payload\[0\]\[0\].* levels deep/],
    [grows, /\(body\) is .* bytes.*at most 1048576 bytes/],
  ] as const) {
    const body = `{"agentId":"ann","action":"build","payload":${payload}}`;
    const said = await Promise.all(
      servers.map(({ call }) => call("POST", "/tasks", { body, headers: { "content-type": "application/json" } })),
    );
    for (const { status, problem } of said) {
      assert.equal(status, 400, problem.error.slice(0, 300));
      assert.match(problem.error, says);
      assert.equal(problem.error, said[0]?.problem.error);
    }
  }
});

test("a node with another hash of an event is an alarm in GET /cluster and for the command line", async (context) => {
  const { leading, following, settle } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  await leading().ask("submit", { body: task("t") });
  await settle();
  const status = (...more: string[]) =>
    drover(["cluster", "status", "--url", leading().url, ...more], {}, { fetch: globalThis.fetch });
  const differing = async (): Promise<string[]> =>
    (await leading().ask("cluster", {})).json.nodes.filter(({ differs }) => differs).map(({ id }) => id);
  assert.deepEqual([(await status()).code, await differing()], [0, []]);
  const { id, applied, journal, url } = follower.node;
  const { seq, epoch } = applied();
  await journal.announce({ node: id, url: url(), seq, epoch, hash: "0".repeat(64), stored: seq });
  assert.deepEqual(await differing(), [id]);
  const told = await status();
  assert.equal(told.code, 1, told.err);
  assert.match(told.out, new RegExp(`\\nalarm: ${id} has another hash at event ${seq} than others`));
  assert.equal((await status("--json")).code, 1);
});

test("a node is called by the name that it has told the others, and by no other", async (context) => {
  const { urls, servers } = await serveCluster(context, ["a", "b"]);
  const [a, b] = servers as [NodeServer, NodeServer];
  assert.equal(await statusAs("a.example:4747", a), 403);
  urls.set("a", "http://a.example:4747");
  assert.equal(await statusAs("a.example:4747", a), 200);
  assert.equal(await statusAs("b.example:4747", a), 403);
  assert.equal(await statusAs("a.example:4747", b), 403, "it is not that node's");
});

test("a task that the leader has turned away is found at any node, and what nobody knows at none", async (context) => {
  const [token, foreign] = ["of-an-admin-0123456789", "of-another-agent-0123456789"];
  const bob = { token: foreign, role: "agent", agentId: "bob" };
  const settings = { server: { tokens: [{ token, role: "admin" }, bob] } };
  const config = { scheduler: { maxQueue: 1 } };
  const { leading, following } = await serveCluster(context, ["a", "b", "c"], { settings, config });
  const [follower] = following();
  assert.ok(follower);
  await leading().ask("submit", { body: task("first") }, { token });
  const turnedAway = await follower.ask("submit", { body: task("no") }, { token });
  assert.deepEqual([turnedAway.status, turnedAway.problem.details?.taskId], [429, "no"], turnedAway.text);
  const read = (path: string, who = token): ReturnType<NodeServer["call"]> =>
    follower.call("GET", path, { headers: { authorization: `Bearer ${who}` } });
  for (const more of ["", "/wait"]) {
    const found = await read(`/tasks/no${more}`);
    assert.deepEqual([found.status, (found.json as { state: string }).state], [200, "rejected"], found.text);
    assert.equal(found.headers.get("x-drover-leader"), leading().url);
    const none = [await read(`/tasks/never${more}`), await read(`/tasks/no${more}`, foreign)];
    for (const { status, problem } of none) assert.deepEqual([status, problem.code], [404, "not_found"]);
  }
  await leading().close();
  assert.equal((await read("/tasks/no")).status, 404, "gone with its leader");
});

test("what was sent on meets a node that follows: 503 no_leader, and it is not sent further", async (context) => {
  const { following } = await serveCluster(context, ["a", "b", "c"]);
  const [follower] = following();
  assert.ok(follower);
  const headers = { "x-drover-forwarded": "a stranger" };
  const { status, problem, headers: said } = await follower.call("POST", "/tasks", { body: task("t"), headers });
  assert.deepEqual([status, problem.code, problem.retryable], [503, "no_leader", true]);
  assert.equal(said.get("retry-after"), "1");
  assert.equal(follower.node.drover.state.tasks.size, 0);
});

test("the header of a node that sends on opens nothing: the token counts, here and there", async (context) => {
  const token = "0123456789abcdef-admin";
  const settings = { server: { tokens: [{ token, role: "admin" }] } };
  const { leading, following } = await serveCluster(context, ["a", "b"], { settings });
  const headers = { "x-drover-forwarded": "a" };
  for (const { call } of [leading(), ...following()]) {
    assert.equal((await call("POST", "/tasks", { body: task("t"), headers })).status, 401);
    const wrong = { ...headers, authorization: "Bearer no-such-token-here" };
    assert.equal((await call("POST", "/tasks", { body: task("t"), headers: wrong })).status, 401);
  }
  const [follower] = following();
  const known = { authorization: `Bearer ${token}` };
  assert.equal((await follower?.call("POST", "/tasks", { body: task("t"), headers: known }))?.status, 202);
});

test("a token that a follower knows and its leader does not: it is said who refuses", async (context) => {
  const own = "0123456789abcdef-of-b";
  const tokens = [{ token: "0123456789abcdef-admin", role: "admin" }];
  const { leading, following } = await serveCluster(context, ["a", "b"], { settings: { server: { tokens } } });
  const [{ node }] = following() as [NodeServer];
  const settings = settingsOf({ server: { tokens: [...tokens, { token: own, role: "admin" }] } });
  const other = await startServer({ drover: node.drover, node, settings });
  context.after(() => other.close());
  const headers = { authorization: `Bearer ${own}` };
  const { call } = clientOf(other.url);
  assert.equal((await call("GET", "/tasks", { headers })).status, 200);
  const { status, problem } = await call("POST", "/tasks", { body: task("t"), headers });
  assert.deepEqual([status, problem.code], [401, "unauthorized"]);
  assert.ok(problem.error.includes(`the leader, ${leading().url}, does not: give all nodes the same server.tokens`));
});

test("of tokens that a follower does not know, only what may be an attempt's is put to the leader", async (context) => {
  const settings = { server: { tokens: [{ token: "0123456789abcdef-admin", role: "admin" }] } };
  const { leading, following } = await serveCluster(context, ["a", "b"], { settings });
  const [follower] = following() as [NodeServer];
  const saidBy = async (token: string): Promise<string | null> => {
    const { status, headers } = await follower.call("GET", "/tasks", { headers: { authorization: `Bearer ${token}` } });
    assert.equal(status, 401);
    return headers.get("x-drover-leader");
  };
  assert.equal(await saidBy(`drover-attempt.AAAA.1.${"B".repeat(43)}`), leading().url);
  for (const none of ["drover-attempt.AAAA.1.BBBB", `x-drover-attempt.AAAA.1.${"B".repeat(43)}`])
    assert.equal(await saidBy(none), null, none);
});

test("whoever is refused by the leader and goes on sending is cut off by the follower too", async (context) => {
  const settings = { server: { tokens: [{ token: "0123456789abcdef-admin", role: "admin" }] } };
  const { following } = await serveCluster(context, ["a", "b"], { settings });
  const [{ url }] = following() as [NodeServer];
  for (const way of ["POST /tasks", `PUT /files/${"a".repeat(64)}`]) {
    const { socket, closed } = await rawSocket(url);
    const piece = Buffer.alloc(65_536, 32);
    const pour = (error?: Error | null): unknown => error ?? (socket.destroyed || socket.write(piece, pour));
    const token = `authorization: Bearer drover-attempt.AAAA.1.${"B".repeat(43)}\r\ncontent-type: application/json\r\n`;
    socket.write(`${way} HTTP/1.1\r\nhost: localhost\r\n${token}content-length: 90000000000\r\n\r\n`, pour);
    assert.match(await within("the end of the connection", closed, 20_000), /^HTTP\/1\.1 401 /, way);
  }
});

test("a client knows of an answer that was lost behind a follower that it was lost", async (context) => {
  const { leading, following, urls, clock, settle } = await serveCluster(context, ["a", "b"]);
  const [follower] = following() as [NodeServer];
  const proxy = await startProxy(Number(new URL(leading().url).port));
  context.after(() => proxy.close());
  urls.set(leading().node.id, proxy.url);
  await clock.advance(4000);
  await settle();
  await using client = createClient({ url: follower.url });
  await client.submit({ id: "t", agentId: "ann", action: "build" });
  const kinds: string[] = [];
  context.after(leading().node.drover.watch((batch) => batch.forEach(({ event }) => void kinds.push(event.kind))));
  const lost = proxy.loseAnswer();
  await client.cancel("t");
  await lost;
  const lostToo = proxy.loseAnswer();
  await assert.rejects(client.retry("t"), { code: "network", retryable: false });
  await lostToo;
  await settle();
  assert.equal(kinds.filter((kind) => kind === "task-retried").length, 1, kinds.join());
});

test("a leader whose lead is not sure refuses nothing for good: 503 no_leader", async (context) => {
  const { leading } = await serveCluster(context, ["a", "b"]);
  const { node, ask } = leading();
  const life = node.life();
  // As one that hung for longer than its lease, and has not noticed yet.
  Object.assign(node, { life: () => ({ ...life, leads: () => false }) });
  const { status, problem } = await ask("cancel", { params: { id: "of the next leader" }, body: {} });
  assert.deepEqual([status, problem.code], [503, "no_leader"]);
});

test("nobody leads, or the leader is gone: 503 no_leader with Retry-After, and reads go on", async (context) => {
  const { servers, leading, following, clock, settle, urls } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  await leading().ask("submit", { body: task("t") });
  await settle();
  const gone = await startServerNowhere();
  urls.set(leading().node.id, gone);
  await clock.advance(4000);
  await settle();
  const { status, problem, headers } = await follower.ask("submit", { body: task("u") });
  assert.deepEqual([status, problem.code, problem.retryable], [503, "no_leader", true]);
  assert.equal(headers.get("retry-after"), "1");
  assert.equal((await follower.ask("task", { params: { id: "t" } })).status, 200);
  assert.equal(servers[0]?.node.drover.state.tasks.size, 1);
});

test("a node that alone is cut off from the journal sends on to who proves that it leads", async (context) => {
  const { servers, leading, following, moveLead, clock, settle } = await serveCluster(context, ["a", "b", "c"]);
  const [, alone] = following() as [NodeServer, NodeServer];
  alone.node.journal.fault({ cut: "both" });
  await clock.advance(10_000);
  await settle();
  assert.notEqual(alone.node.journalAway(), null);
  const before = await alone.ask("submit", { body: task("t") });
  assert.deepEqual([before.status, before.headers.get("x-drover-leader")], [202, leading().url], before.text);
  await moveLead();
  const moved = await alone.ask("submit", { body: task("u") });
  assert.notEqual(alone.node.leaderUrl(), leading().url, "it has not heard of the change");
  assert.deepEqual([moved.status, moved.headers.get("x-drover-leader")], [202, leading().url], moved.text);
  for (const { node } of servers) if (node !== alone.node) assert.equal(node.drover.state.tasks.size, 2, node.id);
  alone.node.journal.fault({ cut: "none" });
  await clock.advance(4000);
  await settle();
  assert.equal(alone.node.drover.state.tasks.size, 2);
});

test("a caller's token goes to no address at which no leader was heard of lately", async (context) => {
  const { leading, following, clock, settle, urls } = await serveCluster(context, ["a", "b"]);
  const [follower] = following() as [NodeServer];
  const { url: led } = leading();
  const seen: string[] = [];
  const asked: string[] = [];
  // It holds an address that was the leader's, answers all in its own way, and passes on what it cannot answer.
  const stranger = createServer(async ({ headers, url = "" }, response) => {
    if (headers.authorization !== undefined) seen.push(headers.authorization);
    if (!url.startsWith("/cluster/node")) return response.writeHead(202, { "drover-protocol": "1" }).end("{}");
    asked.push(url);
    response.end(await (await fetch(`${led}${url}`)).text());
  });
  await new Promise<void>((listening) => stranger.listen(0, "127.0.0.1", listening));
  context.after(() => stranger.close());
  urls.set(leading().node.id, `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`);
  await clock.advance(4000);
  await settle();
  const headers = { authorization: "Bearer mine", "content-type": "application/json" };
  const submit = () => follower.call("POST", "/tasks", { headers, body: JSON.stringify(task("t")) });
  await submit();
  assert.deepEqual(seen.splice(0), ["Bearer mine"], "while it is heard of, it is believed");
  follower.node.journal.fault({ cut: "both" });
  urls.set(leading().node.id, led);
  await clock.advance(10_000);
  await settle();
  const { status, problem } = await submit();
  assert.deepEqual([status, problem.code, seen], [503, "no_leader", []]);
  assert.ok(asked.length > 0, "it was asked who it is, and the leader's own word is of another address");
});

test("a node that tells others an address of another is a warning of every node until it is right", async (context) => {
  const clock = createHandClock({ at: 0 });
  const server = { clock, checksAddress: true };
  const cluster = await serveCluster(context, ["a", "b", "c"], { server });
  const [a, b, c] = cluster.servers as [NodeServer, NodeServer, NodeServer];
  const warnings = async (): Promise<string> => (await c.ask("cluster", {})).json.log.warnings.join("\n");
  cluster.urls.set("a", b.url);
  await clock.advance(1000);
  const said = `node a: ANOTHER NODE, b, answers at ${b.url}, which this node tells others to be its address`;
  await until("a to find out", () => a.node.warnings.some((line) => line.startsWith(said)));
  await cluster.clock.advance(2000);
  assert.ok((await warnings()).includes(`${said}: calls meant for this one reach that one.`), await warnings());
  assert.ok((await warnings()).includes(`It listens at ${a.url}`));
  const told = await drover(["cluster", "status", "--url", c.url], {}, { fetch: globalThis.fetch });
  assert.ok(told.out.includes(`\nwarning: ${said}`), told.out);
  cluster.urls.set("a", a.url);
  await clock.advance(60_000);
  await until("a to find that it is right", async () => {
    await cluster.clock.advance(2000);
    return !(await warnings()).includes("ANOTHER NODE");
  });
  for (const { node } of [b, c]) assert.ok(!node.warnings.some((line) => line.includes("answers at")), node.id);
});

test("who is at an address is said to anybody who asks with a question, and by no server alone", async (context) => {
  const { leading } = await serveCluster(context, ["a", "b"]);
  const { call, node } = leading();
  const question = "0123456789abcdef".repeat(2);
  const { status, json } = await call("GET", `/cluster/node?question=${question}`);
  const word = { node: node.id, url: node.url(), leads: true, epoch: node.applied().epoch };
  const { moment } = json as { moment: string };
  assert.match(moment, /^[0-9a-f]{16}-\d+$/);
  assert.deepEqual([status, node.readWord(question, json)], [200, { ...word, moment }]);
  for (const bad of ["", "?question=", `?question=${question}0`, "?question=x"]) {
    const refused = await call("GET", `/cluster/node${bad}`);
    assert.deepEqual([refused.status, refused.problem.code], [400, "bad_request"], bad);
  }
  assert.equal(await statusUnder(`${leading().url}/cluster/node?question=${question}`, { host: "else.where" }), 403);
  const drover = await openDrover();
  const alone = await startServer({ drover, settings: settingsOf() });
  context.after(() => alone.close());
  assert.equal((await clientOf(alone.url).call("GET", `/cluster/node?question=${question}`)).status, 404);
});

test("a plan whose answer is lost is put once more, unless it is run afresh, however spelt", async (context) => {
  const { leading, following, clock, settle, urls } = await serveCluster(context, ["a", "b"]);
  const [follower] = following() as [NodeServer];
  let puts = 0;
  const stranger = createServer((request, response) => {
    if (request.method === "PUT" && ++puts % 2 === 1) request.socket.destroy();
    else response.writeHead(202, { "drover-protocol": "1" }).end("{}");
  });
  await new Promise<void>((listening) => stranger.listen(0, "127.0.0.1", listening));
  context.after(() => stranger.close());
  urls.set(leading().node.id, `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`);
  await clock.advance(4000);
  await settle();
  const headers = { "content-type": "application/json" };
  for (const [query, times] of [
    ["", 2],
    ["?fresh=false", 2],
    ["?fresh=true", 1],
    ["?fr%65sh=true", 1],
  ] as const) {
    // A connection that is kept, and gone at the next call.
    assert.equal((await follower.ask("submit", { body: task("t") })).status, 202);
    puts = 0;
    await fetch(`${follower.url}/plans/p${query}`, { method: "PUT", headers, body: '{"tasks":{}}' }).catch(() => null);
    assert.equal(puts, times, query);
  }
});

test("a removal or a cancel whose answer is lost is not repeated by a node: it would find it gone", async (context) => {
  const { leading, following, clock, settle, urls } = await serveCluster(context, ["a", "b"]);
  const [follower] = following() as [NodeServer];
  const asked: string[] = [];
  const stranger = createServer((request, response) => {
    const { method = "", url = "" } = request;
    if (url !== "/tasks") asked.push(`${method} ${url}`);
    if (asked.length === 1) request.socket.destroy();
    else response.writeHead(method === "DELETE" ? 404 : 202, { "drover-protocol": "1" }).end("{}");
  });
  await new Promise<void>((listening) => stranger.listen(0, "127.0.0.1", listening));
  context.after(() => stranger.close());
  urls.set(leading().node.id, `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`);
  await clock.advance(4000);
  await settle();
  for (const [method, path] of [
    ["DELETE", "/schedules/s"],
    ["DELETE", "/gates/g"],
    ["POST", "/tasks/t/cancel"],
  ] as const) {
    asked.length = 0;
    // A connection that is kept, and gone at the next call.
    assert.equal((await follower.ask("submit", { body: task("t") })).status, 202);
    await assert.rejects(fetch(`${follower.url}${path}`, { method }), `${method} ${path}`);
    assert.deepEqual(asked, [`${method} ${path}`]);
  }
});

test("while the journal is away a refused call says so, and the cluster is shown as it was", async (context) => {
  const { servers, following, clock, settle } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  for (const { node } of servers) node.journal.fault({ cut: "both" });
  await clock.advance(8000);
  await settle();
  for (const { ask } of servers) {
    const { status, problem } = await ask("submit", { body: task("t") });
    assert.deepEqual([status, problem.code, problem.retryable], [503, "no_leader", true]);
    assert.deepEqual(problem.details?.journal, "away");
    assert.match(
      String(problem.error),
      /: the journal has been out of reach for \d+ s: .*\. Try again when it is back\.$/,
    );
    const view = await ask("cluster", {});
    assert.equal(view.status, 200, view.text);
    const { nodes, log } = view.json;
    assert.deepEqual(
      nodes.map(({ id }) => id),
      ["a", "b"],
    );
    assert.ok((log.awayMs ?? 0) >= 6000);
    assert.match(log.warnings.join(), /out of reach/);
  }
});

test("X-Drover-After waits until that is applied, is behind if it takes too long, and is a number", async (context) => {
  const clock = createHandClock({ at: 0 });
  const { leading, following, settle } = await serveCluster(context, ["a", "b"], { server: { clock } });
  const [follower] = following();
  assert.ok(follower);
  const { call, node } = follower;
  node.journal.fault({ cut: "both" });
  const after = seqOf(await leading().ask("submit", { body: task("t") }));
  const headers = { "x-drover-after": String(after) };
  const read = call("GET", "/tasks/t", { headers });
  const wait = call("POST", "/tasks/wait", { body: { ids: ["t"], timeoutMs: 0 }, headers });
  assert.ok(await isPending(Promise.race([read, wait])));
  node.journal.fault({ cut: "none" });
  await settle();
  assert.equal((await read).status, 200, (await read).text);
  assert.equal((await wait).status, 200);
  const late = call("GET", "/tasks/t", { headers: { "x-drover-after": String(after + 100) } });
  assert.ok(await isPending(late));
  await clock.advance(4999);
  assert.ok(await isPending(late));
  await clock.advance(1);
  const { status, problem, headers: said } = await late;
  assert.deepEqual([status, problem.code, said.get("retry-after")], [503, "behind", "1"]);
  const open = await call("GET", "/readyz", { headers: { "x-drover-after": "x" } });
  assert.notEqual(open.status, 400, "what needs no token waits for nothing");
  for (const bad of ["", "x", "-1", "1.5", "1, 2", "9".repeat(16)]) {
    const refused = await call("GET", "/tasks/t", { headers: { "x-drover-after": bad } });
    assert.deepEqual([refused.status, refused.problem.code], [400, "bad_request"], bad);
  }
});
