/**
 * What the disk says, in the log's words.
 *
 * The operating system speaks in errno, SQLite in result codes. Both are turned into a `LogFailure` here,
 * once, with a message that says what to do; whatever is neither is a bug and passes through.
 */
import type { Seq } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";

/** What a disk can do to a log. */
type StorageCode = "disk-full" | "read-only" | "io" | "corrupt" | "locked";

const ERRNO: Readonly<Record<string, StorageCode>> = {
  ENOSPC: "disk-full",
  EDQUOT: "disk-full",
  EFBIG: "disk-full",
  EACCES: "read-only",
  EPERM: "read-only",
  EROFS: "read-only",
};

/** SQLite's primary result codes; an extended one carries its primary in the low eight bits. */
const PRIMARY_BITS = 0xff;
export const SQLITE_CANTOPEN = 14;
const SQLITE: Readonly<Record<number, StorageCode>> = {
  3: "read-only", // PERM
  5: "locked", // BUSY
  6: "locked", // LOCKED
  8: "read-only", // READONLY
  10: "io", // IOERR
  11: "corrupt", // CORRUPT
  13: "disk-full", // FULL
  [SQLITE_CANTOPEN]: "io",
  26: "corrupt", // NOTADB
};

const REMEDY: Readonly<Record<StorageCode, string>> = {
  "disk-full": "Nothing of this was stored. Make room on the disk, then start again.",
  "read-only": "Nothing was stored. Make the data directory writable for this user, or open the log with readOnly.",
  io: "Check the disk, then start again.",
  corrupt: "Nothing was repaired; restore the data directory from a backup.",
  locked: "Another process uses it; stop that one first.",
};

type FailurePlace = {
  /** What was being done, to which file: "append to /data/drover.db". */
  readonly doing: string;
  /** The event that could not be read, if that is known. */
  readonly seq?: Seq | undefined;
  /** Whether something was to be stored, so that it may have been, or not. */
  readonly isStoring?: boolean;
  /** The most the database may grow to, if somebody said so. */
  readonly bytesMax?: number | null;
};

/** The failure behind an error of the file system or of SQLite; anything else is thrown on. */
export function storageFailure(error: unknown, place: FailurePlace): LogFailure {
  if (error instanceof LogFailure) return error;
  const code = failureCode(error);
  if (code === null) throw error;
  const { doing, seq } = place;
  const at = seq === undefined ? "" : ` at event ${seq}`;
  return new LogFailure(code, `could not ${doing}${at}: ${(error as Error).message}. ${remedyFor(code, place)}`, seq);
}

function remedyFor(code: StorageCode, { isStoring = false, bytesMax = null }: FailurePlace): string {
  if (code === "io" && isStoring) return `Whether it was stored is unknown until the log is opened again. ${REMEDY.io}`;
  if (code !== "disk-full" || bytesMax === null) return REMEDY[code];
  return `${REMEDY[code]} The log may not grow beyond maxBytes, ${bytesMax}.`;
}

export function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return null;
  return error.errcode & PRIMARY_BITS;
}

function failureCode(error: unknown): StorageCode | null {
  const result = sqliteCode(error);
  if (result !== null) return SQLITE[result] ?? "io";
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return null;
  return ERRNO[String(error.code)] ?? "io";
}
