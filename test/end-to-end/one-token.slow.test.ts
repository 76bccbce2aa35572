/**
 * One agent's token against everybody: names, places, words. Each attack leaves room for a project that has little.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { until } from "../kits/waits.ts";

const tokenOf = (name: string): { token: string } => ({ token: `token-of-${name}-0123456789` });
const tokens = [
  { role: "admin", ...tokenOf("admin") },
  { role: "agent", ...tokenOf("rude"), project: "rude" },
  { role: "agent", ...tokenOf("calm"), project: "calm" },
  { role: "worker", ...tokenOf("worker") },
];
const [admin, rude, calm, worker] = ["admin", "rude", "calm", "worker"].map(tokenOf) as [More, More, More, More];
type More = ReturnType<typeof tokenOf>;
const open = (settings: object = {}): Promise<TestServer> =>
  openServer({ settings: { server: { tokens }, ...settings } });

test("new names for gates use up nine tenths at most, and configured gates are there for all", async () => {
  await using at = await open({ gates: { "anthropic/default": { maxConcurrent: 3 }, openai: {} } });
  const ask = (gate: string, more: More) =>
    at.ask("askPermit", { body: { gate, id: `of ${gate}`.replace(" ", "-") } }, more);
  const statuses: number[] = [];
  for (let n = 0; n < 1000; n++) statuses.push((await ask(`made-up-${n}`, rude)).status);
  assert.deepEqual([statuses.indexOf(429), statuses.filter((status) => status === 200).length], [900, 900]);
  const refused = await ask("one-more", rude);
  assert.equal(refused.problem.code, "limit");
  assert.match(refused.problem.error, /of at most 1000 gates the last 100 are kept for projects that have few/);
  assert.equal((await ask("anthropic/default", rude)).status, 200);
  assert.equal((await ask("openai", calm)).status, 200, "a configured gate");
  assert.equal((await ask("mistral", calm)).status, 200, "one of its own");
  const of = async (n: number): Promise<number> => (await ask(`calm-${n}`, calm)).status;
  for (let n = 0; n < 9; n++) assert.equal(await of(n), 200);
  assert.equal(await of(9), 429, "it holds a hundredth now");
});

test("an admin removes gates that nobody uses, and is told why one stays", async () => {
  await using at = await open({ gates: { openai: {} } });
  for (const gate of ["a/b", "openai"]) await at.ask("askPermit", { body: { gate, id: `of-${gate}` } }, calm);
  const remove = (id: string, more = admin) => at.ask("removeGate", { params: { id } }, more);
  assert.equal((await remove("a/b", calm)).status, 403);
  const inUse = await remove("a/b");
  assert.deepEqual([inUse.status, inUse.problem.error], [409, "gate a/b is in use: 1 calls are out and 0 wait"]);
  await at.ask("settlePermit", { params: { id: "of-a/b" }, body: {} }, calm);
  assert.deepEqual((await remove("a/b")).json, { status: "removed", gate: "a/b" });
  assert.equal((await remove("a/b")).status, 404);
  assert.match((await remove("openai")).problem.error, /openai is named in the config/);
  const { gates } = (await at.ask("gates", {}, admin)).json;
  assert.deepEqual(
    gates.map(({ id }) => id),
    ["openai"],
  );
});

test("an agent's word shuts a gate for ten minutes at most, and an admin opens it again", async () => {
  await using at = await open();
  const gate = () => at.drover.state.gates.get("llm" as never);
  const blocks: number[] = [];
  at.drover.watch((batch) => {
    for (const { event } of batch) if (event.kind === "gate-throttled") blocks.push(event.retryAfterMs);
  });
  const throttle = { ok: false, rateLimited: { retryAfterMs: 31_556_952_000_000 } };
  await at.ask("askPermit", { body: { gate: "llm", id: "one" } }, rude);
  await at.ask("settlePermit", { params: { id: "one" }, body: throttle }, rude);
  assert.deepEqual(blocks, [600_000]);
  const waits = at.ask("askPermit", { body: { gate: "llm", id: "two", waitMs: 60_000 } }, calm);
  await until(
    "the second call in the queue",
    () => at.drover.state.permits.has("two" as never),
    () => at.ask("health", {}),
  );
  assert.equal((await at.ask("resetGate", { params: { id: "llm" } }, calm)).status, 403);
  assert.deepEqual((await at.ask("resetGate", { params: { id: "llm" } }, admin)).json, {
    status: "reset",
    gate: "llm",
  });
  assert.equal((await waits).json.status, "granted", "the probe goes out at once");
  assert.deepEqual([gate()?.blockedUntil, gate()?.throttles], [null, 0]);
  assert.equal((await at.ask("resetGate", { params: { id: "no-such" } }, admin)).status, 404);
  const { session } = (await at.ask("joinWorker", { body: { id: "w" } }, worker)).json;
  await at.ask("settlePermit", { params: { id: "two" }, body: {} }, calm);
  await at.ask("askPermit", { body: { gate: "llm", id: "three", session } }, worker);
  await at.ask("settlePermit", { params: { id: "three" }, body: { ...throttle, session } }, worker);
  assert.deepEqual(blocks, [600_000, 24 * 3_600_000], "a worker has read its provider's header");
});

test("a block that is lifted lets tasks of that provider start", async () => {
  await using at = await open();
  await at.ask("askPermit", { body: { gate: "llm", id: "one" } }, rude);
  await at.ask("settlePermit", { params: { id: "one" }, body: { rateLimited: { retryAfterMs: 600_000 } } }, rude);
  await at.ask("submit", { body: { id: "t", agentId: "a", action: "x", provider: "llm" } }, calm);
  const { session } = (await at.ask("joinWorker", { body: { id: "w" } }, worker)).json;
  const poll = (waitMs: number) => at.ask("sync", { params: { id: "w" }, body: { session, waitMs } }, worker);
  assert.equal((await poll(0)).json.assignments.length, 0);
  const polled = poll(5000);
  await at.ask("resetGate", { params: { id: "llm" } }, admin);
  assert.equal((await polled).json.assignments[0]?.taskId, "t");
});

test("ten agent names fill nine tenths of the queue, and a project that has little still gets its tasks", async () => {
  await using at = await open({ scheduler: { maxQueue: 200, maxPerAgent: 20, maxBatch: 50 } });
  const submit = (agentId: string, more: More) => at.ask("submit", { body: { agentId, action: "x" } }, more);
  let taken = 0;
  for (let name = 0; name < 10; name++) {
    const body = { agentId: `name-${name}`, tasks: Array.from({ length: 50 }, () => ({ action: "x" })) };
    taken += (await at.ask("submitBatch", { body }, rude)).json.accepted;
  }
  assert.equal(taken, 180);
  const refused = await submit("another", rude);
  assert.deepEqual([refused.status, refused.problem.code], [429, "queue_full"]);
  assert.match(
    refused.problem.error,
    /the last 20 places of scheduler\.maxQueue 200 are kept for projects and agents that have few/,
  );
  assert.equal((await submit("ann", calm)).status, 202);
  assert.equal((await submit("ann", calm)).status, 202);
  assert.equal((await submit("ann", calm)).status, 429, "it has a hundredth of it now");
  assert.equal((await at.ask("submit", { body: { agentId: "b", action: "x", project: "third" } }, admin)).status, 202);
});

test("an agent that names many projects has its hundredth of the last tenth, not one for each name", async () => {
  await using at = await open({ scheduler: { maxQueue: 200 } });
  const submit = (agentId: string, project: string) =>
    at.ask("submit", { body: { agentId, project, action: "x" } }, admin);
  const statuses: number[] = [];
  for (let name = 0; name < 200; name++) statuses.push((await submit("rude", `x${name % 60}`)).status);
  assert.equal(statuses.filter((status) => status === 202).length, 180);
  assert.match((await submit("rude", "x1")).problem.error, /agents that have few; agent rude has 180: try/);
  assert.equal((await submit("calm", "fresh")).status, 202);
});

test("submitting and cancelling fills no disk: the project has its bytes in a minute, and others go on", async () => {
  await using at = await open({ projects: { default: { bytesPerMinute: "4MiB" } } });
  const body = { agentId: "a", action: "x", params: { text: "x".repeat(512 * 1024) } };
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) {
    const id = `t${n}`;
    const reply = await at.ask("submit", { body: { ...body, id } }, rude);
    statuses.push(reply.status);
    if (reply.status === 202) await at.ask("cancel", { params: { id }, body: {} }, rude);
    else {
      assert.equal(reply.problem.code, "bytes_per_minute");
      assert.match(reply.problem.error, /projects\.default\.bytesPerMinute/);
      const after = Number(reply.headers.get("retry-after"));
      assert.ok(after > 1 && after <= 61, `Retry-After: ${after}`);
    }
  }
  assert.deepEqual(statuses, [...Array(7).fill(202), ...Array(5).fill(429)]);
  assert.equal((await at.ask("submit", { body }, calm)).status, 202);
});

test("a full log refuses work by name, ends are taken, and its last tenth is for who stored little", async () => {
  const config = { log: { maxBytes: "4MiB" } };
  await using at = await openServer({ settings: { server: { tokens } }, open: { config } });
  const body = { agentId: "a", action: "x", params: { text: "x".repeat(256 * 1024) } };
  let taken = 0;
  let last = await at.ask("submit", { body: { ...body, id: "first" } }, rude);
  for (; last.status === 202; taken++) last = await at.ask("submit", { body }, rude);
  assert.ok(taken > 10, `${taken}`);
  assert.deepEqual([last.status, last.problem.code], [429, "log_full"]);
  assert.match(last.problem.error, /log\.maxBytes/);
  assert.equal((await at.ask("cancel", { params: { id: "first" }, body: {} }, rude)).status, 200);
  assert.equal((await at.ask("submit", { body: { agentId: "a", action: "x" } }, calm)).status, 202);
});

/** Until so many calls wait. */
async function untilHeld(at: TestServer, count: number): Promise<void> {
  const wanted = new RegExp(`^drover_long_polls ${count}$`, "m");
  await until(`${count} calls that wait`, async () => wanted.test((await at.ask("metrics", {}, admin)).text));
}

