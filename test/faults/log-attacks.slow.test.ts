/**
 * What somebody can do to a closed log who can write its files and does not have its key: `verify` notices, a writer
 * refuses to go on behind it, and what was damaged of one task is that task's misfortune alone.
 */
import assert from "node:assert/strict";
import { copyFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { openDrover } from "../../src/engine/index.ts";
import { LogFailure } from "../../src/log/log.ts";
import { openSqliteLog } from "../../src/log/sqlite/sqlite-log.ts";
import { createTestDrover } from "../../src/testing/index.ts";
import { databaseIn, edit, rewrite } from "../kits/forged-log.ts";
import { closedLog, copyOf, newDirectory, problemsOf, readerOf } from "../kits/log-fixture.ts";

const sound = closedLog();
const pruned = closedLog({ pruned: true });

/** Another agent in every event that names ann; the same length, so that nothing else changes. */
function blameBob(bytes: Uint8Array): Uint8Array {
  const changed = Buffer.from(bytes);
  for (let at = changed.indexOf("ann"); at >= 0; at = changed.indexOf("ann", at)) changed.write("bob", at);
  return changed;
}

async function isRefused(data: string): Promise<string> {
  const outcome = await openDrover({ data }).catch((error: unknown) => error);
  assert.ok(outcome instanceof LogFailure, "it was opened");
  assert.equal(outcome.code, "corrupt");
  return outcome.message;
}

test("logs that nobody touched are sound, and all of a closed one is signed", async () => {
  for (const directory of [await sound, await pruned]) {
    assert.deepEqual(await problemsOf(directory), []);
    const log = readerOf(directory);
    const { unsigned, payloads, key } = await log.verify();
    await log.close();
    assert.equal(unsigned, null);
    assert.ok(payloads > 8 && key !== null);
  }
});

const forgeries: { name: string; more: string; says: RegExp }[] = [
  { name: "hashed anew", more: "", says: /signed there has .*another history/ },
  { name: "hashed anew, without checkpoints", more: "DELETE FROM checkpoint;", says: /another history/ },
  {
    name: "hashed anew, without checkpoints and signatures",
    more: "DELETE FROM checkpoint; DELETE FROM signed;",
    says: /no head was ever signed, or its signature was taken away/,
  },
  {
    name: "hashed anew, and made to look like one of an older version",
    more: "DELETE FROM checkpoint; DROP TABLE signed; DROP TABLE kept; DROP TABLE kept_list; UPDATE meta SET value = 2",
    says: /no head was ever signed/,
  },
  {
    name: "hashed anew, its signature made out to its new head",
    more: "DELETE FROM checkpoint; UPDATE signed SET hash = (SELECT hash FROM head);",
    says: /does not carry this directory's signature/,
  },
  {
    name: "hashed anew, and its signature moved to before the change",
    more: "DELETE FROM checkpoint; UPDATE signed SET seq = 0, hash = printf('%064d', 0);",
    says: /does not carry this directory's signature/,
  },
];
for (const { name, more, says } of forgeries)
  test(`a history that was edited and ${name} does not verify, and is not written behind`, async () => {
    const directory = copyOf(await sound);
    rewrite(directory, blameBob);
    edit(directory, more);
    assert.match((await problemsOf(directory)).join("\n"), says);
    assert.match(await isRefused(directory), says);
  });

test("a log that was emptied does not verify, and is not begun again; one that is new does and is", async () => {
  const fresh = newDirectory();
  await openSqliteLog({ directory: fresh }).then((log) => log.close());
  assert.deepEqual(await problemsOf(fresh), []);
  for (const epoch of [", epoch = 0", ""]) {
    const directory = copyOf(await sound);
    const empty = "DELETE FROM batch; DELETE FROM beside; DELETE FROM checkpoint; DELETE FROM signed;";
    edit(directory, `${empty} UPDATE head SET seq = 0, hash = (SELECT hash FROM base), batch_id = ''${epoch}`);
    assert.match((await problemsOf(directory)).join("\n"), /no head was ever signed, or its signature was taken away/);
    assert.match(await isRefused(directory), /no head was ever signed, or its signature was taken away/);
  }
});

test("a log with a hole before its newest snapshot is not written behind", async () => {
  const directory = copyOf(await pruned);
  edit(
    directory,
    "DELETE FROM batch WHERE first_seq = (SELECT first_seq FROM batch ORDER BY first_seq LIMIT 1 OFFSET 1)",
  );
  assert.match((await problemsOf(directory)).join("\n"), /it is missing; the next batch that was found begins at/);
  assert.match(await isRefused(directory), /it is missing; the next batch that was found begins at/);
});

test("a log whose beginning was given another hash is not written behind", async () => {
  const directory = copyOf(await pruned);
  edit(directory, "UPDATE base SET hash = printf('%064d', 0)");
  assert.match(await isRefused(directory), /it is not linked to event \d+, where the log says that it begins/);
});

const harms: { name: string; harm: (directory: string) => void; says: RegExp }[] = [
  {
    name: "edited",
    harm: (directory) => edit(directory, "UPDATE batch SET bytes = zeroblob(length(bytes)) WHERE first_seq = 3"),
    says: /damaged at event 3/,
  },
  {
    name: "edited and hashed anew up to there",
    harm: (directory) => {
      const place = "(SELECT min(first_seq) FROM batch WHERE first_seq > 9)";
      edit(
        directory,
        `CREATE TABLE kept_rows AS SELECT * FROM batch WHERE first_seq > ${place};
         CREATE TABLE kept_head AS SELECT * FROM head`,
      );
      rewrite(directory, blameBob);
      edit(
        directory,
        `DELETE FROM batch WHERE first_seq > ${place}; INSERT INTO batch SELECT * FROM kept_rows; DROP TABLE kept_rows;
         DELETE FROM head; INSERT INTO head SELECT * FROM kept_head; DROP TABLE kept_head`,
      );
    },
    says: /it is not linked to the event before it/,
  },
];
for (const { name, harm, says } of harms)
  test(`history that was ${name} is not pruned, so that verify goes on to find it`, async () => {
    const data = newDirectory();
    const options = { data, config: { log: { retain: "1h" } } };
    const first = await createTestDrover(options);
    for (const round of [0, 1, 2]) {
      for (const index of [0, 1, 2, 3])
        await first.drover.submit({ id: `${round}-${index}`, agentId: "ann", action: "a" });
      if (round > 0) await first.drover.snapshot();
      await first.clock.set(first.clock.now() + 60_000);
    }
    const at = first.clock.now();
    await first.drover.close();
    harm(data);
    const second = await createTestDrover({ ...options, at: at + 7_200_000 });
    await second.drover.submit({ id: "more", agentId: "ann", action: "a" });
    await assert.rejects(second.drover.snapshot(), says);
    await second.drover.close();
    const log = readerOf(data);
    const { ok, base } = await log.verify();
    await log.close();
    assert.deepEqual({ ok, base: base.seq }, { ok: false, base: 0 });
  });

test("events that somebody put behind a closed log do not verify", async () => {
  const directory = copyOf(await sound);
  const row = "first_seq, last_seq, epoch, batch_id, prior_hash, post_hash, hashes, bytes";
  edit(
    directory,
    `INSERT INTO batch (${row})
       SELECT last_seq + 1, 2 * last_seq - first_seq + 1, epoch, 'forged', post_hash, post_hash, hashes, bytes
       FROM batch ORDER BY first_seq DESC LIMIT 1;
     UPDATE head SET (seq, batch_id) = (SELECT max(last_seq), 'forged' FROM batch);`,
  );
  rewrite(directory, (bytes) => bytes);
  assert.match(
    (await problemsOf(directory)).join("\n"),
    /the log was closed at \d+, and nobody signed what comes behind/,
  );
  assert.match(await isRefused(directory), /the log was closed/);
});

test("a batch's epoch and id are part of history, and so is the head's epoch", async () => {
  const edits = [
    "UPDATE batch SET epoch = 7 WHERE first_seq = 1",
    "UPDATE batch SET batch_id = 'other' WHERE first_seq = 1",
    "UPDATE head SET epoch = epoch + 1",
    "UPDATE signed SET closed = 0",
    "UPDATE signed SET events = 1000000",
  ];
  for (const sql of edits) {
    const directory = copyOf(await sound);
    edit(directory, sql);
    assert.notDeepEqual(await problemsOf(directory), [], sql);
  }
});

test("what no signature covers is told, and may not be more than the rule that it was signed by", async () => {
  const data = newDirectory();
  const config = { log: { signEvery: { events: 20, time: "10s" } } };
  const kit = await createTestDrover({ data, config });
  const report = async () => {
    const log = readerOf(data);
    const { ok, unsigned, head } = await log.verify();
    await log.close();
    return { ok, unsigned, head };
  };
  for (let index = 0; index < 60; index++) {
    await kit.drover.submit({ agentId: "ann", action: "wait" });
    if (index % 7 === 0) await kit.clock.advance(4000);
    const { ok, unsigned, head } = await report();
    const count = unsigned === null ? 0 : unsigned.to - unsigned.from + 1;
    assert.ok(ok && count < 20, `event ${head.seq}: ${JSON.stringify(unsigned)}`);
  }
  await kit.clock.advance(10_000);
  await kit.drover.head(); // Answered behind the signature that the alarm asked for.
  assert.equal((await report()).unsigned, null, "at rest, all is signed");
  await kit.drover.close();
  assert.deepEqual(await report().then(({ ok, unsigned }) => ({ ok, unsigned })), { ok: true, unsigned: null });
});

type Signed = Record<string, string | number>;

/** The signature of the head as it was when it was read. */
function putBack(data: string, old: Signed): void {
  const database = new DatabaseSync(databaseIn(data));
  const columns = Object.keys(old);
  database
    .prepare(`INSERT OR REPLACE INTO signed (${columns}) VALUES (${columns.map(() => "?")})`)
    .run(...Object.values(old));
  database.close();
}

test("an old signature put back does not hide that what came behind it is too much", async () => {
  const data = newDirectory();
  const kit = await createTestDrover({ data, config: { log: { signEvery: { events: 10, time: "1h" } } } });
  const early = new DatabaseSync(databaseIn(data), { readOnly: true });
  await kit.drover.submit({ agentId: "ann", action: "wait" });
  const old = early.prepare("SELECT * FROM signed").get() as Signed;
  early.close();
  for (let index = 0; index < 30; index++) await kit.drover.submit({ agentId: "ann", action: "wait" });
  await kit.drover.close();
  putBack(data, old);
  assert.match(
    (await problemsOf(data)).join("\n"),
    /no signature covers events \d+ to \d+; at most 10 may be unsigned/,
  );
});

test("an old signature put back does not hide that what came behind it is too long ago", async () => {
  const data = newDirectory();
  const kit = await createTestDrover({ data, config: { log: { signEvery: { events: 1000, time: "10s" } } } });
  await kit.drover.submit({ agentId: "ann", action: "wait" });
  const reader = new DatabaseSync(databaseIn(data), { readOnly: true });
  const old = reader.prepare("SELECT * FROM signed").get() as Signed;
  reader.close();
  for (let index = 0; index < 3; index++) {
    await kit.clock.advance(9000);
    await kit.drover.submit({ agentId: "ann", action: "wait" });
  }
  await kit.drover.close();
  putBack(data, old);
  assert.match((await problemsOf(data)).join("\n"), /no signature covers .* \d+ ms; at most 10000 ms may be unsigned/);
});

test("damaged snapshots are named, and a pruned log that has no other beginning says so when it starts", async () => {
  const directory = copyOf(await pruned);
  const snapshots = readdirSync(directory).filter((name) => /^snapshot-\d+\.bin$/.test(name));
  assert.equal(snapshots.length, 2);
  const [first = "", second = ""] = snapshots;
  writeFileSync(join(directory, first), "damaged");
  assert.match((await problemsOf(directory)).join("\n"), /the snapshot of event \d+ is not what was written/);
  copyFileSync(join(directory, first), join(directory, second));
  assert.equal((await problemsOf(directory)).length, 2);
  assert.match(await isRefused(directory), /were pruned, and no snapshot of what they led to is whole/);
});
