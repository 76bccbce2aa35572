/**
 * Every call of the wire, by name and by tag: what it takes, what it answers, who may make it.
 */
import { FILE_BYTES_MAX } from "../../core/config/index.ts";
import type * as wire from "../generated/index.ts";
import * as s from "../schema/schema.ts";
import * as approval from "../shapes/approvals.ts";
import * as bulk from "../shapes/bulk.ts";
import * as event from "../shapes/events.ts";
import * as file from "../shapes/files.ts";
import * as group from "../shapes/groups.ts";
import * as permit from "../shapes/permits.ts";
import * as project from "../shapes/projects.ts";
import * as scheduler from "../shapes/scheduler.ts";
import * as schedule from "../shapes/schedules.ts";
import * as about from "../shapes/task-calls.ts";
import * as task from "../shapes/tasks.ts";
import * as usage from "../shapes/usage.ts";
import * as workerLogs from "../shapes/worker-logs.ts";
import * as worker from "../shapes/workers.ts";
import type { CallName } from "../wire/endpoints.ts";
import { type AnswerOf, type AskOf, type Call, callsOf, type Id } from "./call.ts";
import { type PlanCalls, planCalls } from "./plan-calls.ts";
import { ADMIN, AGENTS, CALLERS, EVERYBODY, idOf, READERS, WORKERS } from "./roles.ts";
import { type ClusterCalls, clusterCalls, type ServerCalls, serverCalls } from "./server-calls.ts";
import { type WatchCalls, watchCalls } from "./watch-calls.ts";

export type { PlanCalls } from "./plan-calls.ts";
export type { WatchCalls } from "./watch-calls.ts";

