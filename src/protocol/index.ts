/**
 * The wire: every call as a schema, its types, its errors, its document; and the whole config file.
 */

export { readConfig } from "../core/config.ts";
export { distanceOf, nearest } from "../core/nearest.ts";
export { type Refusal, sentence } from "../core/refusal.ts";
export {
  type Ask,
  type Call,
  errorsOf,
  type Id,
  ROLES,
  type Role,
  type Tag,
} from "./call.ts";
export {
  type Answered,
  type Asked,
  CALL_LIST,
  CALLS,
  type CallName,
  type Calls,
  type FleetCallName,
  type ServerCallName,
  type TaskCallName,
} from "./calls.ts";
export * from "./event-shapes.ts";
export { type OpenApiOptions, openApiDocument } from "./openapi.ts";
export * from "./permit-shapes.ts";
export { EVENTS_MAX, type Method, PAGE_MAX, PLACES, type Place } from "./places.ts";
export * from "./project-shapes.ts";
export * from "./schedule-shapes.ts";
export * from "./scheduler-shapes.ts";
export type { Schema } from "./schema.ts";
export { SPAN_PATTERN } from "./schema.ts";
export {
  readSettings,
  type ServerSettings,
  type Settings,
  type WebhookSettings,
} from "./settings.ts";
export { settingsJsonSchema, settingsSchema } from "./settings-schema.ts";
export * from "./task-call-shapes.ts";
export * from "./task-shapes.ts";
export * from "./task-state.ts";
export { type TokenSettings, tokenFaults } from "./token-settings.ts";
export { checkOf, type RawQuery, readQuery, readShape } from "./validate.ts";
export { PROTOCOL_HEADER, PROTOCOL_VERSION, protocolRefusal } from "./version.ts";
export { CODE_NAMES, codeOfStatus, WIRE_CODES, type WireCode } from "./wire-code.ts";
export { type WireError, wireErrorSchema } from "./wire-error.ts";
export * from "./worker-shapes.ts";
