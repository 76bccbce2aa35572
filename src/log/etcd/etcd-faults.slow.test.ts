/**
 * The journal on etcd while members die, hang and come back, and while answers and watches are lost on the way.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type EtcdCluster, type EtcdMember, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { startProxy } from "../../../test/kits/tcp-proxy.ts";
import { inbox, until, within } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { sealed } from "../contract/journal-contract.ts";
import { collect, each, failsWith } from "../contract/vocabulary.ts";
import type { Journal, SealedBatch } from "../journal/journal.ts";
import { type Head, LogFailure } from "../log.ts";
import { readAddress } from "./address.ts";
import { createClient } from "./client.ts";
import { openEtcdJournal } from "./journal.ts";

const TTL = seconds(2);
/** The last lead is given up, its key read, lead and head read, a lease taken, the lead taken. */
const CALLS_FOR_A_LEAD = 5;

/** Appends until it is answered: what is unknown or out of reach is asked again, with the same id. */
async function appendSurely(journal: Journal, entry: SealedBatch): Promise<{ head: Head; asks: number }> {
  for (let asks = 1; ; asks++) {
    const answer = await journal.append(entry).catch((error: unknown) => {
      if (error instanceof LogFailure && error.code === "unreachable") return null;
      throw error;
    });
    if (answer === null || answer.type === "unknown") continue;
    assert.equal(answer.type, "appended");
    return { head: (answer as { head: Head }).head, asks };
  }
}

/** Every batch once, each linked to the one before, up to the head. */
async function assertWhole(journal: Journal, ids: readonly string[]): Promise<void> {
  const entries = await collect(journal.read(seq(0)));
  assert.deepEqual(each(entries, "batchId"), ids);
  for (const [index, { priorHash, firstSeq }] of entries.entries()) {
    const before = entries[index - 1];
    if (before === undefined) continue;
    assert.deepEqual([Buffer.from(priorHash), firstSeq], [Buffer.from(before.postHash), before.lastSeq + 1]);
  }
  assert.equal((await journal.head()).seq, entries.at(-1)?.lastSeq);
}

const urlOf = (members: readonly EtcdMember[], prefix: string): string =>
  `etcd://${members.map(({ endpoint }) => endpoint).join(",")}/${prefix}`;

const followersOf = ({ members }: EtcdCluster, leader: EtcdMember): [EtcdMember, ...EtcdMember[]] =>
  members.filter((member) => member !== leader) as [EtcdMember, ...EtcdMember[]];

describe("the journal on three members of etcd", { skip: etcdMissing }, () => {
  test("the leading member is killed while batches are appended: each is there once, followers get all", async () => {
    await using etcd = await startEtcd({ members: 3 });
    await using ann = await openEtcdJournal({ url: etcd.url("kill") });
    await using bob = await openEtcdJournal({ url: etcd.url("kill") });
    const end = new AbortController();
    const followed = inbox<string>("a batch at the follower");
    const following = (async () => {
      for await (const { batchId } of bob.follow(seq(0), end.signal)) followed.put(batchId);
    })();
    const ids = Array.from({ length: 60 }, (_, index) => `batch ${index}`);
    let head = await ann.head();
    for (const batchId of ids) {
      if (batchId === "batch 20") await (await etcd.leader()).kill();
      ({ head } = await appendSurely(ann, sealed(head, 2, { batchId })));
    }
    await assertWhole(ann, ids);
    for (const batchId of ids) assert.equal(await followed.next(), batchId);
    end.abort();
    await following;
  });

  test("a member that hangs costs neither the lead nor a batch: the others are asked", async () => {
    await using etcd = await startEtcd({ members: 3 });
    const leader = await etcd.leader();
    const [hanging, ...others] = followersOf(etcd, leader);
    await using ann = await openEtcdJournal({ url: urlOf([hanging, leader, ...others], "hang") });
    await using bob = await openEtcdJournal({ url: urlOf([hanging, leader, ...others], "hang") });
    const lead = await ann.acquireLead("ann", seconds(4));
    const end = new AbortController();
    const followed = bob.follow(seq(0), end.signal)[Symbol.asyncIterator]();
    let head = await ann.head();
    ({ head } = await appendSurely(ann, sealed(head, 1, { batchId: "before" })));
    assert.equal((await followed.next()).value?.batchId, "before");
    hanging.freeze();
    const next = followed.next();
    ({ head } = await appendSurely(ann, sealed(head, 1, { batchId: "while it hangs" })));
    assert.equal((await within("the follower's news", next)).value?.batchId, "while it hangs");
    assert.ok(lead.holds());
    assert.match((await ann.describe()).warnings.join(), new RegExp(`${hanging.endpoint} of etcd does not answer`));
    hanging.thaw();
    end.abort();
  });

  test("who looks for the leading member finds it, and then asks nobody else", async () => {
    await using etcd = await startEtcd({ members: 3 });
    const leader = await etcd.leader();
    const last = [...followersOf(etcd, leader), leader];
    const proxies = await Promise.all(last.map(({ endpoint }) => startProxy(Number(endpoint.split(":")[1]))));
    const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`);
    const client = createClient(readAddress(`etcd://${hosts.join(",")}/leader`));
    const sent = (): number[] => proxies.map((proxy) => proxy.sent());
    await client.put("key", Buffer.from("asked of the first"));
    await client.seekLeader();
    const [first, second, leading = 0] = sent();
    for (let count = 0; count < 5; count++) await client.put("key", Buffer.from("asked of the leader"));
    assert.deepEqual(sent(), [first, second, leading + 5]);
    client.close();
    for (const proxy of proxies) await proxy.close();
  });

  test("without a majority nothing is appended, and when it is back everything goes on by itself", async () => {
    await using etcd = await startEtcd({ members: 3 });
    const leader = await etcd.leader();
    const gone = [leader, followersOf(etcd, leader)[0]];
    const notices = inbox<string>("a line about the journal");
    const options = { url: etcd.url("majority"), onNotice: notices.put };
    await using ann = await openEtcdJournal({ url: etcd.url("majority") });
    await using bob = await openEtcdJournal(options);
    const end = new AbortController();
    const followed = bob.follow(seq(0), end.signal)[Symbol.asyncIterator]();
    let { head } = await appendSurely(ann, sealed(await ann.head(), 1, { batchId: "before" }));
    await followed.next();
    const next = followed.next();
    await Promise.all(gone.map((member) => member.kill()));
    await assert.rejects(ann.head(), failsWith("unreachable"));
    assert.match(await notices.next(), /waiting for the journal since \d+ s: .*cannot be reached/);
    const entry = sealed(head, 1, { batchId: "without" });
    const answer = await ann.append(entry).catch((error: LogFailure) => ({ type: error.code }));
    assert.match(answer.type, /unknown|unreachable/);
    await Promise.all(gone.map((member) => member.start()));
    ({ head } = await appendSurely(ann, entry));
    assert.equal((await next).value?.batchId, "without");
    await until("a line that it is back", async () => /answers again/.test(await notices.next()));
    await assertWhole(ann, ["before", "without"]);
    assert.equal(head.seq, 2);
    end.abort();
  });
});

