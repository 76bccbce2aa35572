/** What other layers may use of this room. */

export { isDataLocked } from "./data-lock.ts";
export { openSqliteLog, type SqliteLogOptions } from "./sqlite-log.ts";