type Nothing = Record<never, never>;
export type BulkCalls = {
  readonly bulk: Call<{ body: wire.BulkBody }, wire.BulkAnswer>;
  readonly waitAny: Call<{ body: wire.WaitAnyBody }, wire.WaitAnyAnswer>;
  readonly waitPermits: Call<{ body: wire.WaitPermitsBody }, wire.WaitPermitsAnswer>;
};
export type TaskCalls = {
  readonly submit: Call<{ body: wire.TaskBody }, wire.Submitted>;
  readonly submitBatch: Call<{ body: wire.BatchBody }, wire.BatchAnswer>;
  readonly tasks: Call<{ query: wire.TasksQuery }, wire.TaskPage>;
  readonly task: Call<{ params: Id }, wire.TaskView>;
  readonly patch: Call<{ params: Id; body: wire.PatchBody }, wire.TaskView>;
  readonly cancel: Call<{ params: Id; body: wire.CancelBody }, wire.Cancelled>;
  readonly cancelWhere: Call<{ body: wire.CancelWhereBody }, wire.CancelledMany>;
  readonly retry: Call<{ params: Id }, wire.Submitted>;
  readonly approve: Call<{ params: Id; body: wire.ApproveBody }, wire.Submitted>;
  readonly why: Call<{ params: Id; query: wire.WhyQuery }, wire.WhyAnswer>;
  readonly wait: Call<{ params: Id; query: wire.WaitQuery }, wire.TaskView>;
  readonly logs: Call<{ params: Id; query: wire.LogsQuery }, wire.TaskLogs>;
};
export type GroupCalls = {
  readonly group: Call<{ params: Id }, wire.GroupView>;
  readonly waitGroup: Call<{ params: Id; query: wire.WaitQuery }, wire.GroupView>;
  readonly cancelGroup: Call<{ params: Id; body: wire.CancelBody }, wire.GroupCancelled>;
  readonly retryGroup: Call<{ params: Id }, wire.GroupRetried>;
};
export type FileCalls = {
  readonly putFile: Call<{ params: wire.FileName; query: wire.PutFileQuery }, wire.StoredFile>;
  readonly file: Call<{ params: wire.FileName; query: wire.FileQuery }, string>;
};
export type ProjectCalls = {
  readonly usage: Call<{ query: wire.UsageQuery }, wire.UsageReport>;
  readonly projects: Call<Nothing, wire.ProjectList>;
  readonly project: Call<{ params: Id }, wire.ProjectView>;
  readonly putProject: Call<{ params: Id; body: wire.ProjectBody }, wire.ProjectView>;
};
export type WorkerCalls = {
  readonly workers: Call<Nothing, wire.WorkerList>;
  readonly joinWorker: Call<{ body: wire.JoinBody }, wire.Joined>;
  readonly sync: Call<{ params: Id; body: wire.SyncBody }, wire.SyncAnswer>;
  readonly handInLog: Call<{ params: Id; body: wire.LogBody }, wire.LogStatus>;
  readonly drainWorker: Call<{ params: Id; query: wire.LeaveQuery }, wire.WorkerStatus>;
  readonly leaveWorker: Call<{ params: Id; query: wire.LeaveQuery }, wire.WorkerStatus>;
};
export type ScheduleCalls = {
  readonly schedules: Call<{ query: wire.SchedulesQuery }, wire.SchedulePage>;
  readonly schedule: Call<{ params: Id }, wire.ScheduleView>;
  readonly putSchedule: Call<{ params: Id; body: wire.ScheduleBody }, wire.ScheduleView>;
  readonly removeSchedule: Call<{ params: Id }, wire.ScheduleStatus>;
};
export type GateCalls = {
  readonly askPermit: Call<{ body: wire.PermitBody }, wire.PermitView>;
  readonly settlePermit: Call<{ params: Id; body: wire.SettleBody }, wire.PermitStatus>;
  readonly dropPermit: Call<{ params: Id; query: wire.DropQuery }, wire.PermitStatus>;
  readonly gates: Call<Nothing, wire.GateList>;
  readonly gate: Call<{ params: Id }, wire.GateDetail>;
  readonly resetGate: Call<{ params: Id }, wire.GateStatus>;
  readonly removeGate: Call<{ params: Id }, wire.GateStatus>;
};
export type SchedulerCalls = {
  readonly stats: Call<Nothing, wire.Stats>;
  readonly queue: Call<Nothing, wire.QueueView>;
  readonly line: Call<{ query: wire.LineQuery }, wire.LineView>;
  readonly config: Call<Nothing, wire.SchedulerConfig>;
  readonly patchConfig: Call<{ body: wire.ConfigPatchBody }, wire.SchedulerConfig>;
  readonly reload: Call<Nothing, wire.SchedulerConfig>;
  readonly pause: Call<{ body: wire.PauseBody }, wire.PauseStatus>;
  readonly resume: Call<{ body: wire.PauseBody }, wire.PauseStatus>;
};
export type EventCalls = { readonly events: Call<{ query: wire.EventsQuery }, wire.EventPage> };
export type FleetCalls = ProjectCalls & WorkerCalls & ScheduleCalls & GateCalls;
export type Calls = BulkCalls &
  TaskCalls &
  GroupCalls &
  PlanCalls &
  FileCalls &
  FleetCalls &
  SchedulerCalls &
  EventCalls &
  WatchCalls &
  ClusterCalls &
  ServerCalls;

const taskId = idOf("task");
const groupId = idOf("group");
const projectId = idOf("project");
const workerId = idOf("worker");
const scheduleId = idOf("schedule", schedule.SCHEDULE_ID_MAX);
const permitId = idOf("permit");
const gateId = idOf("gate");

