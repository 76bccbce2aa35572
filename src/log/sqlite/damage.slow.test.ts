/**
 * A damaged SQLite log is refused, with the event at which it breaks, and never repaired.
 *
 * The damage is done behind the log's back: by SQL on the closed database, as somebody who wants to
 * rewrite history would, and on the raw bytes of the file, as a failing disk would.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after as afterAll, test } from "node:test";
import { makeOlder } from "../../../test/kits/forged-log.ts";
import { readerOf } from "../../../test/kits/log-fixture.ts";
import { seq } from "../../core/base/brand.ts";
import { eventsOf, failsWith, fill, namesOf, save } from "../contract/vocabulary.ts";
import type { VerifyReport } from "../log.ts";
import { LogFailure } from "../log.ts";
import { openSqliteLog } from "./sqlite-log.ts";
import { openSqliteStore } from "./store.ts";

const directories: string[] = [];
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-damage-"));
  directories.push(directory);
  return directory;
}

/** A closed log of batches of these sizes. */
async function stored(sizes: readonly number[], snapshotAfter = -1): Promise<string> {
  const directory = newDirectory();
  const log = await openSqliteLog({ directory });
  for (const [index, size] of sizes.entries()) {
    const head = await fill(log, [size]);
    if (index === snapshotAfter) await save(log, head);
  }
  await log.close();
  return directory;
}

const fileIn = (directory: string): string => join(directory, "drover.db");
const digest = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

function edit(directory: string, sql: string): void {
  const database = new DatabaseSync(fileIn(directory));
  database.exec(sql);
  database.close();
}

const openForWriting = (directory: string) => openSqliteStore({ directory, readOnly: false, maxBytes: null });

type Finding = { readonly failure: LogFailure; readonly seen: readonly string[]; readonly report: VerifyReport };

/** What a reader meets: the failure, everything before it, and what verify says. */
async function examine(directory: string): Promise<Finding> {
  const log = readerOf(directory);
  const seen: string[] = [];
  try {
    for await (const batch of log.read(seq(0))) seen.push(...eventsOf([batch]));
  } catch (error) {
    assert.ok(error instanceof LogFailure, String(error));
    return { failure: error, seen, report: await log.verify() };
  } finally {
    await log.close();
  }
  assert.fail("the damage was not noticed");
}

/** SQL for a blob with the byte at a place (from 0) replaced. */
const patched = (column: string, at: number, hex = "ff"): string =>
  `${column} = CAST(substr(${column}, 1, ${at}) || x'${hex}' || substr(${column}, ${at + 2}) AS BLOB)`;
const swapped = (columns: string): string => `
  CREATE TEMP TABLE copy AS SELECT * FROM batch WHERE first_seq IN (4, 7);
  UPDATE batch SET (${columns}) = (SELECT ${columns} FROM copy WHERE copy.first_seq = 11 - batch.first_seq)
    WHERE first_seq IN (4, 7);`;

/** Three batches of three events: 1–3, 4–6, 7–9. An event is 4 bytes of length and 7 of text. */
const damages: { name: string; sql: string; at: number; opens: boolean }[] = [
  {
    name: "a flipped byte of event 2",
    sql: `UPDATE batch SET ${patched("bytes", 20)} WHERE first_seq = 1`,
    at: 2,
    opens: true,
  },
  {
    name: "a flipped byte of event 5",
    sql: `UPDATE batch SET ${patched("bytes", 20)} WHERE first_seq = 4`,
    at: 5,
    opens: true,
  },
  {
    name: "a flipped byte of event 9",
    sql: `UPDATE batch SET ${patched("bytes", 30)} WHERE first_seq = 7`,
    at: 9,
    opens: false,
  },
  {
    name: "a wrong length of event 6",
    sql: `UPDATE batch SET ${patched("bytes", 25)} WHERE first_seq = 4`,
    at: 6,
    opens: true,
  },
  {
    name: "a flipped hash of event 6",
    sql: `UPDATE batch SET ${patched("hashes", 64)} WHERE first_seq = 4`,
    at: 6,
    opens: true,
  },
  { name: "a cut batch", sql: "UPDATE batch SET bytes = substr(bytes, 1, 14) WHERE first_seq = 4", at: 5, opens: true },
  {
    name: "a batch with bytes behind it",
    sql: "UPDATE batch SET bytes = CAST(bytes || x'00' AS BLOB) WHERE first_seq = 4",
    at: 6,
    opens: true,
  },
  {
    name: "too few hashes",
    sql: "UPDATE batch SET hashes = substr(hashes, 1, 64) WHERE first_seq = 4",
    at: 4,
    opens: true,
  },
  {
    name: "another link backwards",
    sql: `UPDATE batch SET ${patched("prior_hash", 0)} WHERE first_seq = 4`,
    at: 4,
    opens: true,
  },
  {
    name: "another end of a batch",
    sql: "UPDATE batch SET post_hash = zeroblob(32) WHERE first_seq = 4",
    at: 6,
    opens: false,
  },
  { name: "another last number", sql: "UPDATE batch SET last_seq = 5 WHERE first_seq = 4", at: 4, opens: false },
  { name: "a missing first batch", sql: "DELETE FROM batch WHERE first_seq = 1", at: 1, opens: false },
  { name: "a missing middle batch", sql: "DELETE FROM batch WHERE first_seq = 4", at: 4, opens: false },
  { name: "a missing last batch", sql: "DELETE FROM batch WHERE first_seq = 7", at: 7, opens: false },
  { name: "all batches missing", sql: "DELETE FROM batch", at: 1, opens: false },
  {
    name: "two batches in each other's place",
    sql: swapped("epoch, batch_id, prior_hash, post_hash, hashes, bytes"),
    at: 4,
    opens: false,
  },
  { name: "two batches with each other's content", sql: swapped("hashes, bytes"), at: 4, opens: false },
  { name: "a head that is too low", sql: "UPDATE head SET seq = 6", at: 7, opens: false },
  { name: "a head that is too high", sql: "UPDATE head SET seq = 12", at: 10, opens: false },
  { name: "a head of zero", sql: "UPDATE head SET seq = 0", at: 1, opens: false },
  { name: "a head with another hash", sql: "UPDATE head SET hash = printf('%064d', 0)", at: 9, opens: false },
  { name: "a head with another batch", sql: "UPDATE head SET batch_id = 'forged'", at: 9, opens: false },
  { name: "no head", sql: "DELETE FROM head", at: 1, opens: false },
];

