/** What other layers may use of this room. */

export { fnv1a } from "./shape.ts";
export { actionName, commandIn, takesSuch } from "./worker-filter.ts";
