/** What other layers may use of this room: types alone, which load nothing. */

export type * from "./config-input.ts";
export type * from "./events.ts";
export type * from "./permits.ts";
export type * from "./projects.ts";
export type * from "./scheduler.ts";
export type * from "./schedules.ts";
export type * from "./task-calls.ts";
export type * from "./tasks.ts";
export type * from "./workers.ts";
