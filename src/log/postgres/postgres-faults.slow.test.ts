/**
 * What only the journal on PostgreSQL can do wrong: its tables and those of others, its versions, its connections, what
 * it says. On real servers that are killed, stopped, started with bad settings and hidden behind a pooler.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import {
  type PostgresServer,
  poolerMissing,
  postgresMissing,
  startPooler,
  startPostgres,
} from "../../../test/kits/postgres.ts";
import { until, within } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { appendSizes, sealed } from "../contract/journal-contract.ts";
import { batchOf, collect, each, eventsOf, failsWith, namesOf } from "../contract/vocabulary.ts";
import type { Journal } from "../journal/journal.ts";
import { LogFailure } from "../log.ts";
import { openLogByUrl } from "../shared/by-url.ts";
import { openSharedLog } from "../shared/shared-log.ts";
import { openPostgresJournal } from "./journal.ts";

const TTL = seconds(2);

if (postgresMissing !== false) test("PostgreSQL", { skip: postgresMissing });
else claims(await startPostgres());

async function openFor(
  context: TestContext,
  url: string,
  onNotice: (line: string) => void = () => {},
): Promise<Journal> {
  const journal = await openPostgresJournal({ url, onNotice });
  context.after(() => journal.close());
  return journal;
}

/** The sentence with which an opening is refused; nothing in it is secret. */
async function refusal(url: string, code: string): Promise<string> {
  const error: unknown = await openPostgresJournal({ url }).then(
    (journal) => journal.close(),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof LogFailure, `expected a refusal, got ${error}`);
  assert.equal(error.code, code, error.message);
  assert.doesNotMatch(`${error.message} ${error.stack} ${JSON.stringify(error)}`, /secret|hunter2/);
  return error.message;
}

/** A server that takes a connection as PostgreSQL does, and says nothing more. */
async function startMute(context: TestContext): Promise<string> {
  const isIn = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
  const mute = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.write(isIn));
  });
  await new Promise<void>((resolve) => void mute.listen(0, "127.0.0.1", resolve));
  context.after(() => void mute.close());
  return `127.0.0.1:${(mute.address() as AddressInfo).port}`;
}

