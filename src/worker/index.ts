/**
 * `drover/worker`: run tasks wherever the server is.
 *
 * `startWorker` gives tasks to a function; `createExecHandler` with `startWorkerWithOutcomes` gives them to a command.
 */

export type { PresetName } from "../plan/work/index.ts";
export type { HeldPermit, PermitOptions, TaskContextOf, WithPermit } from "../protocol/index.ts";
export { type Again, type Ask, type AskOptions, again, RESULT_BYTES_MAX, TaskRequeue, TaskSkip } from "../std/index.ts";
export type { ExecHandler, ExecOutcome } from "./exec/contract.ts";
export { createExecHandler } from "./exec/handler.ts";
export { execLogs } from "./exec/logs.ts";
export type { ExecOptions } from "./exec/options.ts";
export { type AssignedTask, AttemptStopped, type TaskContext } from "./pull/handlers.ts";
export type { LogEnd, LogWish, WorkerLogs } from "./pull/logs.ts";
export type { Outcome } from "./pull/messages.ts";
export type { PullWorkerOptions } from "./pull/options.ts";
export {
  type Handler,
  type OutcomeHandler,
  type PullWorker,
  startWorker,
  startWorkerWithOutcomes,
} from "./pull/worker.ts";
