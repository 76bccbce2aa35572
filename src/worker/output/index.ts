/** What other layers may use of this room. */

export { readTail } from "./capped-file.ts";
export { createOutputDirectory } from "./directory.ts";
export { createEventReader } from "./events.ts";
