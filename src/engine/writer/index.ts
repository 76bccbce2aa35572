/** What other layers may use of this room. */

export type { Applied, Commit } from "./group-commit.ts";
export { lastEventAt, recover } from "./recovery.ts";
export { LET_GO_MS, startWriter, type Writer } from "./writer.ts";
