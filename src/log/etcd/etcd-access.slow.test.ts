/**
 * Who gets in: users, certificates, schemes, keys of others. What is refused is refused in one sentence that says what
 * to do and has no password in it, and nothing is written.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Certificates, makeCertificates, opensslMissing } from "../../../test/kits/certificates.ts";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { answering } from "../../../test/kits/loopback.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { appendSizes, sealed } from "../contract/journal-contract.ts";
import { collect } from "../contract/vocabulary.ts";
import type { Journal } from "../journal/journal.ts";
import { LogFailure, type LogFailureCode } from "../log.ts";
import { type EtcdJournalOptions, openEtcdJournal } from "./journal.ts";

const SECRET = "correct horse";
const ANN = { node: "ann", url: "http://ann:1", seq: seq(0), hash: "0".repeat(64), epoch: 0, stored: seq(0) };

/** Opening it fails so; what is opened by mistake is closed. */
async function refuses(options: EtcdJournalOptions, code: LogFailureCode, says: RegExp): Promise<void> {
  const failure = await openEtcdJournal(options).then(
    (journal) => journal.close().then(() => null),
    (error: unknown) => error,
  );
  assert.ok(failure instanceof LogFailure, `it was opened, or failed with ${failure}`);
  assert.match(failure.message, says);
  assert.equal(failure.code, code, failure.message);
  assert.ok(!failure.message.includes(SECRET) && !failure.message.includes("\n"), failure.message);
}

async function works(options: EtcdJournalOptions): Promise<void> {
  await using journal = await openEtcdJournal(options);
  const { seq: reached } = await appendSizes(journal, [1, 2]);
  assert.equal(reached, 3);
  assert.equal((await collect(journal.read(seq(0)))).length, 2);
  const lead = await journal.acquireLead("ann", seconds(2));
  assert.equal((await journal.nodes()).lead?.epoch, lead.epoch);
  assert.deepEqual((await journal.describe()).warnings, []);
}

/** The revision of the whole store: it rises with every write. */
async function revisionOf(etcd: EtcdCluster): Promise<number> {
  const [status] = JSON.parse(await etcd.ctl("endpoint", "status", "-w", "json"));
  return status.Status.header.revision;
}

const withUser = (url: string, user: string, password: string): string =>
  url.replace("etcd://", `etcd://${user}:${encodeURIComponent(password)}@`);

