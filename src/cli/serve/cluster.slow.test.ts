/**
 * `drover serve` as a node of a cluster: real processes over a real etcd and a real PostgreSQL.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type NodeCluster, type NodeProcess, startNodes } from "../../../test/kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { postgresMissing, startPostgres } from "../../../test/kits/postgres.ts";
import { until } from "../../../test/kits/waits.ts";

const LIMIT = { timeout: 300_000 };

type Engine = AsyncDisposable & { readonly log: string };
const engines: Readonly<Record<string, { readonly skip: string | false; start(): Promise<Engine> }>> = {
  etcd: {
    skip: etcdMissing,
    start: async () => {
      const etcd = await startEtcd({ members: 3 });
      return { log: etcd.url("drover"), [Symbol.asyncDispose]: () => etcd[Symbol.asyncDispose]() };
    },
  },
  PostgreSQL: {
    skip: postgresMissing,
    start: async () => {
      const postgres = await startPostgres();
      return { log: postgres.url(), [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose]() };
    },
  },
};

const headers = { "content-type": "application/json" };
const submit = (node: NodeProcess, id: string): Promise<Response> =>
  fetch(`${node.url()}/tasks`, { method: "POST", headers, body: JSON.stringify({ id, agentId: "ann", action: "x" }) });
const has = async (node: NodeProcess, id: string): Promise<boolean> => (await fetch(`${node.url()}/tasks/${id}`)).ok;

/** Submits until a leader takes it: one that has just got the lead begins. */
async function submitted({ leader }: NodeCluster, id: string): Promise<NodeProcess> {
  let taken: NodeProcess | null = null;
  await until(`${id} to be taken`, async () => {
    const node = await leader();
    if ((await submit(node, id)).status === 202) taken = node;
    return taken !== null;
  });
  return taken as unknown as NodeProcess;
}

type Shown = { readonly state: string; readonly attempt: number; readonly result?: unknown };
const taskOn = async (node: NodeProcess, id: string): Promise<Shown> =>
  (await fetch(`${node.url()}/tasks/${id}`)).json() as Promise<Shown>;

type Assigned = { readonly task: { readonly taskId: string }; readonly token: string };

/** A worker played by hand: joins, and takes what is there to be run. */
async function takeOne(node: NodeProcess): Promise<Assigned> {
  const ask = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await fetch(node.url() + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, await answer.clone().text());
    return (await answer.json()) as Record<string, unknown>;
  };
  const { session } = await ask("/workers", { id: "hand" });
  const { assignments } = await ask("/workers/hand/sync", { session, n: 1, waitMs: 5000 });
  return (assignments as Assigned[])[0] as Assigned;
}

/** How a node answers the attempt that asks for its own task. */
const askedBy = async (node: NodeProcess, token: string): Promise<number> =>
  (await fetch(`${node.url()}/tasks/t1`, { headers: { authorization: `Bearer ${token}` } })).status;

for (const [name, { skip, start }] of Object.entries(engines))
  describe(`nodes over ${name}`, { ...LIMIT, skip }, () => {
    test("one leads, all have what it took, and the next goes on when it is killed or stopped", async () => {
      await using engine = await start();
      await using cluster = await startNodes({ log: engine.log, ids: ["a", "b", "c"], flags: ["--no-worker"] });
      const first = await submitted(cluster, "t1");
      for (const node of cluster.nodes) await until(`t1 on ${node.id}`, () => has(node, "t1"));
      const { task, token } = await takeOne(first);
      assert.equal(task.taskId, "t1");
      await first.kill();
      const second = await submitted(cluster, "t2");
      assert.equal(await askedBy(second, token), 200, "a token of the leader before");
      assert.equal(await askedBy(second, `${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`), 401);
      assert.notEqual(second.id, first.id);
      assert.ok(await has(second, "t1"));
      assert.equal(await second.stop(), 0, second.said());
      const third = await submitted(cluster, "t3");
      for (const id of ["t1", "t2"]) assert.ok(await has(third, id), id);
      await first.start();
      await until("t3 on the node that was killed", () => has(first, "t3"));
    });

    test("what the worker of a node runs goes on over every change of the lead", async () => {
      await using engine = await start();
      await using cluster = await startNodes({ log: engine.log, ids: ["a"] });
      const a = await submitted(cluster, "nobody's");
      const b = await cluster.add("b", ["--worker"]);
      const go = join(b.data, "go");
      const command = `while [ ! -e ${go} ]; do sleep 0.05; done; echo '{"ok":1}'`;
      const body = JSON.stringify({ id: "long", agentId: "ann", action: "exec", params: { command } });
      const taken = await fetch(`${b.url()}/tasks`, { method: "POST", headers, body });
      assert.equal(taken.status, 202, await taken.text());
      await until("it to run", async () => (await taskOn(b, "long")).state === "running");
      await a.kill();
      assert.equal((await submitted(cluster, "second")).id, "b");
      await a.start();
      const stopped = b.stop();
      assert.equal((await submitted(cluster, "third")).id, "a", "the lead goes before the work has ended");
      assert.equal((await taskOn(a, "long")).state, "running");
      writeFileSync(go, "");
      assert.equal(await stopped, 0, b.said());
      const { state, attempt, result } = await taskOn(a, "long");
      assert.deepEqual([state, attempt, result], ["done", 1, { ok: 1 }]);
    });
  });
