/** What other layers may use of this room. */

export type { AffinityKind, Reason } from "./placement.ts";
export { fnv1a } from "./shape.ts";
export { actionName, type Takes } from "./worker-filter.ts";
