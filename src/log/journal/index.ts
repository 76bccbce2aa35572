/** What other layers may use of this room. */

export { isVouchedBy, vouchFor } from "./announcement.ts";
export type {
  Journal,
  JournalHealth,
  JournalKind,
  JournalMember,
  JournalOptions,
  LeadSeen,
  NodeAnnouncement,
  NodeSeen,
  NodesSeen,
  SealedBatch,
} from "./journal.ts";
export { NODE_KEPT_MS } from "./journal.ts";
export {
  createMemoryJournal,
  createMemoryJournalStore,
  expireLead,
  type JournalFaults,
  type MemoryJournal,
  type MemoryJournalStore,
} from "./memory-journal.ts";
export { type MemorySharedLog, openMemorySharedLog, takeInto } from "./memory-shared-log.ts";
export { passes, untilAnswered } from "./patience.ts";
