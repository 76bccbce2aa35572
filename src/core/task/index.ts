/** What other layers may use of this room. */

export { isThrottling, policyOf, refusalForMaking } from "./admission.ts";
export type { Ended } from "./callbacks.ts";
export { nextChange } from "./deadlines.ts";
export { batchOrder } from "./dependency.ts";
export { STRUCK_MS_MAX } from "./loss.ts";
export { gateSettings, isConfigured } from "./permits.ts";
export { SCHEDULES_MAX, type Schedule } from "./schedule.ts";