const bulkCalls = callsOf<BulkCalls>("bulk", {
  bulk: {
    roles: EVERYBODY,
    body: bulk.bulkBody,
    needsBody: true,
    summary: "Make many calls at once, each answered by itself",
    description:
      "Of any agents the token speaks for. Each call is checked as if it came alone: its role, its scope, its body. " +
      "The answer comes when all have theirs, and is 200 whatever became of each. Every call is safe to repeat if " +
      "what it makes has an id. Who sends a bulk before it has the answer of another may keep their order by the " +
      "header `drover-bulk: NAME N M`: its own name, the number of this bulk, and of the one it follows if that is " +
      "out. It begins when all calls of that one have; one that does not come is waited for a second, while fewer " +
      "than 256 bulks wait so. An answer repeats the header of its bulk.",
    answers: { 200: bulk.bulkAnswer },
  },
  waitAny: {
    roles: READERS,
    body: bulk.waitAnyBody,
    needsBody: true,
    summary: "Wait until any of many tasks has ended",
    description:
      "Answers those that have by then, each as a wait for it alone would: ask again for the others. A task that is " +
      "not there, or not the token's own, counts as ended and is refused by itself. Where all of them are more than " +
      "1 MiB some are left for the next time. While many are waited for the answer is held back a moment longer, 1 " +
      "ms for each hundred of them, for those that end just after the first.",
    answers: { 200: bulk.waitAnyAnswer },
  },
  waitPermits: {
    roles: CALLERS,
    body: bulk.waitPermitsBody,
    needsBody: true,
    summary: "Wait until any of many permits is granted",
    description:
      "Answers the ids of those that wait no more: granted, given up, not there, or not the token's own. Ask for " +
      "each of them by POST /permits, which says what became of it, and wait again for the others. While it waits " +
      "their tickets are kept. While many are waited for the answer is held back a moment longer, 1 ms for each " +
      "hundred of them.",
    answers: { 200: bulk.waitPermitsAnswer },
  },
});

const taskCalls = callsOf<TaskCalls>("tasks", {
  submit: {
    roles: AGENTS,
    body: task.taskBody,
    needsBody: true,
    summary: "Submit a task",
    description:
      "Answers when the task is durable. The same id and body again is the same task, so a caller that gives an id " +
      "may repeat the request after a lost answer.",
    answers: { 202: task.submitted },
    errors: ["conflict", "not_found", "queue_full", "backpressure", "limit"],
  },
  submitBatch: {
    roles: AGENTS,
    body: task.batchBody,
    needsBody: true,
    summary: "Submit many tasks at once",
    description: "A bad item never fails the others. Items may need each other by id, in any order.",
    answers: { 202: task.batchAnswer },
    errors: ["batch_too_large"],
  },
  tasks: {
    roles: READERS,
    query: about.tasksQuery,
    summary: "Page through tasks, in the order of submission",
    description:
      "A page ends at its limit, or sooner: before its bodies exceed 1 MiB together. It holds at least one task " +
      "while there is one, and only the absence of nextCursor says that there are no more. " +
      "An ended task is listed until scheduler.resultTtl after its end, one that failed or was skipped until " +
      "failedTtl; GET /tasks/{id} finds it longer.",
    answers: { 200: about.taskPage },
  },
  task: {
    roles: READERS,
    params: taskId,
    summary: "Read a task",
    answers: { 200: task.taskView },
    errors: ["not_found", "damaged"],
  },
  patch: {
    roles: AGENTS,
    params: taskId,
    body: about.patchBody,
    needsBody: true,
    summary: "Change the priority or deadline of a task",
    answers: { 200: task.taskView },
    errors: ["not_found", "conflict"],
  },
  cancel: {
    roles: AGENTS,
    params: taskId,
    body: about.cancelBody,
    summary: "Cancel a task",
    description:
      "What runs is stopped. One that has ended, as by a first try, stays as it is: conflict, its state in details.",
    answers: { 200: about.cancelled },
    errors: ["not_found", "conflict"],
  },
  cancelWhere: {
    roles: AGENTS,
    body: about.cancelWhereBody,
    needsBody: true,
    summary: "Cancel every task a filter names",
    answers: { 200: about.cancelledMany },
  },
  retry: {
    roles: AGENTS,
    params: taskId,
    summary: "Run a failed, cancelled or skipped task again, as a new iteration",
    description:
      "It runs as soon as its dependencies allow: notBefore is not waited for again, and a " +
      "deadline that has passed no longer holds.",
    answers: { 202: task.submitted },
    errors: ["not_found", "conflict"],
  },
  approve: {
    roles: AGENTS,
    params: taskId,
    body: approval.approveBody,
    summary: "Approve or deny what a parked task asks",
    description:
      "Approved, it is queued, and its next attempt sees the note; denied, it has failed. The first answer counts: a " +
      "second one, and one after the time for it, is a conflict. A token of an agent may not: it would approve itself.",
    answers: { 202: task.submitted },
    errors: ["not_found", "conflict", "forbidden"],
  },
  why: {
    roles: READERS,
    params: taskId,
    query: about.whyQuery,
    summary: "Why a task is not running, condition by condition, now or as of an event",
    answers: { 200: about.whyAnswer },
    errors: ["not_found"],
  },
  wait: {
    roles: READERS,
    params: taskId,
    query: about.waitQuery,
    summary: "Wait until a task has ended",
    description: "Answers the task when it has ended, or as it stands when the time is over: look at its state.",
    answers: { 200: task.taskView },
    errors: ["not_found"],
  },
  logs: {
    roles: READERS,
    params: taskId,
    query: about.logsQuery,
    summary: "The end of what an attempt wrote, as its exec worker keeps it",
    description:
      "A log stays on the machine of its worker. Where that is another one the worker is asked for it, which takes a " +
      "moment; one that is connected and does not answer within a few seconds is worker_silent.",
    answers: { 200: about.taskLogs },
    errors: ["not_found", "worker_silent"],
  },
});

