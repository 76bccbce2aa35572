/**
 * The calls about who executes, who pays and what stands before a provider: workers, projects, permits, schedules.
 */

import * as s from "../schema/schema.ts";
import * as permit from "../shapes/permits.ts";
import * as project from "../shapes/projects.ts";
import * as schedule from "../shapes/schedules.ts";
import * as worker from "../shapes/workers.ts";
import type { Role } from "../wire/role.ts";
import { type Call, call, type Id } from "./call.ts";

export type FleetCalls = {
  readonly projects: Call<Record<never, never>, project.ProjectList>;
  readonly project: Call<{ params: Id }, project.ProjectView>;
  readonly putProject: Call<{ params: Id; body: project.ProjectBody }, project.ProjectView>;
  readonly workers: Call<Record<never, never>, worker.WorkerList>;
  readonly joinWorker: Call<{ body: worker.JoinBody }, worker.Joined>;
  readonly sync: Call<{ params: Id; body: worker.SyncBody }, worker.SyncAnswer>;
  readonly handInLog: Call<{ params: Id; body: worker.LogBody }, worker.LogStatus>;
  readonly drainWorker: Call<{ params: Id; query: worker.LeaveQuery }, worker.WorkerStatus>;
  readonly leaveWorker: Call<{ params: Id; query: worker.LeaveQuery }, worker.WorkerStatus>;
  readonly schedules: Call<{ query: schedule.SchedulesQuery }, schedule.SchedulePage>;
  readonly schedule: Call<{ params: Id }, schedule.ScheduleView>;
  readonly putSchedule: Call<{ params: Id; body: schedule.ScheduleBody }, schedule.ScheduleView>;
  readonly removeSchedule: Call<{ params: Id }, schedule.ScheduleStatus>;
  readonly askPermit: Call<{ body: permit.PermitBody }, permit.PermitView>;
  readonly settlePermit: Call<{ params: Id; body: permit.SettleBody }, permit.PermitStatus>;
  readonly dropPermit: Call<{ params: Id; query: permit.DropQuery }, permit.PermitStatus>;
  readonly gates: Call<Record<never, never>, project.GateList>;
  readonly gate: Call<{ params: Id }, project.GateDetail>;
  readonly resetGate: Call<{ params: Id }, permit.GateStatus>;
  readonly removeGate: Call<{ params: Id }, permit.GateStatus>;
};

const ADMIN: readonly Role[] = ["admin"];
const AGENTS: readonly Role[] = ["admin", "agent"];
const WORKERS: readonly Role[] = ["admin", "worker"];
const READERS: readonly Role[] = ["admin", "agent", "viewer"];
const EVERYBODY: readonly Role[] = ["admin", "agent", "worker", "viewer"];
const CALLERS: readonly Role[] = ["admin", "agent", "worker"];
const idOf = (what: string): s.Schema<Id> => s.object<Id>({ id: s.described(s.name(), `The ${what}'s id.`) });
const projectId = idOf("project");
const workerId = idOf("worker");
const scheduleId = s.object<Id>({ id: s.described(s.name(schedule.SCHEDULE_ID_MAX), "The schedule's id.") });
const permitId = idOf("permit");
const gateId = idOf("gate");

const projectCalls: Pick<FleetCalls, "projects" | "project" | "putProject"> = {
  projects: call("projects", {
    tag: "projects",
    roles: READERS,
    summary: "All projects: weight, budget, charge, level, target",
    answers: { 200: project.projectList },
  }),
  project: call("project", {
    tag: "projects",
    roles: READERS,
    params: projectId,
    summary: "One project",
    answers: { 200: project.projectView },
    errors: ["not_found"],
  }),
  putProject: call("putProject", {
    tag: "projects",
    roles: ADMIN,
    params: projectId,
    body: project.projectBody,
    needsBody: true,
    summary: "Register a project, or change its settings; what is absent keeps its value",
    answers: { 200: project.projectView },
    errors: ["limit"],
  }),
};

type WorkerNames = "workers" | "joinWorker" | "sync" | "handInLog" | "drainWorker" | "leaveWorker";
const workerCalls: Pick<FleetCalls, WorkerNames> = {
  workers: call("workers", {
    tag: "workers",
    roles: EVERYBODY,
    summary: "All workers",
    answers: { 200: worker.workerList },
  }),
  joinWorker: call("joinWorker", {
    tag: "workers",
    roles: WORKERS,
    body: worker.joinBody,
    summary: "Join as a worker",
    description:
      "Joining again under the same id begins a new session; what the former one held is queued again. " +
      "With an endpoint it is a push worker: it needs no sync, Drover posts to it.",
    answers: { 201: worker.joined },
    errors: ["conflict", "limit"],
  }),
  sync: call("sync", {
    tag: "workers",
    roles: WORKERS,
    params: workerId,
    body: worker.syncBody,
    summary: "Say what runs and what has ended; hear what to run and what to stop",
    description:
      "Level-triggered: every answer lists all attempts this worker should hold and has not yet named in running. " +
      "A sync with results answers at once; another waits up to waitMs for something to say.",
    answers: { 200: worker.syncAnswer },
    errors: ["not_found", "session_lost", "stale_sync"],
  }),
  handInLog: call("handInLog", {
    tag: "workers",
    roles: WORKERS,
    params: workerId,
    body: worker.logBody,
    needsBody: true,
    summary: "Hand in the end of a log that the answer of a sync asked for",
    description: "A caller waits for it, a few seconds only. The same again after a lost answer changes nothing.",
    answers: { 200: worker.logStatus },
    errors: ["not_found", "session_lost"],
  }),
  drainWorker: call("drainWorker", {
    tag: "workers",
    roles: WORKERS,
    params: workerId,
    query: worker.leaveQuery,
    summary: "Give a worker nothing more, and let it finish",
    answers: { 200: worker.workerStatus },
    errors: ["not_found", "session_lost"],
  }),
  leaveWorker: call("leaveWorker", {
    tag: "workers",
    roles: WORKERS,
    params: workerId,
    query: worker.leaveQuery,
    summary: "Leave; what the worker held is queued again",
    answers: { 200: worker.workerStatus },
    errors: ["not_found", "session_lost"],
  }),
};

