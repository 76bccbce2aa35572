/** What other layers may use of this room. */

export { stateOf as planStateOf } from "./plan-view.ts";
export { createPlans, isOf, type PlanVerbs } from "./plans.ts";
