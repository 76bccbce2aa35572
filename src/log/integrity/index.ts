/** What other layers may use of this room. */

export { createBell } from "./read-log.ts";
