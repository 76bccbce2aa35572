/** What other layers may use of this room. */

export { type Handler, type LocalWorker, TaskRequeue, TaskSkip, type WorkerOptions } from "./local-workers.ts";
export type { LastWord, RemoteWorkers } from "./remote-workers.ts";
