/** What other layers may use of this room. */

export { nodeKeys, type Replayed, readWhole } from "./replayed.ts";
