/**
 * A cluster whose journal is full: it goes on to answer reads and says why it takes nothing, no node ends, and with
 * room it takes again what it refused. Nodes are processes over a real etcd with a small quota, and over a real
 * PostgreSQL whose batches lie on a small disk.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { openJournal } from "../../src/log/shared/index.ts";
import { type NodeCluster, type NodeProcess, startNodes } from "../kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../kits/etcd.ts";
import { postgresMissing, startPostgres } from "../kits/postgres.ts";
import { cannotMount, mountSmallDisk } from "../kits/refusing-disks.ts";
import { MAIN } from "../kits/serve-process.ts";
import { until } from "../kits/waits.ts";

const LIMIT = { timeout: 300_000 };
const QUOTA_BYTES: number = 16 * 1024 * 1024;
/** Of the disk on which PostgreSQL has its batches. */
const SMALL_KIB = 8000;
const SUBMITS_MAX = 500;

type Json = Record<string, unknown>;
const shown = async (node: NodeProcess, path: string): Promise<Json> =>
  (await (await fetch(node.url() + path)).json()) as Json;

async function submit(node: NodeProcess, id: string, payload: string): Promise<Response> {
  const body = JSON.stringify({ id, agentId: "ann", action: "keep", payload, capabilities: ["nobody"] });
  return fetch(`${node.url()}/tasks`, { method: "POST", headers: { "content-type": "application/json" }, body });
}

/** A refusal that says to try again, whichever node gives it and whether anybody leads yet or not. */
async function isRefused(answer: Response): Promise<Json> {
  const problem = (await answer.json()) as Json;
  assert.equal(answer.status, 503, JSON.stringify(problem));
  assert.ok(["log_failed", "no_leader", "deposed"].includes(String(problem.code)), JSON.stringify(problem));
  assert.ok(Number(answer.headers.get("retry-after")) >= 1, JSON.stringify(problem));
  return problem;
}

/** Submits what cannot be packed until it is refused; answers what was taken. */
async function fill(cluster: NodeCluster): Promise<string[]> {
  const node = await cluster.leader();
  const taken: string[] = [];
  for (let count = 0; count < SUBMITS_MAX; count++) {
    const id = `f${count}`;
    const answer = await submit(node, id, randomBytes(150_000).toString("base64"));
    if (answer.status === 202) taken.push(id);
    else {
      await isRefused(answer);
      return taken;
    }
  }
  throw new Error("the journal never filled up");
}

async function isReadOnlyEverywhere({ nodes }: NodeCluster, taken: readonly string[]): Promise<void> {
  for (const node of nodes) {
    // It answers reads, so it stays where callers are sent to; one that was just started may first catch up.
    await until(`${node.id} to be ready, and read-only`, async () => {
      const ready = await fetch(`${node.url()}/readyz`);
      return ready.status === 200 && /no room left/.test(String(((await ready.json()) as Json).readOnly));
    });
    const said = /READ-ONLY, since nothing can be written: .* no room left/;
    await until(`the line of ${node.id}`, () => said.test(node.said()));
    for (const id of [taken[0], taken.at(-1)]) assert.equal((await shown(node, `/tasks/${id}`)).state, "queued");
    await until(`${node.id} to refuse with the reason`, async () => {
      const { code, error, details } = await isRefused(await submit(node, "late", "x"));
      return (
        code === "no_leader" &&
        (details as Json | undefined)?.journal === "full" &&
        /read-only.*no room left/.test(String(error))
      );
    });
    assert.match(await (await fetch(`${node.url()}/metrics`)).text(), /^drover_node_read_only 1$/m);
    const { log } = (await shown(node, "/cluster")) as { log: { warnings: string[] } };
    assert.ok(
      log.warnings.some((text) => /^READ-ONLY: .*no room left/.test(text)),
      log.warnings.join(),
    );
  }
}

async function areThere({ nodes }: NodeCluster, taken: readonly string[]): Promise<void> {
  for (const node of nodes) {
    assert.ok(node.isRunning());
    for (const id of taken) assert.ok((await fetch(`${node.url()}/tasks/${id}`)).ok, `${id} on ${node.id}`);
  }
}