function claims(server: PostgresServer): void {
  after(() => server[Symbol.asyncDispose]());
  const tablesIn = async (schema: string): Promise<unknown[]> =>
    (await server.sql(`SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' ORDER BY 1`)).map(
      (row) => row.tablename,
    );

  test("what is among the words of nodes and is none is passed over, and so is a key that is no text", async () => {
    const schema = "words";
    await using journal = await openPostgresJournal({ url: server.url({ schema }) });
    const told = {
      node: "ann",
      url: "http://ann",
      seq: seq(0),
      hash: "0".repeat(64),
      epoch: 1,
      stored: seq(0),
      key: "k",
    };
    await journal.announce(told);
    const put = (node: string, value: unknown): Promise<unknown> =>
      server.sql(`INSERT INTO ${schema}.node VALUES ('${node}', '${JSON.stringify(value)}', now())`);
    await put("bob", { ...told, node: "bob", key: 7 });
    for (const [name, wrong] of Object.entries({ a: 1, b: {}, c: { ...told, stored: "9" }, d: { ...told, hash: "x" } }))
      await put(name, wrong);
    const { nodes } = await journal.nodes();
    assert.deepEqual(
      nodes.map(({ node, key }) => [node, key]),
      [
        ["ann", "k"],
        ["bob", undefined],
      ],
    );
  });

  test("nodes that open a new journal at the same time make its tables once", async (context) => {
    const url = server.url({ schema: "race" });
    const journals = await Promise.all([1, 2, 3].map(() => openFor(context, url)));
    for (const journal of journals) assert.equal((await journal.head()).seq, 0);
    assert.deepEqual(await tablesIn("race"), ["base", "batch", "head", "lead", "meta", "node"]);
  });

  test("a schema that another product uses is refused, and nothing is written", async () => {
    await server.sql("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int)");
    assert.match(
      await refusal(server.url({ schema: "shop" }), "refused"),
      /schema shop .*another product's.*orders.*\?schema=NAME/,
    );
    await server.sql("CREATE SCHEMA other; CREATE TABLE other.meta (id int, product text, version int, oldest int)");
    await server.sql("INSERT INTO other.meta VALUES (1, 'other', 1, 1)");
    assert.match(await refusal(server.url({ schema: "other" }), "refused"), /another product's/);
    assert.deepEqual([await tablesIn("shop"), await tablesIn("other")], [["orders"], ["meta"]]);
  });

  test("an empty schema that somebody made for us is taken", async (context) => {
    await server.sql("CREATE SCHEMA made");
    assert.equal((await (await openFor(context, server.url({ schema: "made" }))).head()).seq, 0);
  });

  test("a newer version is used while it allows that, and refused when it does not", async (context) => {
    const url = server.url({ schema: "newer" });
    await appendSizes(await openFor(context, url), [2]);
    await server.sql("ALTER TABLE newer.batch ADD COLUMN more int; UPDATE newer.meta SET version = 7");
    const journal = await openFor(context, url);
    assert.equal((await appendSizes(journal, [1])).seq, 3);
    assert.equal((await server.sql("SELECT version FROM newer.meta"))[0]?.version, 7);
    await server.sql("UPDATE newer.meta SET oldest = 7");
    assert.match(await refusal(url, "unsupported-version"), /has version 7; this program knows up to 1.*newer version/);
  });

  test("what is wrong with an address or an account is one sentence each, without the password", async () => {
    const { port } = server;
    const cases: [string, string, RegExp][] = [
      [
        `postgres://drover:hunter2@127.0.0.1:${port}/postgres`,
        "refused",
        /does not let the user "drover" in: password/,
      ],
      [`postgres://nobody:hunter2@127.0.0.1:${port}/postgres`, "refused", /does not let the user "nobody" in/],
      [server.url().replace("/postgres", "/nowhere"), "refused", /has no database "nowhere": create it/],
      [`postgres://drover:hunter2@no-such-host.invalid/x`, "unreachable", /host "no-such-host.invalid" is not known/],
      [`postgres://drover:hunter2@127.0.0.1:1/x`, "unreachable", /127.0.0.1:1\/x cannot be reached: .*ECONNREFUSED/],
      [`mysql://drover:hunter2@127.0.0.1/x`, "refused", /begins with postgres:\/\//],
      [`postgres://drover:hunter2@127.0.0.1/x?shema=y`, "refused", /option "shema"; there are schema/],
      [`postgres://drover:hunter2@127.0.0.1/x?schema=a%22b`, "refused", /schema "a\\"b" is not/],
      [`postgres://drover:hunter2@:99999/x`, "refused", /host ":…" .* is not HOST:PORT/],
      ["postgres://drover:hunter2/x", "refused", /host "drover:…" .* is not HOST:PORT/],
      ["postgres://drover:x?hunter2/x", "refused", /host "drover:…" .* is not HOST:PORT/],
      [`postgres://drover:hun/ter2@127.0.0.1/x`, "refused", /percent-encoded/],
      [`postgres://drover:hunter%2@127.0.0.1/x`, "refused", /two hex digits/],
    ];
    for (const [url, code, sentence] of cases) assert.match(await refusal(url, code), sentence);
  });

  test("an account that may create nothing is told what to ask for, and nothing is written", async () => {
    await server.sql("CREATE ROLE guest LOGIN PASSWORD 'hunter2'");
    const url = `postgres://guest:hunter2@127.0.0.1:${server.port}/postgres?schema=guests`;
    assert.match(await refusal(url, "refused"), /CREATE SCHEMA guests AUTHORIZATION "guest"/);
    assert.deepEqual(await tablesIn("guests"), []);
    await server.sql(`CREATE SCHEMA guests AUTHORIZATION "guest"`);
    await (await openPostgresJournal({ url })).close();
  });

  test("its address is told without user and password", async (context) => {
    const { address, version, bytes, warnings } = await (await openFor(context, server.url())).describe();
    assert.equal(address, `postgres://127.0.0.1:${server.port}/postgres`);
    assert.match(version ?? "", /^\d+/);
    assert.ok((bytes ?? 0) > 0);
    assert.deepEqual(warnings, []);
  });

  test("every batch of another node is found, one after the other", async (context) => {
    const url = server.url({ schema: "heard" });
    const [ann, bob] = [await openFor(context, url), await openFor(context, url)];
    const end = new AbortController();
    const seen: number[] = [];
    const following = (async () => {
      for await (const { firstSeq } of bob.follow(seq(0), end.signal)) seen.push(firstSeq);
    })();
    for (let count = 1; count <= 20; count++) {
      await appendSizes(ann, [1]);
      await until(`batch ${count}`, () => seen.length === count);
    }
    end.abort();
    await following;
    assert.deepEqual(
      seen,
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  });

  restarts(server);
  settingsAndPoolers(server);
}

function restarts(server: PostgresServer): void {
  test("a server that is gone is waited for: the follower goes on, the lead is lost", async (context) => {
    const url = server.url({ schema: "restart" });
    const notices: string[] = [];
    const [ann, bob] = [await openFor(context, url), await openFor(context, url, (line) => notices.push(line))];
    const directory = mkdtempSync(join(tmpdir(), "drover-restart-"));
    context.after(() => rmSync(directory, { recursive: true }));
    const log = await openSharedLog({ journal: ann, directory, onNotice: (line) => notices.push(line) });
    context.after(() => log.close());
    const lead = await log.acquireLead("ann", TTL);
    await log.append(seq(0), lead.epoch, batchOf(1, 2), "one");
    const end = new AbortController();
    const followed = bob.follow(seq(0), end.signal)[Symbol.asyncIterator]();
    assert.equal((await followed.next()).value?.lastSeq, 2);
    await server.kill();
    await assert.rejects(ann.head(), failsWith("unreachable"));
    const appended = log.append(seq(2), lead.epoch, batchOf(3, 1), "two");
    assert.equal((await lead.lost).reason, "expired");
    assert.equal((await appended).type, "unknown");
    const next = followed.next();
    const again = log.acquireLead("ann", TTL);
    await until("a line about it", () => notices.some((line) => /waiting for the journal/.test(line)));
    assert.doesNotMatch(notices.join("\n"), /secret/);
    await server.start();
    const { epoch } = await within("the lead", again);
    const { seq: reached } = await log.head();
    assert.equal((await log.append(reached, epoch, batchOf(reached + 1, 1), "three")).type, "appended");
    assert.equal((await next).value?.firstSeq, 3);
    end.abort();
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), namesOf(1, reached + 1));
  });

  test("a log that is opened by its URL waits for a server that is not there yet", async (context) => {
    const data = mkdtempSync(join(tmpdir(), "drover-by-url-"));
    context.after(() => rmSync(data, { recursive: true }));
    await server.kill();
    const notices: string[] = [];
    const onNotice = (line: string): unknown => notices.push(line);
    const opening = openLogByUrl(server.url({ schema: "late" }), { data, onNotice });
    await until("a line about it", () => notices.length > 0);
    await server.start();
    await using log = await within("the log", opening);
    assert.equal((await log.append(seq(0), 0, batchOf(1, 2), "a")).type, "appended");
    assert.match(
      notices[0] ?? "",
      /^waiting for the journal since 0 s: PostgreSQL at postgres:\/\/127.0.0.1:\d+\/postgres/,
    );
    assert.doesNotMatch(notices.join("\n"), /secret/);
    await assert.rejects(openLogByUrl(server.url()), { message: /needs a data directory of its own/ });
    const wrong = openLogByUrl(`postgres://drover:hunter2@127.0.0.1:${server.port}/postgres`, { data });
    await assert.rejects(wrong, failsWith("refused"));
  });

  test("a server that hangs is given up, and what was asked is unknown; a leader stops in time", async (context) => {
    const url = server.url({ schema: "frozen" });
    const [ann, bob] = [await openFor(context, url), await openFor(context, url)];
    const lead = await ann.acquireLead("ann", TTL);
    server.freeze();
    try {
      assert.equal((await within("the loss of the lead", lead.lost)).reason, "expired");
      await assert.rejects(bob.head(), failsWith("unreachable"));
    } finally {
      server.thaw();
    }
    const next = await within("the next lead", bob.acquireLead("bob", TTL));
    assert.ok(next.epoch > lead.epoch);
    const late = sealed(await bob.head(), 1, { epoch: lead.epoch });
    assert.equal((await ann.append(late)).type, "conflict");
  });

  test("a place that lets a node in and answers no question is passed over", async (context) => {
    const place = await startMute(context);
    const journal = await openFor(context, server.url({ schema: "mute" }).replace(/@([^/]+)/, `@${place},$1`));
    assert.equal((await journal.head()).seq, 0);
  });

  test("an append whose connection is cut is unknown, and there once when it is repeated", async (context) => {
    const url = server.url({ schema: "cut" });
    const ann = await openFor(context, url);
    const head = await ann.head();
    const entry = sealed(head, 3);
    const answer = ann.append(entry);
    await server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'drover'");
    await answer;
    let repeated = await ann.append(entry);
    while (repeated.type === "unknown") repeated = await ann.append(entry);
    assert.equal(repeated.type, "appended");
    // The connection that reads was cut too, and its end may be heard of only now.
    const read = (): Promise<readonly number[]> => collect(ann.read(seq(0))).then((rows) => each(rows, "firstSeq"));
    assert.deepEqual(await read().catch(read), [1]);
  });
}

function settingsAndPoolers(server: PostgresServer): void {
  test("settings under which something may be lost are told loudly", async (context) => {
    await server.kill();
    await server.start({ fsync: "off", synchronous_commit: "off", full_page_writes: "off" });
    const notices: string[] = [];
    const journal = await openFor(context, server.url({ schema: "loud" }), (line) => notices.push(line));
    assert.match(notices.join("\n"), /fsync is off: WHAT WAS ACKNOWLEDGED IS LOST/);
    assert.match(notices.join("\n"), /synchronous_commit is off; Drover waits for its own commits/);
    assert.match(notices.join("\n"), /full_page_writes is off/);
    assert.deepEqual((await journal.describe()).warnings, notices);
    assert.equal((await appendSizes(journal, [2])).seq, 2);
    await journal.close();
    await server.kill();
    await server.start({ synchronous_standby_names: "standby1", synchronous_commit: "local" });
    const { warnings } = await (await openFor(context, server.url())).describe();
    assert.match(warnings.join("\n"), /no synchronous standby is there \(standby1\)/);
    await server.kill();
    await server.start();
  });

  test("commits are waited for also when the server's setting is changed later", async (context) => {
    await using own = await startPostgres({ wal_writer_delay: "10s" });
    const journal = await openFor(context, own.url());
    const { epoch } = await journal.acquireLead("ann", TTL);
    await own.sql("ALTER SYSTEM SET synchronous_commit = off");
    await own.sql("SELECT pg_reload_conf()");
    await until("the setting", async () => (await journal.describe()).warnings.length === 1);
    // The lane of appends may learn of it a statement later than the one that was asked.
    await appendSizes(journal, [1, 1, 1], { epoch });
    const head = await appendSizes(journal, [2], { epoch });
    await own.kill();
    await own.start();
    await until("the server", () => journal.head().then(Boolean, () => false));
    assert.deepEqual(await journal.head(), head);
    await journal.close();
  });

  test("behind a failover to a promoted standby nothing that was acknowledged is missing", async (context) => {
    await using first = await startPostgres();
    await using second = await startPostgres({}, first);
    const both = first.url().replace("/postgres", `,127.0.0.1:${second.port}/postgres`);
    const journal = await openFor(context, both);
    assert.match((await journal.describe()).warnings.join("\n"), /its standbys are asynchronous: a failover may lose/);
    await first.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby1'");
    await first.sql("SELECT pg_reload_conf()");
    await until("the standby in step", async () => (await journal.describe()).warnings.length === 0);
    assert.deepEqual(
      (await journal.describe()).members.map(({ name, isUp }) => [name, isUp]),
      [["standby1", true]],
    );
    const lead = await journal.acquireLead("ann", TTL);
    const head = await appendSizes(journal, [2, 3], { epoch: lead.epoch });
    await first.kill();
    await assert.rejects(journal.head(), failsWith("unreachable"));
    await second.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    await second.sql("SELECT pg_promote()");
    const next = await within("the lead", journal.acquireLead("ann", TTL));
    assert.deepEqual(await journal.head(), { ...head, epoch: next.epoch });
    assert.equal((await appendSizes(journal, [1], { epoch: next.epoch })).seq, 6);
    assert.deepEqual(each(await collect(journal.read(seq(0))), "firstSeq"), [1, 3, 6]);
    await journal.close();
  });

  const skip = poolerMissing();
  test("behind a pooler that lends connections for a transaction all works, and batches are found", {
    skip,
  }, async (context) => {
    await using pooler = await startPooler(server);
    const url = `postgres://drover@127.0.0.1:${pooler.port}/postgres?schema=pooled`;
    const [ann, bob, third] = [await openFor(context, url), await openFor(context, url), await openFor(context, url)];
    const lead = await ann.acquireLead("ann", seconds(30));
    const end = new AbortController();
    const followers = [bob, third].map((journal) => journal.follow(seq(0), end.signal)[Symbol.asyncIterator]());
    for (let count = 1; count <= 10; count++) {
      const entry = sealed(await ann.head(), 2, { epoch: lead.epoch });
      assert.equal((await ann.append(entry)).type, "appended");
      for (const follower of followers)
        assert.equal((await within("a batch", follower.next())).value?.firstSeq, entry.firstSeq);
    }
    end.abort();
    assert.ok(lead.holds());
    await bob.announce({ node: "bob", url: "http://b", seq: seq(20), hash: "0".repeat(64), epoch: 1, stored: seq(20) });
    assert.equal((await third.nodes()).nodes.length, 1);
    await Promise.all([ann.close(), bob.close(), third.close()]);
  });
}
