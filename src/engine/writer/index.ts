/** What other layers may use of this room. */

export type { Applied, Commit } from "./group-commit.ts";
export { lastEventAt, recover } from "./recovery.ts";
export { startWriter, type Writer } from "./writer.ts";
