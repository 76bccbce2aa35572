/**
 * A cluster of processes under a constant load, over each engine, while one thing after the other fails.
 *
 * All rounds are played on one cluster. After each the load must flow again; in the end every task has ended, and the
 * checker, which knows nothing of the product, compares what callers were told with the history of every node.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type NodeCluster, type NodeProcess, startNodes } from "../kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../kits/etcd.ts";
import { judge } from "../kits/faults/cluster-checker.ts";
import { type ClusterLoad, startLoad } from "../kits/faults/cluster-load.ts";
import { postgresMissing, startPostgres } from "../kits/postgres.ts";
import { startServe } from "../kits/serve-process.ts";
import { startProxy, type TcpProxy } from "../kits/tcp-proxy.ts";
import { until, within } from "../kits/waits.ts";

const LIMIT = { timeout: 600_000 };
const FLAGS = ["--no-worker", "--log-level", "silent"];
/** Longer than any round takes on a machine that does other things as well. */
const ROUND_MS = 120_000;
/** Longer than a node takes to answer anything, even "not now". */
const ANSWER_MS = 30_000;

type Stage = { readonly cluster: NodeCluster; readonly load: ClusterLoad };
type Round = readonly [name: string, play: (stage: Stage) => Promise<void>];

async function play(context: TestContext, cluster: NodeCluster, rounds: readonly Round[]): Promise<void> {
  const load = startLoad(() => cluster.nodes.filter((node) => node.isRunning()).map((node) => node.url()));
  const flows = (after: string): Promise<void> => within(`the load to flow ${after}`, load.flows(20), ROUND_MS);
  try {
    await flows("at first");
    for (const [name, round] of rounds) {
      const startedAt = performance.now();
      await within(`the end of this round: ${name}`, round({ cluster, load }), ROUND_MS);
      await flows(`after this: ${name}`);
      context.diagnostic(`${name}: ${Math.round(performance.now() - startedAt)} ms`);
    }
    await within("every task to end", load.drain(), ROUND_MS);
    assert.deepEqual(await within("one history", judge(cluster.nodes, load.promises), ROUND_MS), []);
    assert.deepEqual(load.faults, []);
    for (const kind of ["submitted", "cancelled", "result", "settled"])
      assert.ok(
        load.promises.some((promised) => promised.kind === kind),
        `something was ${kind}`,
      );
  } finally {
    await load.stop();
  }
}

async function follower({ followers }: NodeCluster): Promise<NodeProcess> {
  return (await followers())[0] as NodeProcess;
}

const ROUNDS: readonly Round[] = [
  [
    "the leader is killed",
    async ({ cluster, load }) => {
      const leader = await cluster.leader();
      await leader.kill();
      await cluster.leader(leader);
      await load.flows(10);
      await leader.start();
    },
  ],
  [
    "a follower is killed",
    async ({ cluster, load }) => {
      const node = await follower(cluster);
      await node.kill();
      await load.flows(10);
      await node.start();
    },
  ],
  [
    "the leader is stopped for longer than its lease, and goes on",
    async ({ cluster, load }) => {
      const leader = await cluster.leader();
      leader.freeze();
      try {
        await cluster.leader(leader);
        await load.flows(10);
      } finally {
        leader.thaw();
      }
    },
  ],
  [
    "the leader ends in good order",
    async ({ cluster }) => {
      const leader = await cluster.leader();
      assert.equal(await leader.stop(), 0, leader.said());
      await cluster.leader(leader);
      await leader.start();
    },
  ],
];

/** A node that reaches the journal through proxies, and leads when this begins. */
const cutOff = (
  way: "both" | "answers",
  node: (cluster: NodeCluster) => NodeProcess,
  proxies: readonly TcpProxy[],
): Round => [
  `a node that leads is cut off from the journal, ${way === "both" ? "both ways" : "one way"}`,
  async ({ cluster, load }) => {
    const cut = node(cluster);
    const others = cluster.nodes.filter((one) => one !== cut);
    await Promise.all(others.map((one) => one.stop()));
    assert.equal(await cluster.leader(), cut);
    await Promise.all(others.map((one) => one.start()));
    for (const proxy of proxies) proxy.cut(way);
    try {
      await cluster.leader(cut);
      await load.flows(10);
    } finally {
      for (const proxy of proxies) proxy.cut("none");
    }
  },
];

