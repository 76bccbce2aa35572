/** What other layers may use of this room. */

export type {
  Anchor,
  AppendResult,
  Head,
  Lead,
  Log,
  LogRecord,
  ReadBatch,
  SignRule,
  Snapshot,
  VerifyReport,
} from "./log.ts";
export { corruptAt, LogFailure } from "./log.ts";
export { openJournal, openLogByUrl, placeOf } from "./shared/by-url.ts";
