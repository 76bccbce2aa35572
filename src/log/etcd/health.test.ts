/**
 * One member that hangs is told as that, and does not hold up what the others say.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EtcdClient, Limits } from "./client.ts";
import { EtcdFault } from "./fault.ts";
import { healthOf } from "./health.ts";

/** So long a view of the cluster waits for all that the journal says of itself. */
const VIEW_MS = 2000;

test("a member that hangs is given up before anybody takes etcd for away, and the rest is told", async () => {
  const endpoints = ["h1:2379", "h2:2379"].map((name) => ({ name, host: name.slice(0, 2), port: 2379 }));
  const limits: number[] = [];
  const client = {
    endpoints,
    status: async ({ name }: { name: string }, { limitMs = Number.POSITIVE_INFINITY }: Limits = {}) => {
      limits.push(limitMs);
      if (name === "h2:2379") throw new EtcdFault("lost", "it did not answer in time");
      return { version: "3.5.16", dbBytes: 7, member: "1", leader: "1" };
    },
    alarms: async () => [],
  } as unknown as EtcdClient;
  const { version, members, warnings } = await healthOf(client);
  assert.ok(limits.length === 2 && Math.max(...limits) < VIEW_MS, limits.join());
  assert.deepEqual(
    members.map(({ isUp }) => isUp),
    [true, false],
  );
  assert.equal(version, "3.5.16");
  assert.deepEqual(warnings, ["the member h2:2379 of etcd does not answer: it did not answer in time"]);
});