const scheduleCalls: Pick<FleetCalls, "schedules" | "schedule" | "putSchedule" | "removeSchedule"> = {
  schedules: call("schedules", {
    tag: "schedules",
    roles: READERS,
    query: schedule.schedulesQuery,
    summary: "Page through recurring tasks, by their ids",
    description:
      "A page ends at its limit, or sooner: before its bodies exceed 1 MiB together. It holds at least one schedule " +
      "while there is one, and only the absence of nextCursor says that there are no more.",
    answers: { 200: schedule.schedulePage },
  }),
  schedule: call("schedule", {
    tag: "schedules",
    roles: READERS,
    params: scheduleId,
    summary: "One recurring task, and when it is next due",
    answers: { 200: schedule.scheduleView },
    errors: ["not_found"],
  }),
  putSchedule: call("putSchedule", {
    tag: "schedules",
    roles: AGENTS,
    params: scheduleId,
    body: schedule.scheduleBody,
    needsBody: true,
    summary: "Create or replace a recurring task",
    answers: { 200: schedule.scheduleView },
    errors: ["limit"],
  }),
  removeSchedule: call("removeSchedule", {
    tag: "schedules",
    roles: AGENTS,
    params: scheduleId,
    summary: "Remove a recurring task; what it has submitted stays",
    answers: { 200: schedule.scheduleStatus },
    errors: ["not_found"],
  }),
};

type GateNames = "askPermit" | "settlePermit" | "dropPermit" | "gates" | "gate" | "resetGate" | "removeGate";
const gateCalls: Pick<FleetCalls, GateNames> = {
  askPermit: call("askPermit", {
    tag: "gates",
    roles: CALLERS,
    body: permit.permitBody,
    needsBody: true,
    summary: "Ask for the right to make one LLM call",
    description:
      "The same id again is the same ticket and keeps its position. A queued ticket is given up after 60 s without a " +
      "call.",
    answers: { 200: permit.permitView },
    errors: ["not_found", "conflict", "stale_attempt", "limit", "budget_exhausted"],
  }),
  settlePermit: call("settlePermit", {
    tag: "gates",
    roles: CALLERS,
    params: permitId,
    body: permit.settleBody,
    summary: "Say what came of the call, and give the permit back",
    answers: { 200: permit.permitStatus },
    errors: ["not_found"],
  }),
  dropPermit: call("dropPermit", {
    tag: "gates",
    roles: CALLERS,
    params: permitId,
    query: permit.dropQuery,
    summary: "Give up a ticket, or a permit that was not used",
    answers: { 200: permit.permitStatus },
    errors: ["not_found"],
  }),
  gates: call("gates", {
    tag: "gates",
    roles: EVERYBODY,
    summary: "All gates: what is out, what waits, what holds them",
    description: "Those that were used, then those that the config names and that are not used yet.",
    answers: { 200: project.gateList },
  }),
  gate: call("gate", {
    tag: "gates",
    roles: EVERYBODY,
    params: gateId,
    summary: "One gate: how it stands, its totals, and the calls that are out or wait",
    description:
      "Calls that are out in the order of their start, then those that wait, next first; at most 1000. A token that " +
      "is scoped to a project or an agent sees its own calls only.",
    answers: { 200: project.gateDetail },
    errors: ["not_found"],
  }),
  resetGate: call("resetGate", {
    tag: "gates",
    roles: ADMIN,
    params: gateId,
    summary: "Lift the block of a gate, and forget its throttles",
    description:
      "For when a caller has said more than its provider did. The gate begins with a probe, as after a restart; " +
      "calls that wait keep their positions, and what was used in its windows stays used.",
    answers: { 200: permit.gateStatus },
    errors: ["not_found"],
  }),
  removeGate: call("removeGate", {
    tag: "gates",
    roles: ADMIN,
    params: gateId,
    summary: "Remove a gate that the config does not name and that is not in use",
    answers: { 200: permit.gateStatus },
    errors: ["not_found", "conflict"],
  }),
};

export const FLEET_CALLS: FleetCalls = { ...projectCalls, ...workerCalls, ...scheduleCalls, ...gateCalls };
