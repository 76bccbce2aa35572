/** What other layers may use of this room. */

export { isEnded, TASK_STATES, WAIT_MS_DEFAULT } from "./task-state.ts";
export { priority } from "./tasks.ts";