describe("the journal on one member of etcd", { skip: etcdMissing }, () => {
  test("etcd hangs for longer than the lease: the lead is lost, another has it, the first is refused", async () => {
    await using etcd = await startEtcd();
    const [member] = etcd.members as [EtcdMember];
    await using ann = await openEtcdJournal({ url: etcd.url("lease") });
    await using bob = await openEtcdJournal({ url: etcd.url("lease") });
    const lead = await ann.acquireLead("ann", TTL);
    const taking = bob.acquireLead("bob", TTL);
    const entry = sealed(await ann.head(), 1, { epoch: lead.epoch });
    member.freeze();
    const loss = await within("the loss of the lead", lead.lost);
    assert.equal(loss.reason, "expired");
    assert.ok(!lead.holds());
    member.thaw();
    const next = await within("the next lead", taking);
    assert.ok(next.epoch > lead.epoch);
    assert.equal((await ann.append(entry)).type, "conflict");
  });

  test("a lead whose key is taken away is lost, though its lease lives", async () => {
    await using etcd = await startEtcd();
    await using ann = await openEtcdJournal({ url: etcd.url("taken") });
    await using bob = await openEtcdJournal({ url: etcd.url("taken") });
    const lead = await ann.acquireLead("ann", TTL);
    await etcd.ctl("del", "/taken/lead");
    assert.equal((await within("the loss of the lead", lead.lost)).reason, "taken");
    assert.ok((await bob.acquireLead("bob", TTL)).epoch > lead.epoch);
  });

  test("a lost answer is unknown; the same append again is appended, once", async () => {
    await using etcd = await startEtcd();
    const [member] = etcd.members as [EtcdMember];
    await using proxy = await startProxy(Number(member.endpoint.split(":")[1]));
    await using ann = await openEtcdJournal({ url: `etcd://127.0.0.1:${proxy.port}/lost` });
    await using bob = await openEtcdJournal({ url: etcd.url("lost") });
    const { head } = await appendSurely(ann, sealed(await ann.head(), 2, { batchId: "first" }));
    const entry = sealed(head, 2, { batchId: "second" });
    const lost = proxy.loseAnswer();
    assert.equal((await ann.append(entry)).type, "unknown");
    await lost;
    assert.equal((await bob.head()).seq, 4);
    assert.equal((await ann.append(entry)).type, "appended");
    await assertWhole(bob, ["first", "second"]);
  });

  test("whichever answer is lost on the way to a lead, it is taken", async () => {
    await using etcd = await startEtcd();
    const [member] = etcd.members as [EtcdMember];
    await using proxy = await startProxy(Number(member.endpoint.split(":")[1]));
    await using ann = await openEtcdJournal({ url: `etcd://127.0.0.1:${proxy.port}/lost-lead` });
    for (let passing = 0; passing < CALLS_FOR_A_LEAD; passing++) {
      const lost = proxy.loseAnswer(passing);
      const lead = await within("the lead", ann.acquireLead("ann", TTL));
      assert.deepEqual((await ann.nodes()).lead, { node: "ann", epoch: lead.epoch });
      assert.ok(lead.holds());
      await within("the loss of an answer", lost);
    }
  });

  test("a watch that goes silent is found out, and what it did not tell is read", async () => {
    await using etcd = await startEtcd();
    const [member] = etcd.members as [EtcdMember];
    await using proxy = await startProxy(Number(member.endpoint.split(":")[1]));
    await using ann = await openEtcdJournal({ url: etcd.url("silent") });
    await using bob = await openEtcdJournal({ url: `etcd://127.0.0.1:${proxy.port}/silent` });
    const end = new AbortController();
    const followed = bob.follow(seq(0), end.signal)[Symbol.asyncIterator]();
    let { head } = await appendSurely(ann, sealed(await ann.head(), 1, { batchId: "first" }));
    await followed.next();
    for (const batchId of ["second", "third"]) {
      const next = followed.next();
      proxy.silence();
      ({ head } = await appendSurely(ann, sealed(head, 1, { batchId })));
      assert.equal((await within("the batch that the watch did not tell", next)).value?.batchId, batchId);
    }
    end.abort();
  });
});
