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
export { openSharedLog, type SharedLog, type SharedLogOptions } from "./shared-log.ts";
