/** What other layers may use of this room. */

export { EVENTS_MAX, PAGE_MAX, PLACES, type Place } from "./endpoints.ts";
export type { FleetCalls } from "./fleet-calls.ts";
export type { TaskCalls } from "./task-calls.ts";
export { codeOfStatus, WIRE_CODES, type WireCode } from "./wire-code.ts";