const groupCalls = callsOf<GroupCalls>("groups", {
  group: {
    roles: READERS,
    params: groupId,
    summary: "How far the tasks of a batch are",
    description: "A group is known until the last record of its tasks has expired.",
    answers: { 200: group.groupView },
    errors: ["not_found"],
  },
  waitGroup: {
    roles: READERS,
    params: groupId,
    query: about.waitQuery,
    summary: "Wait until all tasks of a group have ended",
    description: "Answers the group when they have, or as it stands when the time is over: look for endedAt.",
    answers: { 200: group.groupView },
    errors: ["not_found"],
  },
  cancelGroup: {
    roles: AGENTS,
    params: groupId,
    body: about.cancelBody,
    summary: "Cancel what has not ended of a group",
    answers: { 200: group.groupCancelled },
    errors: ["not_found"],
  },
  retryGroup: {
    roles: AGENTS,
    params: groupId,
    summary: "Run the failed, cancelled and skipped tasks of a group again",
    description: "In the order of submission, so that what others need runs again before them.",
    answers: { 202: group.groupRetried },
    errors: ["not_found"],
  },
});

const projectCalls = callsOf<ProjectCalls>("projects", {
  usage: {
    roles: READERS,
    query: usage.usageQuery,
    summary: "What was used, summed up by project, agent, type, day or a label",
    description:
      "As attempts said at their ends, also of tasks that are long gone. By a label, an attempt without it is in no " +
      "row.",
    answers: { 200: usage.usageReport },
  },
  projects: {
    roles: READERS,
    summary: "All projects: weight, budget, charge, level, target",
    answers: { 200: project.projectList },
  },
  project: {
    roles: READERS,
    params: projectId,
    summary: "One project",
    answers: { 200: project.projectView },
    errors: ["not_found"],
  },
  putProject: {
    roles: ADMIN,
    params: projectId,
    body: project.projectBody,
    needsBody: true,
    summary: "Register a project, or change its settings; what is absent keeps its value",
    answers: { 200: project.projectView },
    errors: ["limit"],
  },
});

const workerCalls = callsOf<WorkerCalls>("workers", {
  workers: { roles: EVERYBODY, summary: "All workers", answers: { 200: worker.workerList } },
  joinWorker: {
    roles: WORKERS,
    body: worker.joinBody,
    summary: "Join as a worker",
    description:
      "Joining again under the same id begins a new session; what the former one held is queued again. " +
      "With an endpoint it is a push worker: it needs no sync, Drover posts to it.",
    answers: { 201: worker.joined },
    errors: ["conflict", "limit"],
  },
  sync: {
    roles: WORKERS,
    params: workerId,
    body: worker.syncBody,
    summary: "Say what runs and what has ended; hear what to run and what to stop",
    description:
      "Level-triggered: every answer lists all attempts this worker should hold and has not yet named in running. " +
      "A sync with results answers at once; another waits up to waitMs for something to say.",
    answers: { 200: worker.syncAnswer },
    errors: ["not_found", "session_lost", "stale_sync"],
  },
  handInLog: {
    roles: WORKERS,
    params: workerId,
    body: workerLogs.logBody,
    needsBody: true,
    summary: "Hand in the end of a log that the answer of a sync asked for",
    description: "A caller waits for it, a few seconds only. The same again after a lost answer changes nothing.",
    answers: { 200: workerLogs.logStatus },
    errors: ["not_found", "session_lost"],
  },
  drainWorker: {
    roles: WORKERS,
    params: workerId,
    query: worker.leaveQuery,
    summary: "Give a worker nothing more, and let it finish",
    answers: { 200: worker.workerStatus },
    errors: ["not_found", "conflict", "session_lost"],
  },
  leaveWorker: {
    roles: WORKERS,
    params: workerId,
    query: worker.leaveQuery,
    summary: "Leave; what the worker held is queued again",
    answers: { 200: worker.workerStatus },
    errors: ["not_found", "conflict", "session_lost"],
  },
});

