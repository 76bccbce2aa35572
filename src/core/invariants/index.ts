/** What other layers may use of this room. */

export { checkInvariants } from "./invariants.ts";
