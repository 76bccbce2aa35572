/**
 * Opening the database of a data directory: is it ours, is it whole, are we alone?
 *
 * A writer takes the lock, makes the tables if the directory is new, and checks that the head record and
 * the last batch agree before anything is appended behind them. It refuses a directory that once held a
 * log (its signing key is there) and whose database is gone or empty: to SQLite an empty file is a new
 * database, and a log that starts again at 1 would be a silent loss. It refuses a write-ahead file that SQLite would
 * read in part only (`wal-frames.ts`), a snapshot of events that are not there, and a head that the last signature does
 * not vouch for: whoever goes on behind a forged history signs it. A reader takes no lock and checks nothing but the
 * format, so that a damaged log can still be examined.
 */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { BrokenInvariant, seq } from "../../core/base/index.ts";
import { DATABASE_FILE, keepPrivate, makeOwnDirectory, makeOwnFile } from "../../std/index.ts";
import { FORMAT, OLDEST_FORMAT } from "../format/batch-row.ts";
import { GENESIS, toHex } from "../format/chain.ts";
import { keptListSeal } from "../integrity/kept-list.ts";
import { checkHead, hashAt, readPage } from "../integrity/page.ts";
import { DEFAULT_SIGN_RULE, headProblem, headSeal } from "../integrity/signed-head.ts";
import { type OwnKey, openKey, openVerifier, PRIVATE_KEY_FILE, type Signer } from "../integrity/signing-key.ts";
import { checkpointSeal } from "../integrity/snapshot-rules.ts";
import { corruptAt, LogFailure, type VerifyProblem } from "../log.ts";
import { type DataLock, takeDataLock } from "./data-lock.ts";
import { examineDatabase, walFailure } from "./examine.ts";
import { checkList, listAsFound } from "./kept-check.ts";
import { SCHEMA_3 } from "./signed-tables.ts";
import { newestSnapshot } from "./snapshot-files.ts";
import { SQLITE_CANTOPEN, sqliteCode, storageFailure } from "./storage-failure.ts";
import { createTables, type LogTables, SCHEMA, SQLITE_PAGE_BYTES } from "./tables.ts";

/** Whoever waits for the disk waits for a checkpoint too, so it is kept short; a smaller one costs more fsyncs. */
const WAL_PAGES_BEFORE_CHECKPOINT = 400;
const BUSY_TIMEOUT_MS = 5000;
const ENTRIES_PER_PAGE = 1024;

export type DatabaseOptions = {
  readonly directory: string;
  readonly readOnly: boolean;
  /** The most the database may grow to; its write-ahead file comes on top. */
  readonly maxBytes: number | null;
};

export type Database = LogTables & {
  /** What its pages take; those that are free to be used again do not count. */
  bytes(): number;
  /** A reader's can only check. */
  readonly signer: Signer;
  /** What is wrong with the files themselves. */
  examine(): VerifyProblem[];
  close(): void;
};

export function openDatabase(options: DatabaseOptions): Database {
  const { directory, readOnly } = options;
  const path = join(directory, DATABASE_FILE);
  let lock: DataLock | undefined;
  let database: DatabaseSync | undefined;
  try {
    if (!readOnly) makeDirectory(directory);
    if (readOnly && !existsSync(path)) throw new LogFailure("io", `there is no log at ${path}; nothing can be read`);
    if (!readOnly) lock = takeDataLock(directory);
    if (!readOnly) prepareFiles(path);
    database = readOnly ? openForReading(path) : new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    prepareFile(database, options);
    const tables = createTables(database, path, options.maxBytes);
    const key = readOnly ? null : openKey(directory);
    if (key !== null) tables.look("check the end of the log", () => checkEnd(tables, directory));
    if (key !== null) vouch(tables, key);
    const opened = database;
    return {
      ...tables,
      signer: key?.signer ?? { ...openVerifier(directory), sign: signsNothing },
      examine: () => {
        const newest = newestSnapshot(directory);
        const examined = { database: opened, path, newestSnapshot: newest };
        return tables.look("examine", () => examineDatabase({ ...examined, head: tables.source().head }));
      },
      bytes: meterOf(database),
      close: closer(database, lock),
    };
  } catch (error) {
    closer(database, lock)();
    throw storageFailure(error, { doing: `open ${path}` });
  }
}

