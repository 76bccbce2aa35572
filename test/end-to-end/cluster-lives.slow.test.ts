/**
 * A server while the lead of its node changes: who waits comes again, what acts outside goes on with the next leader.
 */
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { CALLS, readShape } from "../../src/protocol/index.ts";
import { type NodeServer, serveCluster } from "../kits/cluster-servers.ts";
import { answering } from "../kits/loopback.ts";
import { until } from "../kits/waits.ts";

const LIMIT = { timeout: 60_000 };
const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("waits and held syncs end with the life, 503 for a moment; the next call goes on", LIMIT, async (context) => {
  const { servers, leading, following, moveLead, settle } = await serveCluster(context, ["a", "b"]);
  const old = leading();
  const [next] = following();
  assert.ok(next);
  const waiting = await old.ask("submit", { body: task("t", { notBefore: "2027-01-01T00:00:00Z" }) });
  assert.equal(waiting.status, 202, waiting.text);
  const sync = async (at: NodeServer, id: string) => {
    const { session } = (await at.ask("joinWorker", { body: { id } })).json;
    return { answered: at.ask("sync", { params: { id }, body: { session, n: 1, waitMs: 30_000 } }) };
  };
  const direct = await sync(old, "w1");
  const sentOn = await sync(next, "w2");
  await settle();
  const waits = [
    old.ask("wait", { params: { id: "t" }, query: {} }),
    old.ask("waitAny", { body: { ids: ["t"] } }),
    next.ask("wait", { params: { id: "t" }, query: {} }),
    direct.answered,
  ];
  await until("all to be held", async () => (await polls(old)) === 4 && (await polls(next)) === 1);
  await moveLead();
  for (const { status, problem, headers } of await Promise.all(waits)) {
    assert.deepEqual([status, problem.code, problem.retryable], [503, "no_leader", true], JSON.stringify(problem));
    assert.equal(headers.get("retry-after"), "1");
  }
  assert.equal((await sentOn.answered).status, 200, "what was sent on is asked of the next leader, which is here");
  const again = servers.map((at) => at.ask("wait", { params: { id: "t" }, query: {} }));
  await until("the next to be held", async () => (await polls(old)) === 1 && (await polls(next)) === 1);
  await old.ask("cancel", { params: { id: "t" }, body: {} });
  await settle();
  for (const { status, json } of await Promise.all(again)) assert.deepEqual([status, json.state], [200, "cancelled"]);
});

const polls = async (at: NodeServer): Promise<number> =>
  Number(/^drover_long_polls (\d+)$/m.exec((await at.ask("metrics", {})).text)?.[1]);

test("a stream of events ends with the life, and goes on behind the last id, at any node", LIMIT, async (context) => {
  const { servers, leading, following, moveLead, settle } = await serveCluster(context, ["a", "b"]);
  const old = leading();
  const streams = servers.map((server) => follow(server, 0));
  await old.ask("submit", { body: task("before") });
  await until("the task in both streams", async () => streams.every(({ seen }) => seen.some(isSubmitted("before"))));
  await moveLead();
  const ended = await Promise.all(streams.map(({ whole }) => whole));
  for (const one of ended) assert.match(one, /: this stream ends here; come back with Last-Event-ID\n\n$/);
  await following()[0]?.ask("submit", { body: task("behind") });
  await settle();
  for (const [index, server] of servers.entries()) {
    const last = lastId(ended[index] as string);
    const next = follow(server, last);
    await until("what came meanwhile", async () => next.seen.some(isSubmitted("behind")));
    assert.equal(next.seen[0]?.seq, last + 1, "nothing is left out");
    assert.ok(!next.seen.some(isSubmitted("before")), "and nothing comes twice");
    next.stop();
  }
});

type Seen = { readonly seq: number; readonly kind: string; readonly task?: string };
const isSubmitted =
  (id: string) =>
  ({ kind, task: about }: Seen): boolean =>
    kind === "task-submitted" && about === id;
const lastId = (stream: string): number => Number([...stream.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]);

/** Reads the stream to its end. */
function follow({ url }: NodeServer, after: number): { seen: Seen[]; whole: Promise<string>; stop(): void } {
  const seen: Seen[] = [];
  const ending = new AbortController();
  async function read(): Promise<string> {
    const headers = { accept: "text/event-stream", "last-event-id": String(after) };
    const answer = await fetch(`${url}/events`, { headers, signal: ending.signal });
    let whole = "";
    try {
      for await (const part of (answer.body as ReadableStream).pipeThrough(new TextDecoderStream())) {
        whole += part;
        seen.length = 0;
        for (const [, data = ""] of whole.matchAll(/^data: (.*)\n\n/gm)) seen.push(JSON.parse(data));
      }
    } catch (error) {
      if (!ending.signal.aborted) throw error;
    }
    return whole;
  }
  return { seen, whole: read(), stop: () => ending.abort() };
}

