/** What other layers may use of this room. */

export { publicKeyIn } from "../integrity/signing-key.ts";
export {
  type LogPlace,
  type OpenJournalOptions,
  type OpenLogOptions,
  openJournal,
  openLogByUrl,
  placeOf,
} from "./by-url.ts";
export { type CopyOptions, type CopyReport, copyLog } from "./copy.ts";
export { LOG_PATH, SNAPSHOT_PATH } from "./from-node.ts";
export { isNodeToken, nodeToken } from "./node-token.ts";
export { historyFrames, replicaFrames } from "./serving.ts";
export { openSharedLog, type SharedLog, type SharedLogOptions } from "./shared-log.ts";