function meterOf(database: DatabaseSync): () => number {
  const pages = database.prepare(
    "SELECT page_count - freelist_count AS count FROM pragma_page_count(), pragma_freelist_count()",
  );
  return () => Number((pages.get() as { count: number }).count) * SQLITE_PAGE_BYTES;
}

/** SQLite says of a directory only that it cannot open a file in it; what is wrong with it is found out here. */
function makeDirectory(directory: string): void {
  try {
    makeOwnDirectory(directory);
    accessSync(directory, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Node says of a directory that could not be made only that it is not there; what is above it says why.
    if (code === "ENOENT") accessSync(nearestAbove(directory), constants.W_OK);
    if (code !== "EEXIST" && code !== "ENOTDIR") throw error;
    const advice = "Name a directory, or a path where one can be made.";
    throw new LogFailure("io", `the data directory ${directory} is a file, or lies under one. ${advice}`);
  }
}

function nearestAbove(directory: string): string {
  const above = dirname(directory);
  return existsSync(above) || above === directory ? above : nearestAbove(above);
}

/**
 * A reader of a WAL database needs to write its index file. On a read-only disk it cannot, but there,
 * without a write-ahead file, nothing can change either, and SQLite may be told so.
 */
function openForReading(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    database.prepare("SELECT count(*) FROM sqlite_schema").get();
    return database;
  } catch (error) {
    database.close();
    if (sqliteCode(error) !== SQLITE_CANTOPEN || existsSync(`${path}-wal`)) throw error;
    const url = pathToFileURL(path);
    url.searchParams.set("immutable", "1");
    return new DatabaseSync(url, { readOnly: true });
  }
}

function prepareFile(database: DatabaseSync, { directory, readOnly, maxBytes }: DatabaseOptions): void {
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as { tables: number };
  if (tables > 0) checkFormat(database, directory);
  else if (readOnly || existsSync(join(directory, PRIVATE_KEY_FILE))) {
    throw corruptAt(seq(1), `${join(directory, DATABASE_FILE)} is missing or empty, though ${directory} held a log`);
  }
  if (readOnly) return;
  database.exec(`PRAGMA page_size = ${SQLITE_PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;`);
  database.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES_BEFORE_CHECKPOINT};`);
  if (maxBytes !== null)
    database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / SQLITE_PAGE_BYTES))}`);
  if (tables === 0) createLog(database);
  else upgrade(database);
}

/** From here on it may hold what an older version cannot read: that one is to say so, and not to call it damaged. */
function upgrade(database: DatabaseSync): void {
  if (database.prepare("SELECT value FROM meta WHERE key = 'format'").get()?.value === FORMAT) return;
  database.exec("BEGIN IMMEDIATE");
  const isThere = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'signed'").get() !== undefined;
  if (!isThere) database.exec(SCHEMA_3);
  database.prepare("UPDATE meta SET value = ? WHERE key = 'format'").run(FORMAT);
  database.exec("COMMIT");
}

function createLog(database: DatabaseSync): void {
  database.exec("BEGIN IMMEDIATE");
  database.exec(SCHEMA + SCHEMA_3);
  database.prepare("INSERT INTO meta (key, value) VALUES ('format', ?)").run(FORMAT);
  database.prepare("INSERT INTO head VALUES (1, ?, ?, 0, '')").run(GENESIS.seq, GENESIS.hash);
  database.prepare("INSERT INTO base VALUES (1, ?, ?)").run(GENESIS.seq, GENESIS.hash);
  database.exec("COMMIT");
}

