/** What other layers may use of this room. */

export { capturedLines, changingLines } from "./captured.ts";
export { SnapshotUnreadable } from "./format.ts";
export { restore, restoring, snapshotLines } from "./snapshot.ts";
