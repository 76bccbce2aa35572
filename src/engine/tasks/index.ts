/** What other layers may use of this room. */

export { isEnd } from "./await-end.ts";
export { refusedItem } from "./submit-batch.ts";
export { readTaskBody } from "./task-body.ts";
