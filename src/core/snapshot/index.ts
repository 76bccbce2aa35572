/** What other layers may use of this room. */

export { capturedLines, changingLines, restore, restoring, snapshotLines } from "./snapshot.ts";
