/** What other layers may use of this room. */

export { createRuns, thisOwner } from "./runs.ts";
export { systemProcessTable } from "./table.ts";