/** A receiver that keeps its answers back, or refuses, until it is told to take what comes. */
async function receiver(
  context: TestContext,
): Promise<{ url: string; deliveries: string[]; takes: boolean; cut: number }> {
  const kept = { url: "", deliveries: [] as string[], takes: false, cut: 0 };
  const server = await answering(async (request, response) => {
    await text(request);
    kept.deliveries.push(String(request.headers["x-drover-delivery"]));
    response.once("close", () => {
      if (!response.writableFinished) kept.cut++;
    });
    if (kept.takes) response.end();
  });
  context.after(() => server.close());
  kept.url = `${server.url}/hook`;
  return kept;
}

test("a webhook that is on its way is cut off with the lead, and the next leader sends it", LIMIT, async (context) => {
  const hook = await receiver(context);
  const settings = { webhooks: { allowPrivate: true } };
  const { leading, moveLead, settle } = await serveCluster(context, ["a", "b"], { settings });
  const old = leading();
  await old.ask("submit", { body: task("t", { callbackUrl: hook.url }) });
  await old.ask("cancel", { params: { id: "t" }, body: {} });
  await until("a delivery", () => hook.deliveries.length === 1);
  hook.takes = true;
  await moveLead();
  assert.notEqual(leading().node.id, old.node.id);
  await until("the first to be cut off", () => hook.cut === 1);
  await until("it to be settled", async () => {
    await settle();
    return old.node.drover.state.callbacks.due.size === 0;
  });
  const [first, ...more] = hook.deliveries;
  assert.deepEqual(more, [first], "once more, under the same id");
  await moveLead();
  await settle();
  assert.equal(leading().node.id, old.node.id);
  assert.equal(hook.deliveries.length, 2, "what is settled is not sent again");
});

test("a push worker is driven by whoever leads, and what it ran is run again", LIMIT, async (context) => {
  const seen: string[] = [];
  let isSlow = true;
  const worker = await answering(async (request, response) => {
    if (request.method === "GET") return void response.writeHead(404).end();
    await text(request);
    seen.push(String(request.headers["x-drover-attempt"]));
    if (!isSlow) response.writeHead(200, { "content-type": "application/json" }).end('{"success":true}');
  });
  context.after(() => worker.close());
  const { following, servers, moveLead, settle } = await serveCluster(context, ["a", "b"]);
  const [follower] = following();
  assert.ok(follower);
  const joined = await follower.ask("joinWorker", { body: { id: "p", endpoint: worker.url } });
  assert.equal(joined.status, 201, joined.text);
  await follower.ask("submit", { body: task("t", { maxAttempts: 3 }) });
  await until("the first attempt", () => seen.length === 1, settle);
  isSlow = false;
  await moveLead();
  await until("the task to be done", async () => {
    await settle();
    return servers.every(({ node }) => node.drover.state.tasks.get("t" as never)?.phase === "done");
  });
  assert.ok(seen.length >= 2);
});

test("the token of an attempt counts at a node that has not heard of the attempt", LIMIT, async (context) => {
  const admin = "0123456789abcdef-admin";
  const settings = { server: { tokens: [{ token: admin, role: "admin" }] } };
  const { leading, following, settle } = await serveCluster(context, ["a", "b"], { settings });
  const [follower] = following();
  assert.ok(follower);
  const token = Promise.withResolvers<string>();
  const over = Promise.withResolvers<void>();
  await leading().node.drover.worker({ slots: 1 }, async (_task, run) => {
    token.resolve(run.token ?? "");
    await over.promise;
    return {};
  });
  follower.node.journal.fault({ cut: "both" });
  await leading().ask("submit", { body: task("t") }, { token: admin });
  const own = await token.promise;
  const child = await follower.call("POST", "/tasks", { body: { action: "x", id: "child" }, ...bearer(own) });
  assert.equal(child.status, 202, child.text);
  const read = await follower.call("GET", "/tasks/child", bearer(own));
  assert.equal(read.status, 200, read.text);
  const forged = `${own.slice(0, -3)}AAA`;
  const refused = await follower.call("POST", "/tasks", { body: { action: "x", id: "no" }, ...bearer(forged) });
  assert.deepEqual([refused.status, refused.problem.code], [401, "unauthorized"]);
  follower.node.journal.fault({ cut: "none" });
  await settle();
  assert.equal((await follower.call("GET", "/tasks/child", bearer(own))).status, 200, "and where it is known");
  over.resolve();
  await until("the attempt to be over", async () => {
    await settle();
    return (await follower.call("GET", "/tasks/child", bearer(own))).status === 401;
  });
});

