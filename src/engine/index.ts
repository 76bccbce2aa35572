/**
 * `drover/engine`: Drover embedded in a program.
 */
import "./node-version.ts";

export type { Config, GateClass, Refusal, Warning, Why } from "../core/index.ts";
export { type Log, LogFailure } from "../log/index.ts";
export { createMemoryLog } from "../log/memory/index.ts";
export type * from "../protocol/generated/index.ts";
export type {
  AnyParams,
  HeldPermit,
  PermitOptions,
  SharedCalls,
  TaskContextOf,
  TasksFilter,
  WithPermit,
} from "../protocol/index.ts";
export { type Again, type Ask, type AskOptions, again, type Clock, TaskAsk } from "../std/index.ts";
export { DroverError, type DroverErrorCode } from "./base/drover-error.ts";
export type { Callbacks, DueCallback } from "./callbacks.ts";
export type { ConfigApi } from "./config-api.ts";
export { type Drover, type LogTime, type OpenOptions, openDrover, openSqliteLog } from "./drover.ts";
export type { FeedEvent, FeedOptions } from "./feed.ts";
export type { FileTotals, ForAttempt } from "./files/contents.ts";
export type { Files, OpenFile, OpenFileOptions } from "./files/files.ts";
export type { ArrivingContent, FileMedium, KeptContent } from "./files/medium.ts";
export type { DroverNode } from "./node/index.ts";
export type { RemotePermits } from "./permits/remote-permits.ts";
export type { PlanFilter, PlanOptions, Plans } from "./plans/plans.ts";
export type { ScheduleInput } from "./schedules/schedule-body.ts";
export type { ScheduleFilter } from "./schedules/schedule-list.ts";
export type { Schedules } from "./schedules/schedules.ts";
export type { ArtifactExists } from "./tasks/artifacts.ts";
export type { TaskFilter } from "./tasks/read-tasks.ts";
export type { BatchInput } from "./tasks/submit.ts";
export type { TaskInput } from "./tasks/task-body.ts";
export type { GateView, GateWithCalls } from "./views/gate-view.ts";
export type { UsageOptions } from "./views/usage.ts";
export type { AssignedTask, Handler, LocalWorker, TaskContext, WorkerOptions } from "./workers/local-workers.ts";
export { TaskRequeue, TaskSkip } from "./workers/local-workers.ts";
export type { RemoteWorkers } from "./workers/remote-workers.ts";
export type { Applied, Commit, CommitListener } from "./writer/group-commit.ts";