const scheduleCalls = callsOf<ScheduleCalls>("schedules", {
  schedules: {
    roles: READERS,
    query: schedule.schedulesQuery,
    summary: "Page through recurring tasks, by their ids",
    description:
      "A page ends at its limit, or sooner: before its bodies exceed 1 MiB together. It holds at least one schedule " +
      "while there is one, and only the absence of nextCursor says that there are no more.",
    answers: { 200: schedule.schedulePage },
  },
  schedule: {
    roles: READERS,
    params: scheduleId,
    summary: "One recurring task, and when it is next due",
    answers: { 200: schedule.scheduleView },
    errors: ["not_found"],
  },
  putSchedule: {
    roles: AGENTS,
    params: scheduleId,
    body: schedule.scheduleBody,
    needsBody: true,
    summary: "Create or replace a recurring task",
    answers: { 200: schedule.scheduleView },
    errors: ["limit"],
  },
  removeSchedule: {
    roles: AGENTS,
    params: scheduleId,
    summary: "Remove a recurring task; what it has submitted stays",
    answers: { 200: schedule.scheduleStatus },
    errors: ["not_found"],
  },
});

const gateCalls = callsOf<GateCalls>("gates", {
  askPermit: {
    roles: CALLERS,
    body: permit.permitBody,
    needsBody: true,
    summary: "Ask for the right to make one LLM call",
    description:
      "The same id again is the same ticket and keeps its position. A queued ticket is given up after 60 s without a " +
      "call; one that is granted while nobody waits for it, after 15 s.",
    answers: { 200: permit.permitView },
    errors: ["not_found", "conflict", "stale_attempt", "limit", "budget_exhausted"],
  },
  settlePermit: {
    roles: CALLERS,
    params: permitId,
    body: permit.settleBody,
    summary: "Say what came of the call, and give the permit back",
    answers: { 200: permit.permitStatus },
    errors: ["not_found"],
  },
  dropPermit: {
    roles: CALLERS,
    params: permitId,
    query: permit.dropQuery,
    summary: "Give up a ticket, or a permit that was not used",
    answers: { 200: permit.permitStatus },
    errors: ["not_found"],
  },
  gates: {
    roles: EVERYBODY,
    summary: "All gates: what is out, what waits, what holds them",
    description: "Those that were used, then those that the config names and that are not used yet.",
    answers: { 200: project.gateList },
  },
  gate: {
    roles: EVERYBODY,
    params: gateId,
    summary: "One gate: how it stands, its totals, and the calls that are out or wait",
    description:
      "Calls that are out in the order of their start, then those that wait, next first; at most 1000. A token that " +
      "is scoped to a project or an agent sees its own calls only.",
    answers: { 200: project.gateDetail },
    errors: ["not_found"],
  },
  resetGate: {
    roles: ADMIN,
    params: gateId,
    summary: "Lift the block of a gate, and forget its throttles",
    description:
      "For when a caller has said more than its provider did. The gate begins with a probe, as after a restart; " +
      "calls that wait keep their positions, calls that are out stay out and count, and what was used in its windows " +
      "stays used.",
    answers: { 200: permit.gateStatus },
    errors: ["not_found"],
  },
  removeGate: {
    roles: ADMIN,
    params: gateId,
    summary: "Remove a gate that the config does not name and that is not in use",
    answers: { 200: permit.gateStatus },
    errors: ["not_found", "conflict"],
  },
});

