/**
 * A shared log over etcd keeps the promises of a log, and several nodes on it see one history.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { until, within } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { logContract } from "../contract/log-contract.ts";
import { inDirectory } from "../contract/stories.ts";
import { batchOf, collect, eventsOf, namesOf } from "../contract/vocabulary.ts";
import { openSharedLog, type SharedLog } from "../shared/shared-log.ts";
import { openEtcdJournal } from "./journal.ts";

const newDirectory = (): string => mkdtempSync(join(tmpdir(), "drover-shared-etcd-"));

if (etcdMissing !== false) test("a shared log over etcd", { skip: etcdMissing });
else contractOverEtcd();

function contractOverEtcd(): void {
  let starting: Promise<EtcdCluster> | null = null;
  let stories = 0;
  logContract(
    "the shared log over etcd",
    inDirectory(async (directory) => {
      starting ??= startEtcd();
      const url = (await starting).url(`story-${stories++}`);
      return async () => openSharedLog({ journal: await openEtcdJournal({ url }), directory });
    }),
  );
  after(async () => (await starting)?.[Symbol.asyncDispose]());
}

describe("nodes over three members of etcd", { skip: etcdMissing }, () => {
  test("the lead and the leading member go, and the next node has everything with the same hashes", async (context) => {
    await using etcd = await startEtcd({ members: 3 });
    const directories: string[] = [];
    context.after(() => {
      for (const directory of directories) rmSync(directory, { recursive: true });
    });
    const node = async (): Promise<SharedLog> => {
      directories.push(newDirectory());
      const directory = directories.at(-1) as string;
      return openSharedLog({ journal: await openEtcdJournal({ url: etcd.url("nodes") }), directory });
    };
    await using ann = await node();
    await using bob = await node();
    // etcd finds its next leader in a second or two, or later on a machine with other work.
    const old = await ann.acquireLead("ann", seconds(30));
    for (let at = 0; at < 40; at += 2) {
      if (at === 20) await (await etcd.leader()).kill();
      const answer = await ann.append(seq(at), old.epoch, batchOf(at + 1, 2), `batch-${at + 1}`);
      assert.equal(answer.type, "appended");
    }
    await old.release();
    const lead = await within("the next lead", bob.acquireLead("bob", seconds(3)));
    assert.deepEqual(eventsOf(await collect(bob.read(seq(0)))), namesOf(1, 40));
    assert.equal((await bob.append(seq(40), lead.epoch, batchOf(41, 1), "next")).type, "appended");
    assert.equal((await ann.append(seq(40), old.epoch, batchOf(41, 1), "late")).type, "conflict");
    const head = await bob.head();
    await until("what bob wrote, at ann", async () => (await ann.head()).seq === head.seq);
    assert.deepEqual((await ann.verify({ expect: head })).problems, []);
  });
});
