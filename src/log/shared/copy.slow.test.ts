/**
 * A history moves between data directories and a journal, is checked on the way, and a copy that broke off goes on.
 */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext, test } from "node:test";
import { type PostgresServer, postgresMissing, startPostgres } from "../../../test/kits/postgres.ts";
import { seconds, seq } from "../../core/base/index.ts";
import { gatherDeferred } from "../contract/deferred-hashes.ts";
import { collect, eventsOf, failsWith, fill, fillHours, namesOf, payloadAt, save } from "../contract/vocabulary.ts";
import { createGathering, gatheredBatch } from "../format/batch-builder.ts";
import type { Head } from "../log.ts";
import { openPostgresJournal } from "../postgres/journal.ts";
import { openSqliteLog } from "../sqlite/sqlite-log.ts";
import { copyLog } from "./copy.ts";
import { openSharedLog } from "./shared-log.ts";

if (postgresMissing !== false) test("PostgreSQL", { skip: postgresMissing });
else claims(await startPostgres());

function newDirectory(context: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-copy-"));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A directory with batches of these sizes. */
async function filled(context: TestContext, sizes: readonly number[]): Promise<{ directory: string; head: Head }> {
  const directory = newDirectory(context);
  await using log = await openSqliteLog({ directory });
  return { directory, head: await fill(log, sizes) };
}

function claims(server: PostgresServer): void {
  after(() => server[Symbol.asyncDispose]());

  test("a history goes from a directory to PostgreSQL and back, to the same hashes and payloads", async (context) => {
    const { directory, head } = await filled(context, [3, 4, 1000]);
    const journal = server.url({ schema: "there" });
    const steps: number[] = [];
    const report = await copyLog(`sqlite:${directory}`, journal, { onProgress: (done) => steps.push(done) });
    assert.deepEqual([report.events, report.head], [1007, { seq: head.seq, hash: head.hash }]);
    assert.deepEqual(steps, [3, 7, 1007]);
    const back = join(newDirectory(context), "back");
    assert.equal((await copyLog(journal, `sqlite:${back}`)).events, 1007);
    await using log = await openSqliteLog({ directory: back });
    assert.deepEqual(await log.head(), head);
    assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), namesOf(1, 1007));
    assert.equal(await payloadAt(log, 999), "payload 999");
    assert.equal((await copyLog(`sqlite:${directory}`, journal)).events, 0);
  });

  test("a copy is signed: that of a history of hours verifies at once and later", async (context) => {
    const directory = newDirectory(context);
    {
      await using log = await openSqliteLog({ directory });
      await fillHours(log, 4);
    }
    const journal = server.url({ schema: "hours" });
    await copyLog(`sqlite:${directory}`, journal);
    const back = join(newDirectory(context), "back");
    for (const more of [4, 0, 2]) {
      if (more === 2) {
        await using log = await openSqliteLog({ directory });
        await fillHours(log, 2);
        await log.close();
        await copyLog(`sqlite:${directory}`, journal);
      }
      const { events, head } = await copyLog(journal, `sqlite:${back}`);
      assert.equal(events, more);
      await using log = await openSqliteLog({ directory: back, readOnly: true });
      assert.deepEqual((await log.verify({ expect: head })).problems, []);
    }
  });

  test("a journal that is written to meanwhile is copied up to where it was", async (context) => {
    const { directory } = await filled(context, [2, 3]);
    const url = server.url({ schema: "meanwhile" });
    await copyLog(`sqlite:${directory}`, url);
    await using log = await openSharedLog({ journal: await openPostgresJournal({ url }), directory });
    const target = `sqlite:${join(newDirectory(context), "copy")}`;
    let isCopied = false;
    const copying = copyLog(url, target).finally(() => {
      isCopied = true;
    });
    while (!isCopied) await fill(log, [1]);
    const { head } = await copying;
    const end = await log.head();
    assert.ok(head.seq < end.seq);
    assert.deepEqual((await copyLog(url, target)).head, { seq: end.seq, hash: end.hash });
  });

  test("a journal that a node leads, and one whose password is missing, get nothing", async (context) => {
    const { directory } = await filled(context, [2, 3]);
    const url = server.url({ schema: "led" });
    await using journal = await openPostgresJournal({ url });
    const lead = await journal.acquireLead("ann", seconds(60));
    await assert.rejects(copyLog(`sqlite:${directory}`, url), (error) => {
      assert.match(String(error), /the node ann leads at .* Stop its nodes before/);
      return failsWith("locked")(error);
    });
    assert.equal((await journal.head()).seq, 0);
    await lead.release();
    const bare = url.replace(/:[^:@/]*@/, "@");
    const signal = AbortSignal.timeout(60_000);
    await assert.rejects(copyLog(`sqlite:${directory}`, bare, { signal }), (error) => {
      assert.match(String(error), /asks the user "[^"]+" for a password, and there is none\. .*PGPASSWORD/);
      return failsWith("refused")(error);
    });
  });

  test("the directory that was copied is a replica of the journal at once", async (context) => {
    const { directory, head } = await filled(context, [2, 3]);
    const url = server.url({ schema: "replica" });
    await copyLog(`sqlite:${directory}`, url);
    await using log = await openSharedLog({ journal: await openPostgresJournal({ url }), directory });
    assert.deepEqual(await log.head(), head);
    const { epoch } = await log.acquireLead("a", seconds(5));
    assert.equal((await fill(log, [1])).seq, 6);
    assert.ok(epoch > 0);
  });

  test("a copy that broke off goes on where it was, and one behind new events brings them", async (context) => {
    const { directory } = await filled(context, [2, 2, 2]);
    const url = server.url({ schema: "again" });
    const end = new AbortController();
    const broken = copyLog(`sqlite:${directory}`, url, {
      signal: end.signal,
      onProgress: (done) => done === 4 && end.abort(new Error("enough")),
    });
    await assert.rejects(broken, { message: "enough" });
    assert.equal((await copyLog(`sqlite:${directory}`, url)).events, 2);
    await using log = await openSqliteLog({ directory });
    await fill(log, [5]);
    await log.close();
    assert.equal((await copyLog(`sqlite:${directory}`, url)).events, 5);
  });

  test("another history is refused, at its end and before, and so is a directory in use", async (context) => {
    const { directory } = await filled(context, [2, 2]);
    const url = server.url({ schema: "differs" });
    await copyLog(`sqlite:${directory}`, url);
    for (const sizes of [[4], [2, 1, 1], [1, 3], [2]]) {
      const other = await filled(context, sizes);
      await assert.rejects(copyLog(`sqlite:${other.directory}`, url), failsWith("diverged"));
    }
    await using log = await openSqliteLog({ directory });
    await assert.rejects(copyLog(`sqlite:${directory}`, url), failsWith("locked"));
    await log.close();
    await assert.rejects(copyLog("memory:", url), failsWith("refused"));
  });

  test("a directory that was pruned goes into a journal; elsewhere it is refused", async (context) => {
    const { directory } = await filled(context, [3, 3]);
    const log = await openSqliteLog({ directory });
    const head = await fill(log, [3]);
    await save(log, head);
    const { base } = await log.prune(seq(6), [seq(6)]);
    await log.close();
    const url = server.url({ schema: "pruned" });
    assert.equal((await copyLog(`sqlite:${directory}`, url)).events, 3);
    const journal = await openPostgresJournal({ url });
    assert.deepEqual((await journal.describe()).base, base);
    await using shared = await openSharedLog({ journal, directory });
    assert.equal(await payloadAt(shared, 6), "payload 6");
    const elsewhere = join(newDirectory(context), "new");
    await assert.rejects(copyLog(url, server.url({ schema: "further" })), failsWith("pruned", 6));
    for (const from of [url, `sqlite:${directory}`]) {
      if (from !== url) await shared.close();
      await assert.rejects(copyLog(from, `sqlite:${elsewhere}`), failsWith("pruned", 6));
    }
    assert.ok(!existsSync(elsewhere), "nothing was written");
  });

  test("what is not what was written is not copied: an event, a payload", async (context) => {
    const { directory } = await filled(context, [3, 3]);
    const database = new DatabaseSync(join(directory, "drover.db"));
    const { bytes } = database.prepare("SELECT bytes FROM batch WHERE first_seq = 4").get() as { bytes: Uint8Array };
    const changed = bytes.map((byte) => (byte === "5".charCodeAt(0) ? byte + 1 : byte));
    database.prepare("UPDATE batch SET bytes = ? WHERE first_seq = 4").run(changed);
    database.close();
    const url = server.url({ schema: "damaged" });
    await assert.rejects(copyLog(`sqlite:${directory}`, url), failsWith("corrupt", 5));

    const bodies = newDirectory(context);
    const log = await openSqliteLog({ directory: bodies });
    const gathering = createGathering();
    const expected = gatherDeferred(gathering, 1);
    await log.append(seq(0), 0, gatheredBatch(gathering, seq(1)), "bodies");
    await log.close();
    const wrong = [...expected].find(([, hash]) => hash === "ab".repeat(32))?.[0] as number;
    await assert.rejects(copyLog(`sqlite:${bodies}`, server.url({ schema: "bodies" })), failsWith("corrupt", wrong));
  });
}
