/** What other layers may use of this room. */

export {
  type Anchor,
  corruptAt,
  type Head,
  type Log,
  LogFailure,
  type LogRecord,
  type ReadBatch,
  type SignRule,
  type Snapshot,
  type VerifyReport,
} from "./log.ts";
