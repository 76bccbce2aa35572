/**
 * What lies beside the log of a cluster: files and logs are read at any node; files outlive the node that took them.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { type NodeServer, serveCluster } from "../kits/cluster-servers.ts";
import { answering } from "../kits/loopback.ts";
import { until } from "../kits/waits.ts";

const CONTENT = "what a task left";
const HASH = hash("sha256", CONTENT, "hex");
const tokens = [
  { role: "admin", token: "token-of-admin-0123456789" },
  { role: "agent", token: "token-of-bob-0123456789", agentId: "bob" },
];
const admin = { authorization: "Bearer token-of-admin-0123456789" };
const settings = { server: { tokens } };
const bob = { authorization: "Bearer token-of-bob-0123456789" };

type Said = Readonly<Record<string, never>>;
async function post({ call }: NodeServer, path: string, body: object): Promise<Said> {
  const headers = { ...admin, "content-type": "application/json" };
  const answer = await call("POST", path, { headers, body: JSON.stringify(body) });
  assert.ok(answer.status < 300, answer.text);
  return answer.json as Said;
}

/** A task of ann is done, and has left a file; its worker speaks to the given server. Answers the worker's session. */
async function leaveFile(server: NodeServer): Promise<string> {
  await post(server, "/tasks", { id: "t", agentId: "ann", action: "build" });
  const { session } = await post(server, "/workers", { id: "w", slots: 1 });
  const sync = (n: number, more: object) => post(server, "/workers/w/sync", { session, n, logPlace: "here", ...more });
  await sync(1, {});
  await sync(2, { running: [{ taskId: "t", attempt: 1 }] });
  const headers = { ...admin, "content-type": "application/octet-stream" };
  const put = await server.call("PUT", `/files/${HASH}?task=t&attempt=1`, { headers, body: CONTENT });
  assert.equal(put.status, 200, put.text);
  const files = [{ path: "a.txt", hash: HASH, size: CONTENT.length }];
  const { results } = await sync(3, { results: [{ taskId: "t", attempt: 1, outcome: "done", files }] });
  assert.deepEqual(results, [{ taskId: "t", attempt: 1, accepted: true }]);
  return session as unknown as string;
}

test("a file that a task left is copied to every node, and outlives the one that took it", async (context) => {
  const { following, leading, servers, moveLead } = await serveCluster(context, ["a", "b", "c"], {
    settings: { server: { tokens } },
  });
  const [follower] = following();
  assert.ok(follower);
  await leaveFile(follower);
  assert.ok(leading().node.drover.files.has(HASH), "the leader took it");
  for (const { node } of servers) await until(`the file on ${node.id}`, () => node.drover.files.has(HASH));
  await moveLead();
  for (const { call } of servers) {
    assert.equal((await call("GET", `/files/${HASH}`, { headers: admin })).text, CONTENT);
    assert.equal((await call("GET", `/files/${HASH}`, { headers: bob })).status, 404, "not its own");
  }
});

test("a node without a copy gives a caller that of another, if it may read it, and once", async (context) => {
  const { following } = await serveCluster(context, ["a", "b"], { settings });
  const [follower] = following() as [NodeServer];
  // It takes it for copied.
  Object.assign(follower.node.drover.files, { has: () => true });
  await leaveFile(follower);
  await until("its task there", () => follower.node.drover.state.files.has(HASH));
  const get = (headers: Record<string, string>) => follower.call("GET", `/files/${HASH}`, { headers });
  const sentOn = await get({ ...admin, "x-drover-forwarded": "b" });
  assert.equal(sentOn.status, 500, "what was sent on is not sent on again");
  assert.equal((await get(bob)).status, 404);
  assert.equal((await get({})).status, 401);
  const answer = await get(admin);
  assert.deepEqual([answer.status, answer.text], [200, CONTENT]);
  assert.equal(String(await follower.node.drover.files.get(HASH)), CONTENT, "it is kept here from now on");
});

