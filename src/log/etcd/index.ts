/** What other layers may use of this room. */

export { type EtcdJournalOptions, openEtcdJournal } from "./journal.ts";