test("/readyz, /metrics and /cluster tell of the node and of the others", LIMIT, async (context) => {
  const [admin, viewer, agent] = ["0123456789abcdef-admin", "0123456789abcdef-viewer", "0123456789abcdef-agent"];
  const tokens = [
    { token: admin, role: "admin" },
    { token: viewer, role: "viewer" },
    { token: agent, role: "agent" },
  ];
  const { leading, following, clock, settle } = await serveCluster(context, ["a", "b"], {
    settings: { server: { tokens } },
  });
  const [follower] = following();
  assert.ok(follower);
  const lead = (await leading().ask("ready", {})).json;
  assert.deepEqual([lead.role, lead.lagMs, lead.seq], ["leader", 0, leading().node.applied().seq]);
  const { status, json } = await follower.ask("ready", {});
  assert.deepEqual([status, json.role, json.epoch, json.seq], [200, "follower", lead.epoch, lead.seq]);
  const numbers = (await follower.ask("metrics", {}, { token: admin })).text;
  assert.match(numbers, /^drover_node_leads 0$/m);
  assert.match(numbers, new RegExp(`^drover_node_epoch ${lead.epoch}$`, "m"));
  assert.match(numbers, /^drover_node_lag_ms \d+$/m);
  assert.match((await leading().ask("metrics", {}, { token: admin })).text, /^drover_node_leads 1$/m);

  const shown = await follower.ask("cluster", {}, { token: viewer });
  assert.equal(shown.status, 200, shown.text);
  const read = readShape(CALLS.cluster.answers[200] as never, shown.json);
  assert.ok(read.ok, JSON.stringify(read));
  assert.deepEqual(
    shown.json.nodes.map(({ id, role, url, differs }) => [id, role, url, differs]),
    [leading(), follower].map(({ node, url }) => [node.id, node.life().role, url, undefined]),
  );
  assert.equal((await follower.ask("cluster", {}, { token: agent })).status, 403);

  follower.node.journal.fault({ cut: "both" });
  await clock.advance(10_000);
  const behind = await follower.ask("ready", {});
  assert.deepEqual([behind.status, behind.problem.code], [503, "behind"]);
  const down = (await leading().ask("cluster", {}, { token: admin })).json;
  assert.deepEqual(
    down.nodes.map(({ id, role }) => [id, role]),
    [
      [leading().node.id, "leader"],
      [follower.node.id, "down"],
    ],
  );
  const lost = (await leading().ask("pulse", {}, { token: viewer })).json.node?.down ?? [];
  assert.deepEqual(
    lost.map(({ id }) => id),
    [follower.node.id],
  );
  assert.equal((await leading().ask("ready", {})).json.nodesDown, 1, "anybody may know how many, and not which");
  follower.node.journal.fault({ cut: "none" });
  await clock.advance(4000);
  await settle();
  assert.equal((await follower.ask("ready", {})).status, 200);
  assert.equal((await leading().ask("ready", {})).json.nodesDown, undefined);
});

test("a server that stops hands the lead over first", LIMIT, async (context) => {
  const { servers, leading, clock, settle } = await serveCluster(context, ["a", "b"]);
  const old = leading();
  await old.ask("submit", { body: task("t") });
  const closing = old.close();
  await clock.advance(1000);
  await closing;
  await clock.advance(4000);
  await settle();
  const next = leading();
  assert.notEqual(next.node.id, old.node.id);
  assert.equal((await next.ask("submit", { body: task("u") })).status, 202);
  assert.equal(servers.length, 2);
});

test("the node that takes the lead says so itself, and the one that had it that it follows", LIMIT, async (context) => {
  const said: { readonly msg: string; readonly node?: string; readonly epoch?: number; readonly url?: string }[] = [];
  const logger = pino({}, { write: (line: string) => void said.push(JSON.parse(line)) });
  const { leading, moveLead } = await serveCluster(context, ["a", "b"], { server: { logger } });
  await moveLead();
  // Others tell what they read in the log; who tells of itself knows its epoch.
  const ofThemselves = said.filter(({ epoch }) => epoch !== undefined);
  assert.deepEqual(
    ofThemselves.map(({ node, msg }) => `${node}: ${msg}`).sort(),
    ["a: node follows", "a: node leads", "b: node leads"],
    JSON.stringify(ofThemselves),
  );
  const { node, url } = leading();
  const last = ofThemselves.findLast(({ msg }) => msg === "node leads");
  assert.deepEqual([last?.node, last?.url, last?.epoch], [node.id, url, node.applied().epoch]);
});