function checkFormat(database: DatabaseSync, directory: string): void {
  const isOurs = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'").get();
  if (isOurs === undefined) throw corruptAt(seq(1), `the database in ${directory} is not a Drover log`);
  const format = database.prepare("SELECT value FROM meta WHERE key = 'format'").get()?.value;
  if (typeof format !== "number" || format < OLDEST_FORMAT) throw corruptAt(seq(1), "the format number is missing");
  if (format <= FORMAT) return;
  throw new LogFailure(
    "unsupported-version",
    `the log in ${directory} has format ${format}; this version reads up to ${FORMAT}. Use a newer version of Drover.`,
  );
}

/** SQLite reads a damaged write-ahead file up to its damage, and throws the rest away as soon as it writes. */
function prepareFiles(path: string): void {
  const failure = walFailure(path);
  if (failure !== null) throw failure;
  makeOwnFile(path);
  keepPrivate(dirname(path));
}

/** Nothing is appended behind an end that is not sound. */
function checkEnd(tables: LogTables, directory: string): void {
  const source = tables.source();
  const { head, base } = source;
  checkHead(source);
  if (head.seq > base.seq) readPage(source, { after: seq(head.seq - 1), prior: null });
  checkWhole(tables);
  const witnesses = { "signed checkpoint": tables.checkpoints().at(-1)?.seq ?? 0, snapshot: newestSnapshot(directory) };
  for (const [name, beyond] of Object.entries(witnesses)) {
    if (beyond > head.seq)
      throw corruptAt(seq(head.seq + 1), `a ${name} of event ${beyond} exists, but the log ends at ${head.seq}`);
  }
}

/**
 * Is there a row for every event from the beginning to the head? What they say is hashed anew by `verify` and before it
 * is pruned; a start that did so would take minutes.
 */
function checkWhole(tables: LogTables): void {
  const { head, base } = tables.source();
  const first = tables.rowWith(seq(base.seq + 1));
  if (first !== null && toHex(first.priorHash) !== base.hash) {
    throw corruptAt(first.firstSeq, `it is not linked to event ${base.seq}, where the log says that it begins`);
  }
  if (tables.countEvents() === head.seq - base.seq) return;
  const { expected, found } = tables.firstGap() ?? { expected: seq(base.seq + 1), found: head.seq };
  throw corruptAt(expected, `it is missing; the next batch that was found begins at ${found}`);
}

/** Nothing is signed behind a head that should be signed and is not. A key that never signed one begins here. */
function vouch(tables: LogTables, { signer, signsHeads, mark }: OwnKey): void {
  const source = tables.source();
  const { head, base, endBefore } = source;
  if (!signsHeads) {
    const claim = { ...head, rule: DEFAULT_SIGN_RULE, isClosed: false };
    const list = tables.keptList();
    tables.write("sign the head", () => {
      tables.putSignedHead(headSeal.sign(signer, claim));
      tables.putKeptList(keptListSeal.sign(signer, list ?? listAsFound(tables, base.seq)));
      checkWholeList(tables, signer);
    });
    return mark();
  }
  const signed = tables.signedHead();
  const isSigned = signed !== null && headSeal.holds(signer, signed);
  const found = signed === null || signed.seq < base.seq ? null : hashAt(source, signed.seq);
  const checkpoint = tables.checkpoints().findLast((one) => checkpointSeal.holds(signer, one));
  const place = { head, base, found, batchEpoch: endBefore(null)?.epoch ?? 0, checkpointSeq: checkpoint?.seq ?? 0 };
  const problem = headProblem(signed, isSigned, place);
  if (problem !== null) throw corruptAt(problem.seq, problem.message);
  tables.look("check the list of kept payloads", () => checkWholeList(tables, signer));
}

/** What outlived its event is only as good as this list: whoever starts on a forged one would sign it with the next. */
function checkWholeList(tables: LogTables, signer: Signer): void {
  for (const _ of checkList(tables, signer, ENTRIES_PER_PAGE));
}

function signsNothing(): never {
  throw new BrokenInvariant("a reader signs nothing");
}

const closer = (database: DatabaseSync | undefined, lock: DataLock | undefined) => (): void => {
  database?.close();
  lock?.release();
};
