/**
 * The calls about tasks.
 */

import * as s from "../schema/schema.ts";
import * as about from "../shapes/task-calls.ts";
import * as task from "../shapes/tasks.ts";
import type { Role } from "../wire/role.ts";
import { type Call, call, type Id } from "./call.ts";

export type TaskCalls = {
  readonly submit: Call<{ body: task.TaskBody }, task.Submitted>;
  readonly submitBatch: Call<{ body: task.BatchBody }, task.BatchAnswer>;
  readonly tasks: Call<{ query: about.TasksQuery }, about.TaskPage>;
  readonly task: Call<{ params: Id }, task.TaskView>;
  readonly patch: Call<{ params: Id; body: about.PatchBody }, task.TaskView>;
  readonly cancel: Call<{ params: Id; body: about.CancelBody }, about.Cancelled>;
  readonly cancelWhere: Call<{ body: about.CancelWhereBody }, about.CancelledMany>;
  readonly retry: Call<{ params: Id }, task.Submitted>;
  readonly why: Call<{ params: Id; query: about.WhyQuery }, about.WhyAnswer>;
  readonly wait: Call<{ params: Id; query: about.WaitQuery }, task.TaskView>;
  readonly logs: Call<{ params: Id; query: about.LogsQuery }, about.TaskLogs>;
};

const WRITERS: readonly Role[] = ["admin", "agent"];
const READERS: readonly Role[] = ["admin", "agent", "viewer"];
const id: s.Schema<Id> = s.object<Id>({ id: s.described(s.name(), "The task's id.") });
const tag = "tasks";

export const TASK_CALLS: TaskCalls = {
  submit: call("submit", {
    tag,
    roles: WRITERS,
    body: task.taskBody,
    needsBody: true,
    summary: "Submit a task",
    description:
      "Answers when the task is durable. The same id and body again is the same task, so a caller that gives an id " +
      "may repeat the request after a lost answer.",
    answers: { 202: task.submitted },
    errors: ["conflict", "not_found", "queue_full", "backpressure", "limit"],
  }),
  submitBatch: call("submitBatch", {
    tag,
    roles: WRITERS,
    body: task.batchBody,
    needsBody: true,
    summary: "Submit many tasks at once",
    description: "A bad item never fails the others. Items may need each other by id, in any order.",
    answers: { 202: task.batchAnswer },
    errors: ["batch_too_large"],
  }),
  tasks: call("tasks", {
    tag,
    roles: READERS,
    query: about.tasksQuery,
    summary: "Page through tasks, in the order of submission",
    description:
      "A page ends at its limit, or sooner: before its bodies exceed 1 MiB together. It holds at least one task " +
      "while there is one, and only the absence of nextCursor says that there are no more. " +
      "An ended task is listed until scheduler.resultTtl after its end; GET /tasks/{id} finds it longer.",
    answers: { 200: about.taskPage },
  }),
  task: call("task", {
    tag,
    roles: READERS,
    params: id,
    summary: "Read a task",
    answers: { 200: task.taskView },
    errors: ["not_found", "damaged"],
  }),
  patch: call("patch", {
    tag,
    roles: WRITERS,
    params: id,
    body: about.patchBody,
    needsBody: true,
    summary: "Change the priority or deadline of a task",
    answers: { 200: task.taskView },
    errors: ["not_found", "conflict"],
  }),
  cancel: call("cancel", {
    tag,
    roles: WRITERS,
    params: id,
    body: about.cancelBody,
    summary: "Cancel a task",
    description: "It is cancelled at once; what runs is stopped. A task that has ended stays as it is: conflict.",
    answers: { 200: about.cancelled },
    errors: ["not_found", "conflict"],
  }),
  cancelWhere: call("cancelWhere", {
    tag,
    roles: WRITERS,
    body: about.cancelWhereBody,
    needsBody: true,
    summary: "Cancel every task a filter names",
    answers: { 200: about.cancelledMany },
  }),
  retry: call("retry", {
    tag,
    roles: WRITERS,
    params: id,
    summary: "Run a failed, cancelled or skipped task again, as a new iteration",
    description:
      "It runs as soon as its dependencies allow: notBefore is not waited for again, and a " +
      "deadline that has passed no longer holds.",
    answers: { 202: task.submitted },
    errors: ["not_found", "conflict"],
  }),
  why: call("why", {
    tag,
    roles: READERS,
    params: id,
    query: about.whyQuery,
    summary: "Why a task is not running, condition by condition, now or as of an event",
    answers: { 200: about.whyAnswer },
    errors: ["not_found"],
  }),
  wait: call("wait", {
    tag,
    roles: READERS,
    params: id,
    query: about.waitQuery,
    summary: "Wait until a task has ended",
    description: "Answers the task when it has ended, or as it stands when the time is over: look at its state.",
    answers: { 200: task.taskView },
    errors: ["not_found"],
  }),
  logs: call("logs", {
    tag,
    roles: READERS,
    params: id,
    query: about.logsQuery,
    summary: "The end of what an attempt wrote, as its exec worker keeps it",
    description:
      "A log stays on the machine of its worker. Where that is another one the worker is asked for it, which takes a " +
      "moment; one that is connected and does not answer within a few seconds is worker_silent.",
    answers: { 200: about.taskLogs },
    errors: ["not_found", "worker_silent"],
  }),
};
