/** What other layers may use of this room. */

export { createBell } from "./read-log.ts";
export type { SignRule } from "./signed-head.ts";
