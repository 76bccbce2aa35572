/**
 * The tables of the log and the statements on them.
 *
 * `write` and `look` are the two ways in: a transaction that takes the write lock first, and one that
 * sees a single moment. Everything thrown inside comes out as a `LogFailure`, with the transaction
 * undone. Rows are parsed here: past this file nothing of a damaged or foreign file is untyped.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { isCount, isSha256, type Seq, seq } from "../../core/base/index.ts";
import type { BatchRow } from "../format/batch-row.ts";
import type { PayloadBlock } from "../format/payload-blocks.ts";
import type { RowEnd, RowSource } from "../integrity/page.ts";
import { type Anchor, type Checkpoint, corruptAt, type Head } from "../log.ts";
import { createSignedTables, prepareAll, type Raw, type SignedTables } from "./signed-tables.ts";
import { storageFailure } from "./storage-failure.ts";

export const SQLITE_PAGE_BYTES = 8192;
export const SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL, hash TEXT NOT NULL, epoch INTEGER NOT NULL, batch_id TEXT NOT NULL
  ) STRICT;
  CREATE TABLE base (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
  CREATE TABLE batch (
    first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, epoch INTEGER NOT NULL, batch_id TEXT NOT NULL,
    prior_hash BLOB NOT NULL, post_hash BLOB NOT NULL, hashes BLOB NOT NULL, bytes BLOB NOT NULL
  ) STRICT;
  CREATE TABLE beside (first_seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
  CREATE TABLE checkpoint (
    seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, snapshot_hash TEXT NOT NULL, signature TEXT NOT NULL
  ) STRICT;
`;
export const NO_LIMIT = -1;

export type LogTables = {
  /** Runs inside one transaction that may write. */
  write<Answer>(doing: string, work: () => Answer): Answer;
  /** Runs inside one transaction that sees one moment. */
  look<Answer>(doing: string, work: () => Answer): Answer;
  source(): RowSource;
  rowWith(wanted: Seq): BatchRow | null;
  /** How many events the rows say that they hold. */
  countEvents(): number;
  /** The first row that does not begin where the one before it ended. */
  firstGap(): { readonly expected: Seq; readonly found: Seq } | null;
  /** Where the first few rows end, without their blocks. */
  firstEnds(limit: number): { readonly firstSeq: Seq; readonly end: RowEnd }[];
  putRow(row: BatchRow): void;
  dropRow(firstSeq: Seq): void;
  putHead(head: Head): void;
  putBase(base: Anchor): void;
  blocks(range: { readonly from: Seq; readonly to: Seq; readonly limit?: number }): PayloadBlock[];
  /** The block that holds the payload of `wanted`, if any does. */
  blockBefore(wanted: Seq): PayloadBlock | null;
  putBlock(block: PayloadBlock): void;
  dropBlock(firstSeq: Seq): void;
  checkpoints(): Checkpoint[];
  putCheckpoint(checkpoint: Checkpoint): null;
  dropCheckpoints(before: Seq): void;
  /** Drops all rows, payloads and checkpoints. */
  dropAll(): void;
} & SignedTables;

export function createTables(database: DatabaseSync, path: string, bytesMax: number | null): LogTables {
  const statements = prepareAll(database, SQL);
  const { begin, beginStoring, commit } = prepareAll(database, TRANSACTION);
  const inside = <Answer>(isStoring: boolean, doing: string, work: () => Answer): Answer => {
    try {
      (isStoring ? beginStoring : begin).run();
      const answer = work();
      commit.run();
      return answer;
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw storageFailure(error, { doing: `${doing} (${path})`, isStoring, bytesMax });
    }
  };
  return {
    write: (doing, work) => inside(true, doing, work),
    look: (doing, work) => inside(false, doing, work),
    source: () => createSource(statements, path),
    ...accessBy(statements),
    ...createSignedTables(database),
  };
}

/** Every append is a transaction: these are parsed once, not each time. */
const TRANSACTION = { begin: "BEGIN", beginStoring: "BEGIN IMMEDIATE", commit: "COMMIT" } as const;

type Statements = Readonly<Record<keyof typeof SQL, StatementSync>>;

