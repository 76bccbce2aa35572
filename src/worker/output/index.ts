/** What other layers may use of this room. */

export { createOutputDirectory } from "./directory.ts";
export { createEventReader } from "./events.ts";
export { readTail } from "./tail.ts";
