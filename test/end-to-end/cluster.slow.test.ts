/**
 * Servers over nodes of one cluster: any address works, whoever leads.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createClient } from "../../src/client/index.ts";
import { expireLead } from "../../src/log/journal/memory-journal.ts";
import { startServer } from "../../src/server/start-server.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { drover } from "../kits/cli/canned-server.ts";
import { type NodeServer, serveCluster } from "../kits/cluster-servers.ts";
import { statusUnder } from "../kits/raw-socket.ts";
import { startProxy } from "../kits/tcp-proxy.ts";
import { clientOf, settingsOf } from "../kits/test-server.ts";
import { isPending, until } from "../kits/waits.ts";

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
  assert.equal((await follower.call("POST", `/permits/${permitId}/settle`, { body: {} })).status, 200, asked.text);
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
