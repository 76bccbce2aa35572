/** What other layers may use of this room: the bodies that the engine reads. */

export { eventKinds } from "./events.ts";
export { fileRefs, outputPath, outputs } from "./files.ts";
export { labelFilter, labels } from "./labels.ts";
export { permitBody, settleBody } from "./permits.ts";
export { PLAN_ID_MAX, planFilterFields, planQuery, putPlanFields } from "./plans.ts";
export { LINE_DEFAULT, LINE_MAX } from "./scheduler.ts";
export { SCHEDULE_ID_MAX, scheduleFields } from "./schedules.ts";
export { PAGE_DEFAULT } from "./task-calls.ts";
export { batchBody, taskFields } from "./tasks.ts";
export { USAGE_ROWS_DEFAULT, USAGE_ROWS_MAX, usageBy } from "./usage.ts";
export { joinBody, SESSION_MAX, syncBody, usage, workerOptions } from "./workers.ts";
