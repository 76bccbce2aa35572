/**
 * Nodes as processes over a real journal: any address works, also when the leader is killed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startNodes } from "../kits/cluster-nodes.ts";
import { startEtcd } from "../kits/etcd.ts";
import { clientOf, type Reply } from "../kits/test-server.ts";
import { until } from "../kits/waits.ts";

const task = (id: string) => ({ id, agentId: "ann", action: "build" });

test("a follower takes writes, before and after its leader was killed, and shows its own", {
  timeout: 120_000,
}, async () => {
  await using etcd = await startEtcd();
  await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["a", "b"] });
  const leader = await cluster.leader();
  const [follower] = await cluster.followers();
  assert.ok(follower);
  const { ask, call } = clientOf(follower.url());
  /** 503 is the only answer that is not taken for one. */
  async function submitted(id: string): Promise<Reply> {
    let reply = await ask("submit", { body: task(id) });
    await until(`${id} to be taken`, async () => {
      if (reply.status === 503) reply = await ask("submit", { body: task(id) });
      return reply.status !== 503;
    });
    return reply;
  }
  const first = await submitted("first");
  assert.equal(first.status, 202, first.text);
  assert.equal(first.headers.get("x-drover-leader"), leader.url());
  const headers = { "x-drover-after": first.headers.get("x-drover-seq") ?? "" };
  assert.equal((await call("GET", "/tasks/first", { headers })).status, 200);
  await leader.kill();
  const second = await submitted("second");
  assert.equal(second.status, 202, second.text);
  const { json } = await ask("tasks", { query: {} });
  assert.deepEqual(
    json.tasks.map(({ taskId }) => taskId),
    ["first", "second"],
  );
  assert.equal((await ask("ready", {})).json.role, "leader");
});
