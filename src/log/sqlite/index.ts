/** What other layers may use of this room. */

export { openSqliteLog, type SqliteLogOptions } from "./sqlite-log.ts";
