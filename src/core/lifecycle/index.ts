/** What other layers may use of this room. */

export { isThrottling, policyOf, refusalForMaking } from "./admission.ts";
export { nextChanges } from "./deadlines.ts";
export { batchOrder } from "./dependency.ts";
export { isConfigured } from "./gates.ts";
export { missingIn } from "./groups.ts";
export { openBelow } from "./growth.ts";
export { THROTTLED_MS_MAX } from "./loss.ts";
export { groupOfPlan } from "./plans.ts";
export { SCHEDULES_MAX } from "./schedule.ts";
export { isTimedOutUnnamed, timeoutError } from "./stop.ts";
export { beginOfDay, dayOf, summed } from "./usage.ts";