async function takesAgain(cluster: NodeCluster): Promise<void> {
  for (const node of cluster.nodes) {
    await until(`${node.id} to take a task`, async () => {
      const answer = await submit(node, `again-${node.id}`, "x");
      if (answer.status !== 202) await isRefused(answer);
      return answer.status === 202;
    });
  }
  for (const node of cluster.nodes) {
    await until(`${node.id} to be as before`, async () => (await shown(node, "/readyz")).readOnly === undefined);
    for (const { id } of cluster.nodes)
      await until(`${id}'s task on ${node.id}`, async () => (await fetch(`${node.url()}/tasks/again-${id}`)).ok);
  }
}

describe("a full journal", LIMIT, () => {
  test("etcd without room is read by all, written by none, and goes on by itself", { skip: etcdMissing }, async () => {
    await using etcd = await startEtcd({ flags: ["--quota-backend-bytes", String(QUOTA_BYTES)] });
    await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["a", "b", "c"] });
    const taken = await fill(cluster);
    assert.ok(taken.length > 10, `${taken.length} were taken`);
    await isReadOnlyEverywhere(cluster, taken);
    const status = [MAIN, "cluster", "status", "--url", cluster.urls()];
    const asked = promisify(execFile)(process.execPath, status, { timeout: 60_000 });
    const { code, stdout } = await asked.then(
      () => assert.fail("a cluster that takes nothing is exit code 1"),
      (error: { readonly code: number; readonly stdout: string }) => error,
    );
    assert.equal(code, 1);
    assert.match(stdout, /^warning: READ-ONLY: .*no room left/m);
    assert.doesNotMatch(stdout, /^[abc] +down/m);
    // One that is started anew meanwhile can be read too.
    const again = cluster.node("b");
    assert.equal(await again.stop(), 0);
    await again.start();
    await isReadOnlyEverywhere(cluster, taken);

    await using journal = await openJournal(etcd.url("drover"));
    await journal.prune((await journal.head()).seq);
    await etcd.ctl("defrag");
    await etcd.ctl("alarm", "disarm");
    await takesAgain(cluster);
    await areThere(cluster, taken);
    const said = /takes events again: this node is no longer read-only/;
    for (const node of cluster.nodes) await until(`the line of ${node.id}`, () => said.test(node.said()));
  });

  const cannotFill = postgresMissing === false ? cannotMount() : postgresMissing;
  test("PostgreSQL without room is read by all, refuses writes, and goes on by itself", {
    skip: cannotFill,
  }, async (t) => {
    await using postgres = await startPostgres();
    await using cluster = await startNodes({ log: postgres.url(), ids: ["a", "b"] });
    // Its own files need room too, or it would not even answer: only the batches lie on the small disk.
    const place = mkdtempSync(join(tmpdir(), "drover-small-"));
    const disk = mountSmallDisk(place, SMALL_KIB);
    t.after(() => {
      disk.remove();
      rmSync(place, { recursive: true });
    });
    const { uid, gid } = statSync(postgres.directory);
    chownSync(place, uid, gid);
    await postgres.sql(`CREATE TABLESPACE small LOCATION '${place}'`);
    await postgres.sql("ALTER TABLE drover.batch SET TABLESPACE small");
    const taken = await fill(cluster);
    assert.ok(taken.length > 10, `${taken.length} were taken`);
    const isSaid = /READ-ONLY, since nothing can be written: PostgreSQL .* has no room left on its disk/;
    await until("a line about it", () => cluster.nodes.some((node) => isSaid.test(node.said())));
    for (const node of cluster.nodes) {
      await isRefused(await submit(node, "late", randomBytes(150_000).toString("base64")));
      await until(`${node.id} to answer a read`, async () => (await fetch(`${node.url()}/tasks/${taken.at(-1)}`)).ok);
    }
    disk.grow(SMALL_KIB);
    await takesAgain(cluster);
    await areThere(cluster, taken);
  });
});