const sound = stored([3, 3, 3]);

function copyOf(directory: string): string {
  const copy = newDirectory();
  cpSync(directory, copy, { recursive: true });
  return copy;
}

for (const { name, sql, at, opens } of damages) {
  test(`C20 ${name} stops the reader at event ${at}, and nothing is repaired`, async () => {
    const directory = copyOf(await sound);
    edit(directory, sql);
    const before = digest(fileIn(directory));
    if (name === "no head") {
      const log = readerOf(directory);
      await assert.rejects(log.head(), failsWith("corrupt", at));
      await log.close();
    } else {
      const { failure, seen, report } = await examine(directory);
      failsWith("corrupt", at)(failure);
      assert.deepEqual(seen, namesOf(1, 3 * Math.floor(seen.length / 3)));
      assert.ok(seen.length < at || /head with another/.test(name), `saw ${seen.length} events`);
      assert.deepEqual({ ok: report.ok, at: report.problems[0]?.seq }, { ok: false, at });
    }
    if (opens) openForWriting(directory).close();
    else assert.throws(() => openForWriting(directory), failsWith("corrupt"));
    assert.equal(digest(fileIn(directory)), before);
  });
}

test("C20 a history rewritten with all its hashes still fails against its checkpoint and its anchor", async () => {
  const [directory, other] = [await stored([2, 2], 1), newDirectory()];
  const writer = await openSqliteLog({ directory: other });
  const records = ["a", "b", "c", "d"].map((content) => ({ bytes: new TextEncoder().encode(content) }));
  await writer.append(seq(0), 0, { firstSeq: seq(1), records }, "forged");
  await writer.close();
  edit(
    directory,
    `ATTACH '${fileIn(other)}' AS other;
    DELETE FROM batch; INSERT INTO batch SELECT * FROM other.batch;
    DELETE FROM head; INSERT INTO head SELECT * FROM other.head;`,
  );
  await assert.rejects(openSqliteLog({ directory }), failsWith("corrupt", 4));
  const log = await openSqliteLog({ directory, readOnly: true });
  const report = await log.verify();
  assert.match(report.problems[0]?.message ?? "", /checkpoint.*another history/);
  await assert.rejects(log.loadSnapshot(), failsWith("corrupt", 4));
  await log.close();
});

test("a pruned log whose beginning was moved is not confirmed by its checkpoint", async () => {
  const directory = await stored([3, 3, 3], 2);
  edit(
    directory,
    `DELETE FROM checkpoint;
    UPDATE base SET (seq, hash) = (SELECT 3, lower(hex(post_hash)) FROM batch WHERE first_seq = 1);
    DELETE FROM batch WHERE first_seq = 1;`,
  );
  const log = await openSqliteLog({ directory, readOnly: true });
  const { problems } = await log.verify();
  assert.match(problems[0]?.message ?? "", /events up to 3 were pruned and no checkpoint confirms that/);
  await log.close();
});

test("one damaged record is refused when asked for alone; a damaged payload is its caller's to notice", async () => {
  const directory = await stored([3, 3, 3]);
  edit(
    directory,
    `UPDATE batch SET ${patched("bytes", 20)} WHERE first_seq = 4;
    UPDATE beside SET ${patched("bytes", 14, "58")} WHERE first_seq = 3;`,
  );
  const log = await openSqliteLog({ directory, readOnly: true });
  await assert.rejects(log.readRecord(seq(5)), failsWith("corrupt", 5));
  assert.equal(Buffer.from((await log.readRecord(seq(3)))?.payload ?? []).toString(), "paXload 3");
  edit(directory, "UPDATE beside SET bytes = substr(bytes, 1, 15) WHERE first_seq = 3");
  await assert.rejects(log.readRecord(seq(3)), failsWith("corrupt", 3));
  await log.close();
});

