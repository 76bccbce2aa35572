/**
 * `drover/engine`: Drover embedded in a program.
 */
import "./node-version.ts";

export type { Config, GateClass, Refusal, Warning, Why } from "../core/index.ts";
export { type Log, LogFailure } from "../log/index.ts";
export { createMemoryLog } from "../log/memory/index.ts";
export type * from "../protocol/generated/index.ts";
export type { Clock } from "../std/index.ts";
export type { Callbacks, DueCallback } from "./callbacks.ts";
export type { ConfigApi } from "./config-api.ts";
export { type Drover, type LogTime, type OpenOptions, openDrover } from "./drover.ts";
export type { FeedEvent } from "./feed.ts";
export { openSqliteLog } from "./open-sqlite.ts";
export type { HeldPermit, PermitOptions, Usage } from "./permits/local-permits.ts";
export type { PermitBody, PermitView, RemotePermits, SettleBody } from "./permits/remote-permits.ts";
export type { ScheduleBody } from "./schedules/schedule-body.ts";
export type { ScheduleFilter } from "./schedules/schedule-list.ts";
export type { SchedulePage, Schedules, ScheduleView } from "./schedules/schedules.ts";
export type { ArtifactExists } from "./tasks/artifact-watch.ts";
export type { TaskFilter, TaskPage } from "./tasks/read-tasks.ts";
export type { Submitted } from "./tasks/submit.ts";
export type { BatchAnswer, BatchBody } from "./tasks/submit-batch.ts";
export type { TaskBody } from "./tasks/task-body.ts";
export type { TaskState, TaskView } from "./tasks/task-view.ts";
export type { GateCall, GateDetail, GateView } from "./views/gate-view.ts";
export type { QueueView } from "./views/queue-view.ts";
export type { ProjectView, Stats, WorkerView } from "./views/stats.ts";
export {
  type AssignedTask,
  type Handler,
  type LocalWorker,
  type TaskContext,
  TaskRequeue,
  type WorkerOptions,
} from "./workers/local-workers.ts";
export type { Assignment, Joined, RemoteWorkers, SyncAnswer } from "./workers/remote-workers.ts";
export type { JoinBody, ResultReport, RunningReport, SyncBody } from "./workers/sync-body.ts";
export { DroverError, type DroverErrorCode } from "./writer/drover-error.ts";
