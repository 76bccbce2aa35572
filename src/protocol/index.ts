/**
 * The wire: every call as a schema, its types, its errors, its document; and the whole config file.
 */

export { type Ask, type Call, errorsOf, type Tag, wireErrorSchema } from "./calls/call.ts";
export { type Answered, type Asked, CALL_LIST, CALLS, type Calls } from "./calls/calls.ts";
export type * from "./generated/index.ts";
export { openApiDocument } from "./openapi.ts";
export type { Schema } from "./schema/schema.ts";
export { checked, checkOf, type RawQuery, readQuery, readShape } from "./schema/validate.ts";
export { settingsJsonSchema, settingsSchema } from "./settings/schema.ts";
export { readSettings, type Settings, type WebhookSettings } from "./settings/settings.ts";
export { type TokenSettings, tokenFaults } from "./settings/tokens.ts";
export { bulkCall } from "./shapes/bulk.ts";
export * from "./shapes/events.ts";
export * from "./shapes/permits.ts";
export * from "./shapes/projects.ts";
export * from "./shapes/scheduler.ts";
export * from "./shapes/schedules.ts";
export * from "./shapes/task-calls.ts";
export * from "./shapes/tasks.ts";
export * from "./shapes/watching.ts";
export * from "./shapes/worker-logs.ts";
export * from "./shapes/workers.ts";
export type { AnyParams, SharedCalls, SharedPlans, TasksFilter } from "./shared-calls.ts";
export type { HeldPermit, PermitOptions, TaskContextOf, WithPermit } from "./task-context.ts";
export { WIRE_CODES, type WireCode, type WireError } from "./wire/codes.ts";
export * from "./wire/endpoints.ts";
export { ATTEMPT_TOKEN, ATTEMPT_TOKEN_FORM, ROLES, type Role } from "./wire/role.ts";
export * from "./wire/task-state.ts";
