/**
 * What is wrong with the files of a log, apart from what they say.
 *
 * The chain, the signatures and the hashes of payloads show whether what can be read is what was written. This is for
 * the rest: pages that SQLite itself finds broken, a schema that is not ours any more, a write-ahead file that would be
 * read in part only, a snapshot of events that are not there. What is left unseen says nothing of the log: bytes of
 * pages that no row uses, the numbers by which inner pages part their children (as long as they part them rightly), and
 * in the file's header SQLite's counters, its reserved bytes and its own version.
 */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { seq } from "../../core/base/index.ts";
import { FORMAT } from "../format/batch-row.ts";
import { blockProblem } from "../format/payload-blocks.ts";
import { corruptAt, type Head, type LogFailure, type VerifyProblem } from "../log.ts";
import { SCHEMA_3 } from "./signed-tables.ts";
import { SCHEMA, SQLITE_PAGE_BYTES } from "./tables.ts";
import { FRAME_HEADER_BYTES, findWalBreak, HEADER_BYTES, type WalBreak } from "./wal-frames.ts";

const FINDINGS_MAX = 20;
/** Of no event. */
const NOWHERE = seq(0);

type Examined = {
  readonly database: DatabaseSync;
  readonly path: string;
  readonly head: Head;
  /** The newest snapshot, looked up before the head. */
  readonly newestSnapshot: number;
};

export function examineDatabase({ database, path, head, newestSnapshot }: Examined): VerifyProblem[] {
  const problems = [...brokenPages(database), ...schemaProblems(database), ...blockProblems(database, head)];
  const found = steadyBreak(path);
  if (found !== null) problems.push({ seq: seq(head.seq + 1), message: walSentence(path, found, head.seq) });
  if (newestSnapshot > head.seq) {
    const message = `a snapshot of event ${newestSnapshot} exists, but the log ends at ${head.seq}`;
    problems.push({ seq: seq(head.seq + 1), message });
  }
  return problems;
}

/** Why a database may not be opened as its write-ahead file stands; null if it may. */
export function walFailure(path: string): LogFailure | null {
  const found = findWalBreak(`${path}-wal`, SQLITE_PAGE_BYTES);
  if (found === null) return null;
  const end = recoveredEnd(path);
  return corruptAt(seq(end + 1), walSentence(path, found, end));
}

const walSentence = (path: string, { damaged, recovered, found }: WalBreak, end: number): string =>
  `${path}-wal is damaged at ${damaged === 0 ? "its beginning" : `frame ${damaged}`}. SQLite would read it up to ` +
  `frame ${recovered}, where the log ends at event ${end}, but what was stored goes on to frame ${found}. To give ` +
  `up what is behind event ${end}: copy the directory, then truncate -s ${sizeUpTo(recovered)} ${path}-wal`;

/** A write-ahead file without a frame needs no header either. */
const sizeUpTo = (frame: number): number =>
  frame === 0 ? 0 : HEADER_BYTES + frame * (FRAME_HEADER_BYTES + SQLITE_PAGE_BYTES);

/** A writer may be at work: what it had half written is whole at the next look, and damage stays. */
function steadyBreak(path: string): WalBreak | null {
  const first = findWalBreak(`${path}-wal`, SQLITE_PAGE_BYTES);
  if (first === null) return null;
  const second = findWalBreak(`${path}-wal`, SQLITE_PAGE_BYTES);
  return second !== null && second.damaged === first.damaged ? second : null;
}

/** Where the log ends for SQLite. Reading changes nothing of the write-ahead file. */
function recoveredEnd(path: string): number {
  if (!existsSync(path)) return 0;
  using database = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(database.prepare("SELECT seq FROM head WHERE id = 1").get()?.seq ?? 0);
  } catch {
    return 0; // What cannot be read ends nowhere; what is wrong with it is being said.
  }
}

function brokenPages(database: DatabaseSync): VerifyProblem[] {
  const rows = database.prepare(`PRAGMA integrity_check(${FINDINGS_MAX})`).all();
  const findings = rows.map((row) => String(Object.values(row)[0])).filter((finding) => finding !== "ok");
  return findings.map((finding) => ({ seq: NOWHERE, message: `SQLite finds the database damaged: ${finding}` }));
}

/** A block that is not where its payloads belong may hide those that are. */
function blockProblems(database: DatabaseSync, head: Head): VerifyProblem[] {
  const problems: VerifyProblem[] = [];
  for (const raw of database.prepare("SELECT first_seq, substr(bytes, 1, 8) AS beginning FROM beside").iterate()) {
    const at = seq(Number(raw.first_seq));
    // To SQLite a part of nothing is null.
    const beginning = raw.beginning instanceof Uint8Array ? raw.beginning : new Uint8Array(0);
    const isBehind = at > head.seq;
    const message = isBehind ? `the block of payloads at ${at} belongs to no event` : blockProblem(at, beginning);
    if (message !== null) problems.push({ seq: at, message });
    if (problems.length === FINDINGS_MAX) break;
  }
  return problems;
}

function schemaProblems(database: DatabaseSync): VerifyProblem[] {
  const format = Number(database.prepare("SELECT value FROM meta WHERE key = 'format'").get()?.value);
  const found = schemaOf(database);
  if (found === schemaFrom(format < FORMAT ? SCHEMA : SCHEMA + SCHEMA_3)) return [];
  return [{ seq: NOWHERE, message: `the tables of the database are not those of a log of format ${format}` }];
}

function schemaFrom(statements: string): string {
  using database = new DatabaseSync(":memory:");
  database.exec(statements);
  return schemaOf(database);
}

const schemaOf = (database: DatabaseSync): string =>
  JSON.stringify(database.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").all());
