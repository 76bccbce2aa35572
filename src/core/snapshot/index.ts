/** What other layers may use of this room. */

export { restore, snapshotLines } from "./snapshot.ts";
