/** What other layers may use of this room. */

export { fingerprintOf, openKey, publicKeyIn, type Signer } from "../integrity/signing-key.ts";
export {
  type LogPlace,
  type OpenJournalOptions,
  type OpenLogOptions,
  openJournal,
  openLogByUrl,
  placeOf,
} from "./by-url.ts";
export { type CopyOptions, type CopyReport, copyLog } from "./copy.ts";
export { forwardSeal, isForwardSeal, type SentOn } from "./forward-seal.ts";
export { LOG_PATH, SNAPSHOT_PATH } from "./from-node.ts";
export { createNodeDoor, type NodeDoor, nodeToken } from "./node-token.ts";
export {
  answerIn,
  isQuestion,
  type NodeWord,
  newQuestion,
  readWord,
  type SealedWord,
  sealWord,
  WORD_MS,
  WORD_PATH,
} from "./node-word.ts";
export { historyFrames, replicaFrames } from "./serving.ts";
export { openSharedLog, type SharedLog, type SharedLogOptions } from "./shared-log.ts";
