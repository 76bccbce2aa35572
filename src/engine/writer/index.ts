/** What other layers may use of this room. */

export { canonical } from "./canonical-json.ts";
export { badInput, DroverError, type DroverErrorCode, isStop, refused } from "./drover-error.ts";
export type { Applied, Commit } from "./group-commit.ts";
export { lastEventAt, recover } from "./recovery.ts";
export { startWriter, type Writer } from "./writer.ts";
