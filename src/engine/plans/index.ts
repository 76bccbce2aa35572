/** What other layers may use of this room. */

export { isOf } from "./plans.ts";
