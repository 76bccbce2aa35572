/**
 * Real nodes over a real etcd that was pruned: one that was away, and one that is new, get the history from another
 * over HTTP; who is no node and no admin gets nothing. A running node is copied by its URL.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { type NodeProcess, startNodes } from "../../../test/kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { until } from "../../../test/kits/waits.ts";
import { openJournal } from "../../log/shared/by-url.ts";
import { nodeToken } from "../../log/shared/node-token.ts";
import { newQuestion, type SealedWord } from "../../log/shared/node-word.ts";
import { openSqliteLog } from "../../log/sqlite/sqlite-log.ts";
import type { Verified } from "../../protocol/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

const headers = { "content-type": "application/json" };
const has = async (node: NodeProcess, id: string): Promise<boolean> => (await fetch(`${node.url()}/tasks/${id}`)).ok;
const submit = async (node: NodeProcess, id: string): Promise<boolean> => {
  const body = JSON.stringify({ id, agentId: "ann", action: "x", params: { of: id } });
  return (await fetch(`${node.url()}/tasks`, { method: "POST", headers, body })).status === 202;
};

describe("nodes over an etcd that was pruned", { skip: etcdMissing, timeout: 300_000 }, () => {
  test("one that was away has all that it missed, and verifies; a node is copied by its URL", async (context) => {
    await using etcd = await startEtcd();
    const log = etcd.url("drover");
    await using cluster = await startNodes({ log, ids: ["a", "b"], flags: ["--no-worker"] });
    const { leader } = cluster;
    const submitted = (id: string): Promise<void> =>
      until(`${id} to be taken`, async () => submit(await leader(), id).catch(() => false));
    await submitted("t1");
    for (const node of cluster.nodes) await until(`t1 on ${node.id}`, () => has(node, "t1"));
    const first = await leader();
    const away = cluster.nodes.find((node) => node !== first) as NodeProcess;
    await away.kill();
    for (const id of ["t2", "t3"]) await submitted(id);
    await using journal = await openJournal(log);
    await journal.prune((await journal.head()).seq);
    await submitted("t4");
    await away.start();
    for (const id of ["t2", "t3", "t4"]) await until(`${id} on the one that was away`, () => has(away, id));
    assert.match(away.said(), /fetched from another node/);
    const added = await cluster.add("c", ["--no-worker"]);
    for (const id of ["t1", "t4"]) await until(`${id} on the one that is new`, () => has(added, id));

    const said = await fetch(`${first.url()}/cluster/node?question=${newQuestion()}`);
    const word = (await said.json()) as SealedWord;
    const stranger = { authorization: `Bearer ${nodeToken("5e".repeat(32), "x", word)}` };
    assert.equal((await fetch(`${first.url()}/cluster/log`, { headers: stranger })).status, 401);
    const node = { authorization: `Bearer ${nodeToken(await journal.secret(), "x", word)}` };
    assert.equal((await fetch(`${first.url()}/cluster/log?after=x`, { headers: node })).status, 400);
    assert.equal((await fetch(`${away.url()}/cluster/log`, { headers: node })).status, 401, "it is for the other node");
    const before = nodeToken(await journal.secret(), "x", { ...word, moment: `${"0".repeat(16)}-0` });
    const answer = await fetch(`${first.url()}/cluster/snapshot`, { headers: { authorization: `Bearer ${before}` } });
    assert.equal(answer.status, 401, "it is of another process");

    const directory = mkdtempSync(join(tmpdir(), "drover-from-node-"));
    context.after(() => rmSync(directory, { recursive: true, force: true }));
    const terminal = testTerminal({ cwd: directory });
    assert.equal(
      await runCommandLine(["log", "copy", first.url(), "copied", "--json"], terminal, VERBS),
      0,
      terminal.complained(),
    );
    const { head } = JSON.parse(terminal.shown()) as { head: { seq: number; hash: string } };
    await using copied = await openSqliteLog({ directory: join(directory, "copied") });
    const { ok, problems } = await copied.verify({ expect: head as never });
    assert.deepEqual([ok, problems], [true, []]);

    const verified = async (data: string): Promise<string> => {
      const verifying = testTerminal({ cwd: directory });
      await runCommandLine(["verify", "--data", data], verifying, VERBS);
      return verifying.shown();
    };
    const isKnown = async (): Promise<boolean> => /key [0-9a-f]{64}, that of node c\n/.test(await verified(added.data));
    await until("the key of c in the log", isKnown);
    assert.match(await verified("copied"), /key [0-9a-f]{64}, of none of the nodes that the log names\n/);
    await until("all others to have signed", async () => {
      const { witnesses } = (await (await fetch(`${added.url()}/events/verify`)).json()) as Verified;
      return (witnesses ?? []).map(({ node: name }) => name).join() === "a,b";
    });
  });
});
