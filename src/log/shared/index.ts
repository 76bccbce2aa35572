/** What other layers may use of this room. */

export { openSharedLog, type SharedLog, type SharedLogOptions } from "./shared-log.ts";