const fileCalls = callsOf<FileCalls>("files", {
  putFile: {
    roles: CALLERS,
    params: file.fileName,
    query: file.putFileQuery,
    summary: "Put the content of a file that an attempt leaves",
    description:
      "The body is the file as it is, at most files.maxFile, and its hash is that of the path. Content that no task " +
      "lists within an hour goes again. An attempt lists its files when it reports its end. The token of an attempt " +
      "puts files of that one; any other token of an agent is refused.",
    answers: { 200: file.storedFile },
    errors: ["too_large", "stale_attempt", "not_found", "over_capacity"],
  },
  file: {
    roles: EVERYBODY,
    params: file.fileName,
    query: file.fileQuery,
    summary: "The content of a file that a task left",
    description: "For those who may read a task that lists it; a worker's token for an attempt that it runs.",
    answers: { 200: s.text(0, FILE_BYTES_MAX) },
    errors: ["not_found", "damaged"],
  },
});

const schedulerCalls = callsOf<SchedulerCalls>("scheduler", {
  stats: { roles: READERS, summary: "Queues, totals and the rules in force", answers: { 200: scheduler.stats } },
  queue: {
    roles: READERS,
    summary: "Who waits, by project and agent, with the head of each queue; bounded",
    answers: { 200: scheduler.queueView },
  },
  line: {
    roles: READERS,
    query: scheduler.lineQuery,
    summary: "What runs and what starts next, in order, with totals: of the tasks and of the calls; bounded",
    answers: { 200: scheduler.lineView },
  },
  config: { roles: READERS, summary: "The scheduler section in force", answers: { 200: scheduler.schedulerConfig } },
  patchConfig: {
    roles: ADMIN,
    body: scheduler.configPatchBody,
    needsBody: true,
    summary: "Change fields of the scheduler section",
    description: "Field by field, judged as a whole, all or nothing. It lies over the file and survives a restart.",
    answers: { 200: scheduler.schedulerConfig },
  },
  reload: {
    roles: ADMIN,
    summary: "Read the config file again; a bad file changes nothing",
    answers: { 200: scheduler.schedulerConfig },
  },
  pause: {
    roles: ADMIN,
    body: scheduler.pauseBody,
    summary: "Start nothing more: of the fleet, a project or a task; what runs goes on",
    answers: { 200: scheduler.pauseStatus },
    errors: ["not_found", "conflict"],
  },
  resume: {
    roles: ADMIN,
    body: scheduler.pauseBody,
    summary: "Take a pause back",
    answers: { 200: scheduler.pauseStatus },
    errors: ["not_found", "conflict"],
  },
});

const eventCalls = callsOf<EventCalls>("events", {
  events: {
    roles: READERS,
    query: event.eventsQuery,
    summary: "The events of the log with their hashes: a page of JSON, or a stream",
    description:
      "With Accept: text/event-stream it follows the log. Each message has the event's number as its id and its kind " +
      "as its event; Last-Event-ID (or after) says where to go on. With a filter (task, kind, label) a page of JSON " +
      "may be empty in the middle of the log: go on while there is nextAfter. A token that is scoped sees the events " +
      "of its own tasks, as long as their records are there.",
    answers: { 200: event.eventPage },
  },
});

export const CALLS: Calls = {
  ...taskCalls,
  ...groupCalls,
  ...planCalls,
  ...fileCalls,
  ...projectCalls,
  ...workerCalls,
  ...scheduleCalls,
  ...gateCalls,
  ...schedulerCalls,
  ...eventCalls,
  ...watchCalls,
  ...clusterCalls,
  ...serverCalls,
  ...bulkCalls,
};
export const CALL_LIST: readonly Call[] = Object.values(CALLS) as unknown as readonly Call[];

/** What a call takes: `params`, `query`, `body`, as far as it takes any. */
export type Asked<Name extends CallName> = AskOf<Calls[Name]>;
/** What a call answers when it is not an error. */
export type Answered<Name extends CallName> = AnswerOf<Calls[Name]>;