describe("what is in etcd already", { skip: etcdMissing }, () => {
  let etcd: EtcdCluster;
  before(async () => {
    etcd = await startEtcd();
  });
  after(() => etcd[Symbol.asyncDispose]());

  const strange: { name: string; key: string; value: string; code: LogFailureCode; says: RegExp }[] = [
    { name: "keys of others", key: "/a/registry", value: "x", code: "refused", says: /under \/a\/ .* not Drover's/ },
    {
      name: "a head of others",
      key: "/b/head",
      value: "ref: x",
      code: "refused",
      says: /under \/b\/head .* not Drover's/,
    },
    {
      name: "a newer version",
      key: "/c/head",
      value: '{"drover":"journal","version":99}',
      code: "unsupported-version",
      says: /newer version of Drover \(format 99/,
    },
    {
      name: "a damaged head",
      key: "/d/head",
      value: '{"drover":"journal","version":1}',
      code: "corrupt",
      says: /d\/head/,
    },
  ];
  for (const { name, key, value, code, says } of strange)
    test(`${name}: refused, and nothing is written`, async () => {
      await etcd.ctl("put", key, value);
      const revision = await revisionOf(etcd);
      await refuses({ url: etcd.url(key.slice(1, 2)) }, code, says);
      assert.equal(await revisionOf(etcd), revision);
    });

  test("opening, reading and looking write nothing; a prefix that only begins the same is another", async () => {
    const revision = await revisionOf(etcd);
    await using journal = await openEtcdJournal({ url: etcd.url("empty") });
    await collect(journal.read(seq(0)));
    await journal.describe();
    await journal.nodes();
    assert.equal(await revisionOf(etcd), revision);
    await etcd.ctl("put", "/fo", "x");
    await etcd.ctl("put", "/foo0", "x");
    await works({ url: etcd.url("foo") });
  });

  test("what a node writes first is known as Drover's by the next, whatever it is", async () => {
    const first: { name: string; write: (journal: Journal) => Promise<unknown> }[] = [
      { name: "word", write: (journal) => journal.announce(ANN) },
      { name: "lead", write: (journal) => journal.acquireLead("ann", seconds(2)) },
      { name: "large", write: (journal) => appendSizes(journal, [1], { payloadBytes: 8_000_000 }) },
    ];
    for (const { name, write } of first) {
      await using ann = await openEtcdJournal({ url: etcd.url(name) });
      let isWritten = false;
      const writing = write(ann).finally(() => {
        isWritten = true;
      });
      // There is no moment at which others would be refused, while it is under way neither.
      while (!isWritten) await (await openEtcdJournal({ url: etcd.url(name) })).close();
      await writing;
      await (await openEtcdJournal({ url: etcd.url(name) })).close();
    }
  });

  test("a head that is no longer ours while we work is refused too", async () => {
    await using journal = await openEtcdJournal({ url: etcd.url("changed") });
    const head = await appendSizes(journal, [1]);
    await etcd.ctl("put", "/changed/head", "somebody else's");
    await assert.rejects(journal.append(sealed(head, 1)), /not Drover's/);
  });
});

describe("users", { skip: etcdMissing }, () => {
  test("user and password are asked for, a token is fetched again, a role may hold one prefix alone", async () => {
    const ctlFlags: string[] = [];
    await using etcd = await startEtcd({ ctlFlags });
    const url = etcd.url("mine");
    await etcd.ctl("user", "add", `root:${SECRET}`);
    await etcd.ctl("user", "grant-role", "root", "root");
    await etcd.ctl("user", "add", `ann:${SECRET}`);
    await etcd.ctl("role", "add", "drover");
    await etcd.ctl("role", "grant-permission", "drover", "--prefix=true", "readwrite", "/mine/");
    await etcd.ctl("user", "grant-role", "ann", "drover");
    // A user is no fault where nobody asks for one.
    await (await openEtcdJournal({ url: withUser(url, "ann", SECRET) })).close();
    await etcd.ctl("auth", "enable");
    ctlFlags.push("--user", `root:${SECRET}`);

    await refuses({ url }, "refused", /asks for a user and a password/);
    await refuses({ url: withUser(url, "ann", `${SECRET}r`) }, "refused", /does not know the user "ann" with this/);
    await refuses({ url: withUser(url, "bob", SECRET) }, "refused", /does not know the user "bob" with this/);
    await refuses(
      { url: withUser(etcd.url("other"), "ann", SECRET) },
      "refused",
      /user "ann" .*grant-permission ROLE --prefix=true readwrite \/other\//,
    );
    await works({ url, user: "ann", password: SECRET });

    await using journal = await openEtcdJournal({ url: withUser(url, "ann", SECRET) });
    const end = new AbortController();
    const followed = journal.follow(seq(3), end.signal)[Symbol.asyncIterator]();
    const first = followed.next();
    await appendSizes(journal, [1]);
    assert.equal((await first).value?.firstSeq, 4);
    // A member that is started again knows none of the tokens that it gave.
    const [member] = etcd.members;
    await member?.kill();
    await member?.start();
    const next = followed.next();
    await appendSizes(journal, [1]);
    assert.equal((await next).value?.firstSeq, 5);
    end.abort();
  });
});

describe("certificates and schemes", { skip: etcdMissing || opensslMissing }, () => {
  let directory: string;
  let made: Certificates;
  let etcd: EtcdCluster;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "drover-tls-"));
    made = makeCertificates(directory);
    const { ca, server, client } = made;
    etcd = await startEtcd({
      scheme: "https",
      flags: ["--cert-file", server.cert, "--key-file", server.key, "--trusted-ca-file", ca, "--client-cert-auth"],
      ctlFlags: ["--cacert", ca, "--cert", client.cert, "--key", client.key],
    });
  });
  after(async () => {
    await etcd[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  test("with the authority and a certificate of its own a node gets in, by options or by the URL", async () => {
    const { ca, client } = made;
    await works({ url: etcd.url("options"), ca, ...client });
    const query = new URLSearchParams({ ca, ...client });
    await works({ url: `${etcd.url("query")}?${query}` });
  });

  test("what is wrong with a certificate or a scheme is said", async () => {
    const { ca, client } = made;
    const url = etcd.url("wrong");
    await refuses({ url, ca }, "refused", /asks for a certificate that it trusts: give cert and key/);
    await refuses({ url, tls: true, ...client }, "refused", /certificate is not trusted .*with ca/);
    await refuses({ url }, "unreachable", /it hung up; if it speaks TLS, give tls=true/);
    await using plain = await startEtcd();
    await refuses(
      { url: plain.url("plain"), ca, ...client },
      "unreachable",
      /it hung up; if it does not speak TLS, leave/,
    );
  });

  test("what listens and is no etcd is said; what does not listen is out of reach", async () => {
    await using other = await answering((_, answer) => void answer.writeHead(404).end("<html>nothing here</html>"));
    await refuses({ url: `etcd://127.0.0.1:${other.port}` }, "refused", /status 404 and not as etcd 3.4 and later/);
    await other.close();
    await refuses({ url: `etcd://127.0.0.1:${other.port}` }, "unreachable", /nothing listens there/);
  });
});