test("calls that wait leave room for who waits little, and for workers", async () => {
  await using at = await openServer({ settings: { server: { tokens } }, server: { limits: { pollsMax: 20 } } });
  const hangUp = new AbortController();
  const waiting: Promise<unknown>[] = [];
  const wait = (who: string) =>
    at.ask("wait", { params: { id: who }, query: { timeoutMs: 60_000 } }, { ...tokenOf(who), signal: hangUp.signal });
  for (const who of ["rude", "calm"])
    await at.ask("submit", { body: { agentId: who, action: "x", id: who, capabilities: ["rare"] } }, tokenOf(who));
  for (let n = 0; n < 18; n++) waiting.push(wait("rude").catch(() => {}));
  await untilHeld(at, 18);
  const { status, problem } = await wait("rude");
  assert.deepEqual([status, problem.code, problem.retryable], [503, "overloaded", true]);
  waiting.push(wait("calm").catch(() => {}));
  await untilHeld(at, 19);
  assert.equal((await wait("calm")).problem.code, "overloaded", "it has its part");
  const { session } = (await at.ask("joinWorker", { body: { id: "w" } }, worker)).json;
  const sync = { params: { id: "w" }, body: { session, waitMs: 60_000 } };
  waiting.push(at.ask("sync", sync, { ...worker, signal: hangUp.signal }).catch(() => {}));
  await untilHeld(at, 20);
  hangUp.abort();
  await Promise.all(waiting);
});

test("looks at the past wait for each other, and nobody is refused because of another's", async () => {
  await using at = await open();
  for (const who of ["rude", "calm"])
    await at.ask("submit", { body: { agentId: who, action: "x", id: who } }, tokenOf(who));
  const look = async (who: string): Promise<number> => {
    const query = { at: at.drover.state.seq };
    return (await at.ask("why", { params: { id: who }, query }, tokenOf(who))).status;
  };
  const statuses = await Promise.all([...new Array(60).fill("rude"), "calm"].map(look));
  assert.deepEqual(statuses, new Array(61).fill(200));
});
