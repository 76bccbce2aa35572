/** What other layers may use of this room. */

export { restore, restoring, snapshotLines } from "./snapshot.ts";