test("a snapshot of events the log has lost is not started from", async () => {
  const directory = await stored([3, 3, 3], 2);
  edit(
    directory,
    `DELETE FROM batch WHERE first_seq = 7;
    UPDATE head SET (seq, hash, batch_id) =
      (SELECT last_seq, lower(hex(post_hash)), batch_id FROM batch WHERE first_seq = 4);`,
  );
  await assert.rejects(openSqliteLog({ directory }), failsWith("corrupt", 7));
  await assert.rejects(openSqliteLog({ directory }), /a signed checkpoint of event 9 exists, but the log ends at 6/);
  const log = await openSqliteLog({ directory, readOnly: true });
  await assert.rejects(log.loadSnapshot(), failsWith("corrupt", 7));
  assert.match((await log.verify()).problems[0]?.message ?? "", /ends at 6, before the checkpoint at 9/);
  await log.close();
  edit(directory, "DELETE FROM checkpoint");
  await assert.rejects(openSqliteLog({ directory }), /a snapshot of event 9 exists, but the log ends at 6/);
});

test("a byte flipped in the raw file is found at its event", async () => {
  const directory = await stored([200, 200, 200]);
  const path = fileIn(directory);
  for (const number of [37, 333, 599]) {
    const whole = readFileSync(path);
    const at = whole.indexOf(`event ${number}`);
    assert.ok(at > 0);
    writeFileSync(
      path,
      whole.map((byte, index) => (index === at ? byte ^ 0x20 : byte)),
    );
    const { failure, seen } = await examine(directory);
    failsWith("corrupt", number)(failure);
    assert.deepEqual(seen, namesOf(1, 200 * Math.floor(number / 200)));
    writeFileSync(path, whole);
  }
});

test("a file cut off anywhere is refused: the reader gets a true beginning, then the break", async () => {
  const directory = await stored(Array.from({ length: 40 }, () => 300));
  const path = fileIn(directory);
  const whole = readFileSync(path);
  for (const share of [0.9, 0.5, 0.2]) {
    writeFileSync(path, whole);
    truncateSync(path, Math.floor((whole.length * share) / 8192) * 8192);
    const outcome = await examine(directory).catch((error: unknown) => error);
    if (outcome instanceof Error) failsWith("corrupt")(outcome);
    else {
      const { failure, seen } = outcome as Finding;
      failsWith("corrupt", seen.length + 1)(failure);
      assert.deepEqual(seen, namesOf(1, seen.length));
    }
    assert.throws(() => openForWriting(directory), failsWith("corrupt"));
  }
});

test("an empty, missing or foreign database where a log was is refused, not begun again", async () => {
  const directory = await stored([3]);
  writeFileSync(fileIn(directory), "");
  assert.throws(() => openForWriting(directory), failsWith("corrupt"));
  await assert.rejects(openSqliteLog({ directory, readOnly: true }), failsWith("corrupt"));
  rmSync(fileIn(directory));
  assert.throws(() => openForWriting(directory), failsWith("corrupt"));
  writeFileSync(fileIn(directory), "this is not a database, but it is long enough to be read as one. ".repeat(100));
  assert.throws(() => openForWriting(directory), failsWith("corrupt"));
  rmSync(fileIn(directory));
  edit(directory, "CREATE TABLE somebody (else_ TEXT)");
  assert.throws(() => openForWriting(directory), failsWith("corrupt"));
});

test("an older format is read, and becomes the present one when it is opened for writing", async () => {
  const directory = await stored([3]);
  makeOlder(directory);
  const formatNow = (): unknown => {
    const database = new DatabaseSync(fileIn(directory), { readOnly: true });
    const found = database.prepare("SELECT value FROM meta WHERE key = 'format'").get();
    database.close();
    return found?.value;
  };
  const reader = await openSqliteLog({ directory, readOnly: true });
  const { events, problems } = await reader.verify();
  assert.equal(events, 3);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [
      "no head was ever signed, or its signature was taken away, or it was written by an older version, which signed " +
        "nothing: start a server on it once",
    ],
  );
  await reader.close();
  assert.equal(formatNow(), 2);
  const writer = await openSqliteLog({ directory });
  assert.equal((await writer.verify()).ok, true);
  await fill(writer, [2]);
  assert.equal((await writer.verify()).ok, true);
  await writer.close();
  assert.equal(formatNow(), 3);
});

test("a log made to look older after its head was signed is not signed again", async () => {
  const directory = await stored([3]);
  edit(directory, "DROP TABLE signed; DROP TABLE kept; DROP TABLE kept_list; UPDATE meta SET value = 2");
  assert.throws(() => openForWriting(directory), failsWith("corrupt", 1));
});

test("a newer format is refused, for reading and for writing, and left as it was", async () => {
  const directory = await stored([3]);
  edit(directory, "UPDATE meta SET value = 4 WHERE key = 'format'");
  const before = digest(fileIn(directory));
  for (const readOnly of [true, false]) {
    await assert.rejects(openSqliteLog({ directory, readOnly }), failsWith("unsupported-version"));
  }
  assert.equal(digest(fileIn(directory)), before);
});
