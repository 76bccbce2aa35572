/** What other layers may use of this room. */

export { readAddition } from "./environment.ts";
export { createRuns, thisOwner } from "./runs.ts";
export { systemProcessTable } from "./table.ts";
