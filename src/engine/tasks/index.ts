/** What other layers may use of this room. */

export { isEnd } from "./await-end.ts";
export type { BatchBody } from "./submit-batch.ts";
export { readTaskBody, type TaskBody } from "./task-body.ts";
export { isoTime, type TaskView } from "./task-view.ts";
