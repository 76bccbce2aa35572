/**
 * A cluster that loses its leader and nothing else.
 *
 *     npx node examples/cluster/cluster.ts             three members of etcd, three nodes
 *     npx node examples/cluster/cluster.ts postgres    one PostgreSQL, two nodes
 *
 * Everything runs on this machine, on free ports of loopback, and is gone at the end. Callers submit task after task,
 * two workers run them; each knows all addresses, none knows who leads. In the middle of it the leader is killed.
 * Whatever was acknowledged must end, the node that was killed comes back, and all have the same history.
 */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../../src/index.ts";
import { startWorker } from "../../src/worker/index.ts";
import { type NodeProcess, startNodes } from "../../test/kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../../test/kits/etcd.ts";
import { postgresMissing, startPostgres } from "../../test/kits/postgres.ts";

const TASKS_BEFORE = 150;
const TASKS_AFTER = 150;
const CALLERS = 5;
const TASK_MS = 20;
const LIMIT_MS = 120_000;

const began = performance.now();
const say = (text: string): void =>
  console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s  ${text}`);

const ENGINES = { etcd: startThreeEtcd, postgres: startOnePostgres };
const [kind = "etcd"] = process.argv.slice(2);
if (!(kind in ENGINES)) throw new Error(`examples/cluster/cluster.ts takes etcd or postgres, not "${kind}"`);
await using engine = await ENGINES[kind as keyof typeof ENGINES]();
say(`${engine.about} ${engine.count === 1 ? "is" : "are"} up`);

await using cluster = await startNodes({ log: engine.log, ids: engine.nodes, flags: ["--no-worker", "--quiet"] });
const [first, ids] = [await cluster.leader(), cluster.nodes.map(({ id }) => id)];
say(`nodes ${ids.join(", ")} are up, and ${first.id} leads`);

const url = cluster.nodes.map((node) => node.url());
const client = createClient({ url });
const runs = new Map<string, number>();
const work = async ({ taskId }: { readonly taskId: string }): Promise<void> => {
  runs.set(taskId, (runs.get(taskId) ?? 0) + 1);
  await pause(TASK_MS);
};
const worker = (id: string) => startWorker({ url, id, slots: 8, onWarning: (text) => say(`  ${id}: ${text}`) }, work);
await using _one = await worker("worker-1");
await using _other = await worker("worker-2");
const acknowledged = new Map<string, number>();
let submitted = 0;
let isEnough = false;

/** Submits one task after the other; what is acknowledged is noted with its time. */
async function call(): Promise<void> {
  while (!isEnough) {
    const { taskId } = await client.submit({ id: `t${++submitted}`, agentId: "ann", action: "work" });
    acknowledged.set(taskId, performance.now());
    await pause(TASK_MS);
  }
}
const callers = Promise.all(Array.from({ length: CALLERS }, call));
say(`two workers and ${CALLERS} callers have all ${url.length} addresses`);
await until("tasks to run", () => runs.size >= TASKS_BEFORE);
say(`${acknowledged.size} tasks acknowledged, ${runs.size} begun`);

const killedAt = performance.now();
await first.kill();
say(`${first.id} is killed, in the middle of it`);
const next = await cluster.leader();
say(`${next.id} leads, ${((performance.now() - killedAt) / 1000).toFixed(1)} s after that`);
const countThen = acknowledged.size;
await until("more tasks to be acknowledged", () => acknowledged.size >= countThen + TASKS_AFTER);
isEnough = true;
await callers;
const gap = longestGap([...acknowledged.values()]);
say(`${acknowledged.size} tasks acknowledged; for ${(gap / 1000).toFixed(1)} s none was`);

for (const taskId of acknowledged.keys()) {
  const { state } = await client.wait(taskId, { withinMs: LIMIT_MS });
  assert.equal(state, "done", taskId);
}
const again = [...runs.values()].filter((count) => count > 1).length;
say(`all ${acknowledged.size} are done, 0 are lost; begun twice, since nobody heard of their end: ${again}`);

await first.start();
const { seq, hash } = await sameEverywhere(first);
say(`${first.id} is back and follows; every node has event ${seq} with the hash ${hash.slice(0, 12)}…`);
say("✔ nothing was lost");

// ------------------------------------------------------------- what it takes

type Engine = AsyncDisposable & {
  readonly about: string;
  readonly count: number;
  readonly log: string;
  readonly nodes: readonly string[];
};

async function startThreeEtcd(): Promise<Engine> {
  if (etcdMissing !== false) throw new Error(etcdMissing);
  const etcd = await startEtcd({ members: 3 });
  return {
    ...{ about: "three members of etcd", count: 3, log: etcd.url("example"), nodes: ["a", "b", "c"] },
    [Symbol.asyncDispose]: () => etcd[Symbol.asyncDispose](),
  };
}

async function startOnePostgres(): Promise<Engine> {
  if (postgresMissing !== false) throw new Error(postgresMissing);
  const postgres = await startPostgres();
  return {
    ...{ about: "PostgreSQL", count: 1, log: postgres.url(), nodes: ["a", "b"] },
    [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose](),
  };
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LIMIT_MS; !(await isSo()); await pause(50))
    if (performance.now() > end) throw new Error(`${LIMIT_MS / 1000} s have passed without ${what}`);
}

function longestGap(times: readonly number[]): number {
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)));
}

type Seen = { readonly id: string; readonly role: string; readonly seq: number; readonly hash: string };

/** What all nodes have, once they say the same; every two seconds each tells of itself. */
async function sameEverywhere(node: NodeProcess): Promise<Seen> {
  let found: readonly Seen[] = [];
  await until("the same history on every node", async () => {
    const answer = await fetch(`${node.url()}/cluster`);
    if (!answer.ok) return false;
    found = ((await answer.json()) as { readonly nodes: readonly Seen[] }).nodes;
    const isSame = found.every(({ seq, hash }) => seq === found[0]?.seq && hash === found[0]?.hash);
    return isSame && found.length === ids.length && found.every(({ role }) => role !== "down");
  });
  return found[0] as Seen;
}
