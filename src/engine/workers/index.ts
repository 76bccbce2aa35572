/** What other layers may use of this room. */

export { type Handler, type LocalWorker, RESULT_BYTES_MAX, TaskRequeue, type WorkerOptions } from "./local-workers.ts";
export type { Assignment, Joined, LastWord, RemoteWorkers, SyncAnswer } from "./remote-workers.ts";
export type { JoinBody, ResultReport, SyncBody } from "./sync-body.ts";
