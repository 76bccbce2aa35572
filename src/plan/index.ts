/**
 * A plan as a value: what may stand in it, the tasks it becomes, and which task of the log is which of the plan.
 */

export { problemsIn, shownPath } from "./check.ts";
export type { PlanConfig } from "./config.ts";
export { type Hashed, hasEnded, hashTasks, type Known, type Matched, matchHashed, matchTasks } from "./identity.ts";
export { type Order, orderOf, withNeeds } from "./order.ts";
export { type Plan, type PlanDefaults, planReading, readPlanValue } from "./plan.ts";
export type { Found, Path } from "./problem.ts";
export { planSchema, planSchemaText, taskSection } from "./schema.ts";
export type { PlanTask, Rules } from "./tasks.ts";
export * from "./work/index.ts";