/** One whose disk is full leaves with its exit code, and the others go on. */
const diskFull = (log: string): Round => [
  "the disk of a node is full",
  async ({ cluster, load }) => {
    const cwd = mkdtempSync(join(tmpdir(), "drover-full-"));
    const flags = ["--log", log, "--node", "full", "--data", join(cwd, "data"), ...FLAGS];
    try {
      const node = await startServe({ cwd, flags, before: `ulimit -f ${ROOM_BLOCKS}` });
      let isOver = false;
      const ended = node.ended.finally(() => {
        isOver = true;
      });
      for (let count = 1; !isOver; count++) await submitLarge(cluster, `large-${count}`);
      assert.equal(await ended, BROKEN, node.said());
      await load.flows(10);
    } finally {
      rmSync(cwd, { recursive: true, force: true });
    }
  },
];
/** In blocks of 512 bytes: what a file of its log may have. */
const ROOM_BLOCKS = 6000;
const BROKEN = 6;

async function submitLarge(cluster: NodeCluster, id: string): Promise<void> {
  const params = { text: randomBytes(60_000).toString("base64") };
  const body = JSON.stringify({ id, agentId: "large", action: "work", params });
  const { url } = await cluster.leader();
  const signal = AbortSignal.timeout(ANSWER_MS);
  await fetch(`${url()}/tasks`, { method: "POST", headers: { "content-type": "application/json" }, body, signal });
}

test("three nodes over three members of etcd", { ...LIMIT, skip: etcdMissing }, async (context) => {
  await using etcd = await startEtcd({ members: 3 });
  const log = etcd.url("cell");
  const proxies = await Promise.all(etcd.members.map(({ endpoint }) => startProxy(Number(endpoint.split(":")[1]))));
  context.after(() => Promise.all(proxies.map((proxy) => proxy.close())));
  await using cluster = await startNodes({ log, ids: ["a", "b"], flags: FLAGS });
  const behind = `etcd://${proxies.map(({ port }) => `127.0.0.1:${port}`).join(",")}/cell`;
  await cluster.add("c", [], behind);
  await play(context, cluster, [
    ...ROUNDS,
    diskFull(log),
    ...(["both", "answers"] as const).map((way) => cutOff(way, ({ node }) => node("c"), proxies)),
    [
      "a member of etcd is killed, the one that leads there",
      async ({ load }) => {
        const member = await etcd.leader();
        await member.kill();
        await load.flows(10);
        await member.start();
      },
    ],
    [
      "the majority of etcd is lost, and comes back",
      async ({ cluster: { nodes } }) => {
        const lost = etcd.members.slice(1);
        await Promise.all(lost.map((member) => member.kill()));
        const isUnready = async ({ url }: NodeProcess): Promise<boolean> =>
          (await fetch(`${url()}/readyz`, { signal: AbortSignal.timeout(ANSWER_MS) })).status === 503;
        for (const node of nodes) await until(`${node.id} not to be ready`, () => isUnready(node));
        await Promise.all(lost.map((member) => member.start()));
      },
    ],
  ]);
});

test("three nodes over PostgreSQL and its standby", { ...LIMIT, skip: postgresMissing }, async (context) => {
  await using primary = await startPostgres({ wal_level: "replica", synchronous_standby_names: "standby1" });
  await using standby = await startPostgres({ synchronous_standby_names: "" }, primary);
  const proxies = await Promise.all([primary, standby].map(({ port }) => startProxy(port)));
  context.after(() => Promise.all(proxies.map((proxy) => proxy.close())));
  const log = primary.url().replace(`:${primary.port}/`, `:${primary.port},127.0.0.1:${standby.port}/`);
  const [toPrimary, toStandby] = proxies.map(({ port }) => port);
  const behind = primary.url().replace(`:${primary.port}/`, `:${toPrimary},127.0.0.1:${toStandby}/`);
  await using cluster = await startNodes({ log, ids: ["a", "b"], flags: FLAGS });
  await cluster.add("c", [], behind);
  await play(context, cluster, [
    ...ROUNDS,
    diskFull(log),
    ...(["both", "answers"] as const).map((way) => cutOff(way, ({ node }) => node("c"), proxies)),
    [
      "PostgreSQL crashes and comes back",
      async () => {
        await primary.kill();
        await primary.start();
      },
    ],
    [
      "PostgreSQL is lost, and its standby is promoted",
      async () => {
        await primary.kill();
        await standby.sql("SELECT pg_promote()");
      },
    ],
  ]);
});
