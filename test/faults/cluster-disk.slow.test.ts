/**
 * A node of a cluster whose own disk fills up, as a process: it leaves with the exit code and the sentence of a server
 * alone, whether it leads or follows. The others go on, nothing that was acknowledged is missing, and with room it
 * comes back and has all of it.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { EXIT } from "../../src/cli/shell/problem.ts";
import { type NodeProcess, startNodes } from "../kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../kits/etcd.ts";
import { cannotMount, mountSmallDisk } from "../kits/refusing-disks.ts";
import { until } from "../kits/waits.ts";

const LIMIT = { timeout: 300_000 };
const ROOM_KIB = 4000;
const SUBMITS_MAX = 500;
const headers = { "content-type": "application/json" };

function submit(node: NodeProcess, id: string): Promise<Response> {
  const payload = randomBytes(30_000).toString("base64");
  const body = JSON.stringify({ id, agentId: "ann", action: "keep", payload, capabilities: ["nobody"] });
  return fetch(`${node.url()}/tasks`, { method: "POST", headers, body });
}
const has = async (node: NodeProcess, id: string): Promise<boolean> => (await fetch(`${node.url()}/tasks/${id}`)).ok;

/** Submits until the small node has ended; answers what was taken. A refusal, or nobody there, is no reason to stop. */
async function fillUp(at: NodeProcess, small: NodeProcess): Promise<string[]> {
  const taken: string[] = [];
  for (let count = 0; count < SUBMITS_MAX && small.isRunning(); count++) {
    const answer = await submit(at, `f${count}`).catch(() => null);
    if (answer?.status === 202) taken.push(`f${count}`);
    else assert.ok(answer === null || answer.status === 503, `${answer?.status} is not to be tried again`);
  }
  return taken;
}

const skip = etcdMissing === false ? cannotMount() : etcdMissing;
describe("a node whose own disk is full leaves the cluster with its exit code", { ...LIMIT, skip }, () => {
  for (const role of ["leader", "follower"] as const)
    test(`as ${role}`, async (t) => {
      const place = mkdtempSync(join(tmpdir(), "drover-small-"));
      const disk = mountSmallDisk(place, ROOM_KIB);
      t.after(() => {
        disk.remove();
        rmSync(place, { recursive: true });
      });
      await using etcd = await startEtcd();
      await using cluster = await startNodes({ log: etcd.url("drover"), ids: role === "leader" ? [] : ["a", "b"] });
      const small = await cluster.add("small", ["--data", place]);
      if (role === "leader") for (const id of ["a", "b"]) await cluster.add(id);
      assert.equal((await cluster.leader()) === small, role === "leader");
      const taken = await fillUp(cluster.node(role === "leader" ? "small" : "a"), small);
      assert.ok(taken.length > 10, `${taken.length} were taken`);
      assert.equal(await small.ended(), EXIT.broken, small.said());
      assert.match(small.said(), /"code": ?"log_failed"/);
      assert.match(small.said(), /nothing that was acknowledged is lost; make at least \d+ MiB free for/);

      for (const node of [cluster.node("a"), cluster.node("b")]) {
        await until(`${node.id} to take a task`, async () => (await submit(node, `after-${node.id}`)).status === 202);
        for (const id of [...taken, `after-${node.id}`]) await until(`${id} on ${node.id}`, () => has(node, id));
      }
      disk.grow(20 * ROOM_KIB);
      await small.start();
      for (const id of [...taken, "after-a", "after-b"]) await until(`${id} on the small one`, () => has(small, id));
    });
});
