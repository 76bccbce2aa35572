/**
 * One writer per data directory, and no lock left behind.
 *
 * The lock is an open exclusive transaction on a tiny database of its own, `owner.db`: SQLite turns that
 * into a lock of the operating system, which vanishes with the process however it ends, SIGKILL
 * included. A pid file alone cannot do that. The pid lies in a file beside it only so that the refusal
 * can name who is there; nothing is decided by it.
 *
 * The lock is apart from the log's own database so that readers may still read. It also refuses a second
 * open in this process, because SQLite counts its own connections. Whoever copies the data directory
 * should not do so from inside the process that holds it: closing any handle on a file drops all POSIX
 * locks that the process has on that file.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeOwnFile, OWN_FILE_MODE } from "../../std/index.ts";
import { LogFailure } from "../log.ts";
import { storageFailure } from "./storage-failure.ts";

const LOCK_FILE = "owner.db";
const PID_FILE = "owner.pid";

export type DataLock = { release(): void };

export function takeDataLock(directory: string): DataLock {
  const path = join(directory, LOCK_FILE);
  let database: DatabaseSync | undefined;
  try {
    makeOwnFile(path);
    database = new DatabaseSync(path);
    database.exec("BEGIN EXCLUSIVE");
    writeFileSync(join(directory, PID_FILE), `${process.pid}\n`, { mode: OWN_FILE_MODE });
  } catch (error) {
    database?.close();
    const failure = storageFailure(error, { doing: `take the lock ${path}` });
    throw failure.code === "locked" ? lockedFailure(directory) : failure;
  }
  return {
    release: () => {
      rmSync(join(directory, PID_FILE), { force: true });
      database.close();
    },
  };
}

/** Whether a writer has it. Nothing is written; where a writer has ended as it should, nothing is even opened. */
export function isDataLocked(directory: string): boolean {
  const path = join(directory, LOCK_FILE);
  if (!existsSync(join(directory, PID_FILE)) || !existsSync(path)) return false;
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    database.prepare("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch (error) {
    return storageFailure(error, { doing: `look at the lock ${path}` }).code === "locked";
  }
}

function lockedFailure(directory: string): LogFailure {
  const pid = ownerPid(directory);
  const owner = pid === null ? "another process" : `process ${pid}`;
  const advice = "Stop it first, choose another directory, or open this one with readOnly.";
  return new LogFailure("locked", `the data directory ${directory} is in use by ${owner}. ${advice}`);
}

/** The word of a file that anybody may have written or removed: good for a message, for nothing else. */
function ownerPid(directory: string): string | null {
  try {
    return /^\d+/.exec(readFileSync(join(directory, PID_FILE), "utf8"))?.[0] ?? null;
  } catch {
    return null;
  }
}
