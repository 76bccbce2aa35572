/**
 * Room in etcd: pruning gives it back, and an etcd that has none left is full until somebody makes some.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { until, within } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { appendSizes, sealed } from "../contract/journal-contract.ts";
import { collect, failsWith } from "../contract/vocabulary.ts";
import type { Journal } from "../journal/journal.ts";
import { type Head, LogFailure } from "../log.ts";
import { readAddress } from "./address.ts";
import { createClient } from "./client.ts";
import { openEtcdJournal } from "./journal.ts";

const MEBIBYTE: number = 1024 * 1024;

type Sizes = { readonly dbSize: number; readonly dbSizeInUse: number };

async function sizesOf(etcd: EtcdCluster): Promise<Sizes> {
  const [status] = JSON.parse(await etcd.ctl("endpoint", "status", "-w", "json"));
  return status.Status;
}

/** Appends batches of a mebibyte until there is no room; answers the head. */
async function fillUp(journal: Journal): Promise<Head> {
  for (let count = 0; count < 100; count++) {
    const answer = await appendSizes(journal, [1], { payloadBytes: MEBIBYTE }).catch((error: unknown) => error);
    if (answer instanceof LogFailure) {
      failsWith("journal-full")(answer);
      assert.match(answer.message, /no room left.*etcdctl defrag.*etcdctl alarm disarm/);
      return journal.head();
    }
    assert.ok(!(answer instanceof Error), String(answer));
  }
  throw new Error("etcd took 100 MiB and has a quota of 16");
}

describe("room in etcd", { skip: etcdMissing }, () => {
  test("what is pruned is given back, parts of large batches too", async () => {
    await using etcd = await startEtcd();
    await using journal = await openEtcdJournal({ url: etcd.url("room") });
    await appendSizes(journal, [1, 1, 1, 1], { payloadBytes: 4 * MEBIBYTE });
    // etcd counts with its next write to disk, and forgets behind the answer, in steps.
    const countAgain = (): Promise<string> => etcd.ctl("put", "/other", "counted with a write");
    await until("room that is taken", async () => (await sizesOf(etcd)).dbSizeInUse > 16 * MEBIBYTE, countAgain);
    assert.equal((await journal.prune(seq(3))).seq, 3);
    await until("room that is given back", async () => (await sizesOf(etcd)).dbSizeInUse < 8 * MEBIBYTE, countAgain);
    assert.equal((await collect(journal.read(seq(3)))).length, 1);
    const keys = (await etcd.ctl("get", "--prefix", "/room/", "--keys-only")).split("\n").filter((key) => key !== "");
    assert.deepEqual(keys.filter((key) => /batch|part/.test(key)).length, 1 + 4);
  });

  test("a full etcd takes nothing, shows everything, keeps the lead, and takes again what it refused", async () => {
    await using etcd = await startEtcd({ flags: ["--quota-backend-bytes", String(16 * MEBIBYTE)] });
    await using journal = await openEtcdJournal({ url: etcd.url("full") });
    const lead = await journal.acquireLead("ann", seconds(4));
    const head = await fillUp(journal);
    const entry = sealed(head, 1, { batchId: "refused" });
    await assert.rejects(journal.append(entry), failsWith("journal-full"));
    assert.equal((await collect(journal.read(seq(0)))).length, head.seq);
    assert.match((await journal.describe()).warnings.join(), /no room left and takes nothing more/);
    // Leases are still renewed, so nobody takes the lead meanwhile.
    const client = createClient(readAddress(etcd.url("full")));
    assert.ok(await client.keepAlive((await client.get("/full/lead"))?.lease ?? ""));
    client.close();
    assert.ok(lead.holds());

    await journal.prune(seq(head.seq - 1));
    await etcd.ctl("defrag");
    await assert.rejects(journal.append(entry), failsWith("journal-full"));
    await etcd.ctl("alarm", "disarm");
    assert.equal((await journal.append(entry)).type, "appended");
    assert.deepEqual((await journal.describe()).warnings, []);
  });

  test("whoever wants the lead of a full etcd waits, says so, and gets it when there is room", async () => {
    await using etcd = await startEtcd({ flags: ["--quota-backend-bytes", String(16 * MEBIBYTE)] });
    const notices: string[] = [];
    await using journal = await openEtcdJournal({ url: etcd.url("full"), onNotice: (line) => notices.push(line) });
    const head = await fillUp(journal);
    const taking = journal.acquireLead("ann", seconds(2));
    await until("a line about it", () => notices.some((line) => /waiting for the journal .*no room left/.test(line)));
    await journal.prune(head.seq);
    await etcd.ctl("defrag");
    await etcd.ctl("alarm", "disarm");
    assert.equal((await within("the lead", taking)).epoch, head.epoch + 1);
  });
});
