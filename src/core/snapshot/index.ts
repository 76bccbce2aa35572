/** What other layers may use of this room. */

export { capturedLines, changingLines } from "./captured.ts";
export { restore, restoring, snapshotLines } from "./snapshot.ts";
