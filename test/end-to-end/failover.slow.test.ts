/**
 * Nodes as processes, one client, one worker: the leader is killed under load, and no call is lost or refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientError, createClient } from "../../src/client/index.ts";
import { startWorker } from "../../src/worker/index.ts";
import { startNodes } from "../kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../kits/etcd.ts";
import { until, within } from "../kits/waits.ts";

const CALLERS = 4;

const KILLED = "a leader that is killed under load costs no call: submits, waits, permits, events, a worker";

test(KILLED, { skip: etcdMissing }, async (t) => {
  await using etcd = await startEtcd({ members: 1 });
  await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["a", "b", "c"], flags: ["--no-worker"] });
  const url = cluster.urls();
  const client = createClient({ url });
  const warnings: string[] = [];
  const ran = new Map<string, number>();
  const options = { url: url.split(","), slots: 8, onWarning: (text: string) => void warnings.push(text) };
  const worker = await startWorker(options, ({ taskId }) => {
    ran.set(taskId, (ran.get(taskId) ?? 0) + 1);
    return { ok: true };
  });
  t.after(() => worker.close());
  const over = new AbortController();
  const seen: number[] = [];
  const following = (async () => {
    for await (const { seq } of client.events({ signal: over.signal })) seen.push(seq);
  })();
  const done: string[] = [];
  let isOver = false;
  let kills = 0;

  async function caller(name: string): Promise<void> {
    for (let round = 0; !isOver; round++) {
      const id = `${name}-${round}`;
      await client.submit({ id, agentId: name, action: "work" });
      assert.equal((await client.task(id)).taskId, id, "it sees its own write");
      assert.equal((await client.wait(id)).state, "done");
      const permit = `permit-${id}`;
      const before = kills;
      await client.askPermit({ id: permit, gate: "anthropic/default", waitMs: 5000 });
      await client.settlePermit(permit).catch((error: unknown) => {
        // A grant is logged behind: it may be lost with the leader that gave it, and only then.
        if (kills === before || !(error instanceof ClientError && error.code === "not_found")) throw error;
      });
      done.push(id);
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, index) => caller(`ann${index}`)));
  /** A call that takes a while. */
  const look = (): Promise<unknown> => client.health().catch(() => {});
  const progress = (more: number): Promise<void> => {
    const before = done.length;
    return until(
      `${more} more rounds`,
      () => done.length >= before + more,
      () => Promise.race([callers, look()]),
    );
  };
  await progress(20);
  const leader = await cluster.leader();
  kills += 1;
  await leader.kill();
  await progress(20);
  isOver = true;
  await within("the end of what was asked", callers);
  const { seq } = await client.ready();
  await until("the events", () => (seen.at(-1) ?? 0) >= seq - 1, look);
  over.abort();
  await following;
  assert.deepEqual(
    seen,
    seen.map((_, index) => index + 1),
    "every event once, and in order",
  );
  assert.notEqual((await cluster.leader()).id, leader.id);
  assert.deepEqual(
    done.filter((id) => !ran.has(id)),
    [],
  );
});
