/** What other layers may use of this room. */

export type { FleetCalls } from "./fleet-calls.ts";
export type { TaskCalls } from "./task-calls.ts";