test("a log that lies with a worker is read at any node", async (context) => {
  const { following } = await serveCluster(context, ["a", "b"], { settings });
  const [follower] = following() as [NodeServer];
  const session = await leaveFile(follower);
  await until("the end of it there", () => follower.node.drover.state.files.has(HASH));
  const reading = follower.call("GET", "/tasks/t/logs", { headers: admin });
  const sync = { session, n: 4, logPlace: "here", waitMs: 10_000 };
  const { logs } = (await post(follower, "/workers/w/sync", sync)) as unknown as { logs: { id: string }[] };
  await post(follower, "/workers/w/logs", { session, id: logs[0]?.id, text: "a line\n" });
  const { status, json, text } = await reading;
  assert.deepEqual([status, (json as { text: string }).text], [200, "a line\n"], text);
});

test("dates that differ by days change nothing: files are copied and logs found", async (context) => {
  const { following, aheadMs } = await serveCluster(context, ["a", "b", "c"], { settings });
  const [early, late] = following() as [NodeServer, NodeServer];
  aheadMs.set(early.node.id, -172_800_000);
  aheadMs.set(late.node.id, 172_800_000);
  const session = await leaveFile(early);
  for (const { node } of [early, late]) await until(`the file on ${node.id}`, () => node.drover.files.has(HASH));
  const reading = late.call("GET", "/tasks/t/logs", { headers: admin });
  const sync = { session, n: 4, logPlace: "here", waitMs: 10_000 };
  const { logs } = (await post(early, "/workers/w/sync", sync)) as unknown as { logs: { id: string }[] };
  await post(early, "/workers/w/logs", { session, id: logs[0]?.id, text: "a line\n" });
  assert.equal(((await reading).json as { text?: string }).text, "a line\n");
});

test("a node that does not let another in is told of, for as long as it is so, and tried again", async (context) => {
  const served = await serveCluster(context, ["a", "b"], { settings });
  const [follower] = served.following() as [NodeServer];
  const warnings = async (): Promise<string[]> => {
    const { json } = await follower.call("GET", "/cluster", { headers: admin });
    return (json as { log: { warnings: string[] } }).log.warnings.filter((line) => /not let this node in/.test(line));
  };
  const { url } = served.leading();
  const other = await answering((_request, response) => response.writeHead(404).end("{}"));
  context.after(() => other.close());
  // Something else is at its address.
  served.urls.set(served.leading().node.id, other.url);
  await served.clock.advance(4000);
  await served.settle();
  await leaveFile(served.leading());
  await until("its task there", () => follower.node.drover.state.files.has(HASH));
  await until("a warning", async () => (await warnings()).length > 0);
  assert.equal((await follower.call("GET", `/files/${HASH}`, { headers: admin })).status, 500, "nobody has it");
  served.urls.set(served.leading().node.id, url);
  await served.clock.advance(4000);
  await served.settle();
  assert.equal((await follower.call("GET", `/files/${HASH}`, { headers: admin })).text, CONTENT);
  assert.deepEqual(await warnings(), []);
});

test("other nodes are asked as a node and not as the caller, and none that is down", async (context) => {
  const { following, leading, urls, clock, settle } = await serveCluster(context, ["a", "b", "c"], { settings });
  const [follower, third] = following() as [NodeServer, NodeServer];
  const seen: string[] = [];
  const stranger = await answering(({ url, headers }, response) => {
    seen.push(`${url?.replace(/=.*/, "")} ${headers.authorization}`);
    response.writeHead(200, { "drover-protocol": "1" }).end("forged");
  });
  context.after(() => stranger.close());
  const get = async (server: NodeServer, path: string): Promise<number> =>
    (await server.call("GET", path, { headers: admin })).status;
  await post(leading(), "/tasks", { id: "waits", agentId: "ann", action: "build" });
  urls.set(third.node.id, stranger.url);
  await clock.advance(4000);
  await settle();
  await get(follower, "/tasks/waits/logs");
  assert.deepEqual(seen.splice(0), ["/cluster/node?question undefined"], "and gets a token when it has proved it");
  assert.equal(await get(follower, "/tasks/nobody/logs"), 404);
  assert.equal(await get(follower, `/files/${HASH}`), 404);
  // Its address is somebody else's from now on.
  third.node.journal.fault({ cut: "both" });
  await clock.advance(10_000);
  await settle();
  seen.length = 0;
  for (const server of [follower, leading()]) {
    assert.equal(await get(server, "/tasks/waits/logs"), 404);
    assert.equal(await get(server, `/files/${"ab".repeat(32)}`), 404);
    assert.equal(await get(server, "/tasks/nobody"), 404);
  }
  assert.deepEqual(seen, []);
});
