/** What other layers may use of this room. */

export { readAddition } from "./environment.ts";
export { thisOwner } from "./owner.ts";
export { createRuns } from "./runs.ts";
export { systemProcessTable } from "./table.ts";
