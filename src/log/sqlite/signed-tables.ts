/**
 * The tables that format 3 added: the signed head, and the list of payloads that outlived their events.
 *
 * A reader may meet a log of an older version, which has neither. To it they are empty.
 */
import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import { isCount, isSha256, type Seq, seq } from "../../core/base/index.ts";
import type { KeptList } from "../integrity/kept-list.ts";
import type { SignedHead } from "../integrity/signed-head.ts";
import { corruptAt } from "../log.ts";

export const SCHEMA_3 = `
  CREATE TABLE signed (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL, hash TEXT NOT NULL, epoch INTEGER NOT NULL, batch_id TEXT NOT NULL,
    events INTEGER NOT NULL, time INTEGER NOT NULL, closed INTEGER NOT NULL, signature TEXT NOT NULL
  ) STRICT;
  CREATE TABLE kept (
    run INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (run, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE kept_list (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    run INTEGER NOT NULL, up_to INTEGER NOT NULL, hash TEXT NOT NULL, signature TEXT NOT NULL
  ) STRICT;
`;

export type KeptEntry = { readonly seq: Seq; readonly hash: string };
export type KeptRange = { readonly run: number; readonly after: Seq; readonly limit: number };

export type SignedTables = {
  /** Whether the tables are there. */
  readonly isOfFormat3: boolean;
  signedHead(): SignedHead | null;
  putSignedHead(signed: SignedHead): void;
  /** The list that is in force. */
  keptList(): KeptList | null;
  putKeptList(list: KeptList): void;
  /** The payloads that a list names, in their order. */
  kept(range: KeptRange): KeptEntry[];
  keptHash(run: number, seq: Seq): string | null;
  putKept(run: number, kept: KeptEntry): void;
  /** Drops a few entries of lists other than this; answers how many. */
  dropKeptBut(run: number, limit: number): number;
};

const SQL = {
  signedHead: "SELECT * FROM signed WHERE id = 1",
  putSignedHead: `INSERT OR REPLACE INTO signed (id, seq, hash, epoch, batch_id, events, time, closed, signature)
    VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)`,
  keptList: "SELECT run, up_to, hash, signature FROM kept_list WHERE id = 1",
  putKeptList: "INSERT OR REPLACE INTO kept_list (id, run, up_to, hash, signature) VALUES (1, ?, ?, ?, ?)",
  kept: "SELECT seq, hash FROM kept WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
  keptHash: "SELECT hash FROM kept WHERE run = ? AND seq = ?",
  putKept: "INSERT OR REPLACE INTO kept (run, seq, hash) VALUES (?, ?, ?)",
  dropKeptBut: "DELETE FROM kept WHERE (run, seq) IN (SELECT run, seq FROM kept WHERE run <> ? LIMIT ?)",
} as const;

export type Raw = Record<string, SQLOutputValue>;

export const prepareAll = <Name extends string>(
  database: DatabaseSync,
  sql: Readonly<Record<Name, string>>,
): Readonly<Record<Name, StatementSync>> =>
  Object.fromEntries(Object.entries<string>(sql).map(([name, text]) => [name, database.prepare(text)])) as never;

export function createSignedTables(database: DatabaseSync): SignedTables {
  const tables = database.prepare(
    "SELECT count(*) AS count FROM sqlite_schema WHERE name IN ('signed', 'kept', 'kept_list')",
  );
  if (tables.get()?.count !== 3) return NONE;
  const statements = prepareAll(database, SQL);
  return {
    isOfFormat3: true,
    signedHead: () => parseSigned(statements.signedHead.get()),
    putSignedHead: ({ seq: at, hash, epoch, batchId, rule, isClosed, signature }) => {
      const { events, time } = rule;
      statements.putSignedHead.run(at, hash, epoch, batchId, events, time, isClosed ? 1 : 0, signature);
    },
    keptList: () => parseList(statements.keptList.get()),
    putKeptList: ({ run, upTo, hash, signature }) => void statements.putKeptList.run(run, upTo, hash, signature),
    kept: ({ run, after, limit }) => statements.kept.all(run, after, limit).map(parseKept),
    keptHash: (run, at) => {
      const raw = statements.keptHash.get(run, at);
      return raw === undefined ? null : parseKept({ ...raw, seq: at }).hash;
    },
    putKept: (run, { seq: at, hash }) => void statements.putKept.run(run, at, hash),
    dropKeptBut: (run, limit) => Number(statements.dropKeptBut.run(run, limit).changes),
  };
}

const NONE: SignedTables = {
  isOfFormat3: false,
  signedHead: () => null,
  putSignedHead: () => {},
  keptList: () => null,
  putKeptList: () => {},
  kept: () => [],
  keptHash: () => null,
  putKept: () => {},
  dropKeptBut: () => 0,
};

function parseSigned(raw: Raw | undefined): SignedHead | null {
  if (raw === undefined) return null;
  const { seq: at, hash, epoch, batch_id: batchId, events, time, closed, signature } = raw;
  const isRead = isCount(at) && isSha256(hash) && isCount(epoch) && typeof batchId === "string";
  if (!isRead || !isCount(events) || !isCount(time) || !isMark(closed) || typeof signature !== "string") {
    throw corruptAt(seq(isCount(at) ? at : 1), "its signed head is unreadable");
  }
  return { seq: seq(at), hash, epoch, batchId, rule: { events, time }, isClosed: closed === 1, signature };
}

function parseList(raw: Raw | undefined): KeptList | null {
  if (raw === undefined) return null;
  const { run, up_to: upTo, hash, signature } = raw;
  if (!isCount(run) || !isCount(upTo) || !isSha256(hash) || typeof signature !== "string") {
    throw corruptAt(seq(1), "the list of kept payloads is unreadable");
  }
  return { run, upTo: seq(upTo), hash, signature };
}

function parseKept({ seq: at, hash }: Raw): KeptEntry {
  if (!isCount(at) || !isSha256(hash)) {
    throw corruptAt(seq(isCount(at) ? at : 1), "its entry among the kept payloads is unreadable");
  }
  return { seq: seq(at), hash };
}

const isMark = (value: unknown): value is 0 | 1 => value === 0 || value === 1;
