/** What other layers may use of this room. */

export { isEnd } from "./await-end.ts";
export { createBodyStore } from "./body-store.ts";
export { wantedEvents } from "./read-tasks.ts";
export { refusedItem } from "./submit.ts";
export { readTaskBody } from "./task-body.ts";
