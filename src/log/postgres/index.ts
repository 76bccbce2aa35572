/** What other layers may use of this room. */

export { openPostgresJournal, type PostgresJournalOptions } from "./journal.ts";
