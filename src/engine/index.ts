/**
 * `drover/engine`: Drover embedded in a program.
 */
import "./node-version.ts";

export type { Warning } from "../core/commands.ts";
export type { Config } from "../core/config.ts";
export type { GateClass } from "../core/gate.ts";
export type { Refusal } from "../core/refusal.ts";
export type { Why } from "../core/why.ts";
export type { Log } from "../log/log.ts";
export { LogFailure } from "../log/log.ts";
export { createMemoryLog } from "../log/memory-log.ts";
export type { ArtifactExists } from "./artifact-watch.ts";
export type { Callbacks, DueCallback } from "./callbacks.ts";
export type { ConfigDesk } from "./config-desk.ts";
export { type Drover, type LogTime, type OpenOptions, openDrover } from "./drover.ts";
export { DroverError, type DroverErrorCode } from "./drover-error.ts";
export type { FeedEvent } from "./feed.ts";
export type { GateCall, GateDetail, GateView } from "./gate-view.ts";
export type { Host } from "./host.ts";
export {
  type AssignedTask,
  type Handler,
  type LocalWorker,
  type TaskContext,
  TaskRequeue,
  type WorkerOptions,
} from "./local-worker.ts";
export type { PermitBody, PermitCounter, PermitView, SettleBody } from "./permit-counter.ts";
export type { HeldPermit, PermitOptions, Usage } from "./permit-desk.ts";
export type { QueueView } from "./queue-view.ts";
export type { Assignment, Joined, RemoteWorkers, SyncAnswer } from "./remote-workers.ts";
export type { ScheduleBody } from "./schedule-body.ts";
export type { ScheduleFilter } from "./schedule-list.ts";
export type { SchedulePage, Schedules, ScheduleView } from "./schedules.ts";
export { openSqliteLog } from "./sqlite-log.ts";
export type { ProjectView, Stats, WorkerView } from "./stats.ts";
export type { JoinBody, ResultReport, RunningReport, SyncBody } from "./sync-body.ts";
export type { BatchAnswer, BatchBody } from "./task-batch.ts";
export type { TaskBody } from "./task-body.ts";
export type { Submitted } from "./task-placing.ts";
export type { TaskFilter, TaskPage } from "./task-reading.ts";
export type { TaskState, TaskView } from "./task-view.ts";