const SQL = {
  head: "SELECT seq, hash, epoch, batch_id FROM head WHERE id = 1",
  putHead: "UPDATE head SET seq = ?, hash = ?, epoch = ?, batch_id = ? WHERE id = 1",
  base: "SELECT seq, hash FROM base WHERE id = 1",
  putBase: "UPDATE base SET seq = ?, hash = ? WHERE id = 1",
  rowsFrom: `SELECT * FROM batch
    WHERE first_seq >= coalesce((SELECT max(first_seq) FROM batch WHERE first_seq <= ?), 0) ORDER BY first_seq`,
  rowBefore: "SELECT * FROM batch WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1",
  endBefore:
    "SELECT last_seq, post_hash, batch_id, epoch FROM batch WHERE first_seq < ? ORDER BY first_seq DESC LIMIT 1",
  firstEnds: "SELECT first_seq, last_seq, post_hash, batch_id, epoch FROM batch ORDER BY first_seq LIMIT ?",
  countEvents: "SELECT coalesce(sum(last_seq - first_seq + 1), 0) AS count FROM batch",
  firstGap: `SELECT expected, first_seq FROM (SELECT first_seq,
      coalesce(lag(last_seq) OVER (ORDER BY first_seq), (SELECT seq FROM base WHERE id = 1)) + 1 AS expected FROM batch)
    WHERE first_seq <> expected LIMIT 1`,
  putRow: `INSERT INTO batch (first_seq, last_seq, epoch, batch_id, prior_hash, post_hash, hashes, bytes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  dropRow: "DELETE FROM batch WHERE first_seq = ?",
  blocks: "SELECT first_seq, bytes FROM beside WHERE first_seq BETWEEN ? AND ? ORDER BY first_seq LIMIT ?",
  blockBefore: "SELECT first_seq, bytes FROM beside WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1",
  putBlock: "INSERT OR REPLACE INTO beside (first_seq, bytes) VALUES (?, ?)",
  dropBlock: "DELETE FROM beside WHERE first_seq = ?",
  checkpoints: "SELECT seq, hash, snapshot_hash, signature FROM checkpoint ORDER BY seq",
  putCheckpoint: "INSERT OR REPLACE INTO checkpoint (seq, hash, snapshot_hash, signature) VALUES (?, ?, ?, ?)",
  dropCheckpoints: "DELETE FROM checkpoint WHERE seq < ?",
  dropRows: "DELETE FROM batch",
  dropBlocks: "DELETE FROM beside",
  dropEveryCheckpoint: "DELETE FROM checkpoint",
} as const;

function createSource(statements: Statements, path: string): RowSource {
  return {
    head: parseHead(statements.head.get()),
    base: parseBase(statements.base.get()),
    *rowsFrom(from) {
      let next = from;
      try {
        for (const raw of statements.rowsFrom.iterate(from)) {
          const row = parseRow(raw, next);
          yield row;
          next = seq(Math.max(next, row.lastSeq + 1));
        }
      } catch (error) {
        throw storageFailure(error, { doing: `read ${path}`, seq: next });
      }
    },
    endBefore: (first) => {
      const raw = statements.endBefore.get(first ?? Number.MAX_SAFE_INTEGER);
      return raw === undefined ? null : parseEnd(raw);
    },
  };
}

function accessBy(on: Statements): Omit<LogTables, "write" | "look" | "source" | keyof SignedTables> {
  return {
    rowWith: (wanted) => {
      const raw = on.rowBefore.get(wanted);
      const row = raw === undefined ? null : parseRow(raw, wanted);
      return row === null || row.lastSeq < wanted ? null : row;
    },
    countEvents: () => Number(on.countEvents.get()?.count),
    firstGap: () => {
      const { expected, first_seq: found } = on.firstGap.get() ?? {};
      return isCount(expected) && isCount(found) ? { expected: seq(expected), found: seq(found) } : null;
    },
    firstEnds: (limit) =>
      on.firstEnds.all(limit).map((raw) => ({ firstSeq: seq(Number(raw.first_seq)), end: parseEnd(raw) })),
    putRow: ({ firstSeq, lastSeq, epoch, batchId, priorHash, postHash, hashes, bytes }) =>
      void on.putRow.run(firstSeq, lastSeq, epoch, batchId, priorHash, postHash, hashes, bytes),
    dropRow: (firstSeq) => void on.dropRow.run(firstSeq),
    putHead: ({ seq: at, hash, epoch, batchId }) => void on.putHead.run(at, hash, epoch, batchId),
    putBase: ({ seq: at, hash }) => void on.putBase.run(at, hash),
    blocks: ({ from, to, limit = NO_LIMIT }) => on.blocks.all(from, to, limit).map(parseBlock),
    blockBefore: (wanted) => {
      const raw = on.blockBefore.get(wanted);
      return raw === undefined ? null : parseBlock(raw);
    },
    putBlock: ({ firstSeq, bytes }) => void on.putBlock.run(firstSeq, bytes),
    dropBlock: (firstSeq) => void on.dropBlock.run(firstSeq),
    checkpoints: () => on.checkpoints.all().map(parseCheckpoint),
    putCheckpoint: ({ seq: at, hash, snapshotHash, signature }) => {
      on.putCheckpoint.run(at, hash, snapshotHash, signature);
      return null;
    },
    dropCheckpoints: (before) => void on.dropCheckpoints.run(before),
    dropAll: () => {
      for (const statement of [on.dropRows, on.dropBlocks, on.dropEveryCheckpoint]) statement.run();
    },
  };
}

function parseHead(raw: Raw | undefined): Head {
  const { seq: at, hash, epoch, batch_id: batchId } = raw ?? {};
  if (!isCount(at) || !isSha256(hash) || !isCount(epoch) || typeof batchId !== "string") {
    throw corruptAt(seq(1), "the head record is missing or unreadable");
  }
  return { seq: seq(at), hash, epoch, batchId };
}

function parseBase(raw: Raw | undefined): Anchor {
  const { seq: at, hash } = raw ?? {};
  if (!isCount(at) || !isSha256(hash)) throw corruptAt(seq(1), "the record of where the log begins is unreadable");
  return { seq: seq(at), hash };
}

/** `expected` is the event the reader stands at, for the message if the row makes no sense. */
function parseRow(raw: Raw, expected: Seq): BatchRow {
  const { first_seq: first, last_seq: last, epoch, batch_id: batchId } = raw;
  const { prior_hash: priorHash, post_hash: postHash, hashes, bytes } = raw;
  if (!isCount(first) || !isCount(last) || last < first || !isCount(epoch) || typeof batchId !== "string") {
    throw corruptAt(expected, "the numbers of its batch make no sense");
  }
  if (!isBlob(priorHash) || !isBlob(postHash) || !isBlob(hashes) || !isBlob(bytes)) {
    throw corruptAt(seq(first), "its batch is unreadable");
  }
  return { firstSeq: seq(first), lastSeq: seq(last), epoch, batchId, priorHash, postHash, hashes, bytes };
}

function parseEnd({ last_seq: last, post_hash: hash, batch_id: batchId, epoch }: Raw): RowEnd {
  if (!isCount(last) || !isBlob(hash) || typeof batchId !== "string" || !isCount(epoch)) {
    throw corruptAt(seq(isCount(last) ? last : 1), "the end of its batch is unreadable");
  }
  return { seq: seq(last), hash, batchId, epoch };
}

function parseBlock({ first_seq: first, bytes }: Raw): PayloadBlock {
  if (!isCount(first) || !isBlob(bytes)) throw corruptAt(seq(isCount(first) ? first : 1), "its payload is unreadable");
  return { firstSeq: seq(first), bytes };
}

function parseCheckpoint({ seq: at, hash, snapshot_hash: snapshotHash, signature }: Raw): Checkpoint {
  if (!isCount(at) || !isSha256(hash) || !isSha256(snapshotHash) || typeof signature !== "string") {
    throw corruptAt(seq(isCount(at) ? at : 1), "its checkpoint is unreadable");
  }
  return { seq: seq(at), hash, snapshotHash, signature };
}

const isBlob = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
