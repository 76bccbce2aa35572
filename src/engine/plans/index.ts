/** What other layers may use of this room. */

export { createPlans, isOf } from "./plans.ts";
