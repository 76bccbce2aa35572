/** Every type of the wire and of the config, and what their users need beside them: types alone, which load nothing. */

export type { EventKind } from "../../core/model/index.ts";
export type { AnyEvent, EventJson, EventPage } from "../shapes/events.ts";
export type { ConfigPatchBody, SchedulerConfig } from "../shapes/scheduler.ts";
export type { WireCode, WireError } from "../wire/codes.ts";
export type { FileContent, FileSource } from "../wire/file-content.ts";
export type { TaskState } from "../wire/task-state.ts";

export type * from "./approvals.ts";
export type * from "./bulk.ts";
export type * from "./cluster.ts";
export type * from "./config-input.ts";
export type * from "./events.ts";
export type * from "./files.ts";
export type * from "./groups.ts";
export type * from "./loops.ts";
export type * from "./permits.ts";
export type * from "./plan-document.ts";
export type * from "./plans.ts";
export type * from "./projects.ts";
export type * from "./scheduler.ts";
export type * from "./schedules.ts";
export type * from "./task-calls.ts";
export type * from "./tasks.ts";
export type * from "./usage.ts";
export type * from "./watching.ts";
export type * from "./worker-logs.ts";
export type * from "./workers.ts";
