/**
 * What a token may see and touch: one that is scoped to projects or an agent its own, a worker's its own session.
 *
 * The table says for every call what a scoped token gets: what belongs to it (`own`), what is the same for all
 * (`common`), or nothing (`refused`), because the call speaks of the work of all at once. It is complete: a call that
 * is added does not compile until somebody has decided. A body that claims another agent or project is refused by
 * its field; a task of somebody else is not found, so that asking tells nothing about it.
 *
 * All workers of a fleet may have the same token, and its ids, tasks and permits can be guessed or seen. What only the
 * worker itself knows is the session that joining gave it. So a worker token says it in every report: syncs, logs,
 * permits, its leave. An admin need not: an admin may send any worker away.
 */
import { type AgentId, isRecord, type ProjectId, type TaskId } from "../../core/base/index.ts";
import { settingsFor } from "../../core/config/index.ts";
import { awaitedParent } from "../../core/fleet/index.ts";
import { refusalForMaking } from "../../core/lifecycle/index.ts";
import type { State } from "../../core/model/index.ts";
import { badInput, refused } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { type Caller, forbidden, isScoped } from "../../http/index.ts";
import type { CallName } from "../../protocol/index.ts";

const FOR_SCOPED: Readonly<Record<CallName, "own" | "common" | "refused">> = {
  bulk: "own",
  waitAny: "own",
  waitPermits: "own",
  submit: "own",
  submitBatch: "own",
  tasks: "own",
  task: "own",
  patch: "own",
  cancel: "own",
  cancelWhere: "own",
  retry: "own",
  approve: "own",
  why: "own",
  wait: "own",
  logs: "own",
  group: "own",
  waitGroup: "own",
  cancelGroup: "own",
  retryGroup: "own",
  plans: "own",
  plan: "own",
  putPlan: "own",
  cancelPlan: "own",
  retryPlan: "own",
  pausePlan: "own",
  resumePlan: "own",
  removePlan: "own",
  putFile: "refused",
  file: "own",
  usage: "own",
  projects: "own",
  project: "own",
  putProject: "refused",
  workers: "common",
  joinWorker: "refused",
  sync: "refused",
  handInLog: "refused",
  drainWorker: "refused",
  leaveWorker: "refused",
  schedules: "own",
  schedule: "own",
  putSchedule: "own",
  removeSchedule: "own",
  askPermit: "own",
  settlePermit: "own",
  dropPermit: "own",
  gates: "common",
  gate: "own",
  resetGate: "refused",
  removeGate: "refused",
  stats: "own",
  queue: "own",
  line: "own",
  config: "common",
  patchConfig: "refused",
  reload: "refused",
  pause: "refused",
  resume: "refused",
  events: "own",
  links: "own",
  history: "own",
  stuck: "own",
  whoami: "common",
  pulse: "common",
  settings: "refused",
  verify: "refused",
  health: "common",
  ready: "common",
  metrics: "refused",
  openapi: "common",
  cluster: "refused",
};

const DEFAULT_PROJECT = "default";
/** More than a task may name are refused anyway. */
const NEEDS_MAX = 10_000;

/** Whose something is. */
export type Owner = { readonly agentId?: string | undefined; readonly project?: string | undefined };

function scopeOf({ agentId, projects }: Caller): string {
  const many = projects?.length === 1 ? "project" : "projects";
  const scopes = [
    agentId === null ? "" : `agent ${agentId}`,
    projects === null ? "" : `${many} ${projects.join(", ")}`,
  ];
  return scopes.filter(Boolean).join(" and ");
}

/** What the token of an attempt is good for. */
const FOR_ATTEMPT: ReadonlySet<CallName> = new Set<CallName>([
  "bulk",
  "submit",
  "submitBatch",
  "task",
  "wait",
  "waitAny",
  "logs",
  "putFile",
  "file",
]);

/** Throws if the call speaks of everybody's work and the token is scoped. */
export function checkScope(name: CallName, caller: Caller): void {
  const { attempt } = caller;
  if (attempt !== undefined && FOR_ATTEMPT.has(name)) return;
  if (attempt !== undefined)
    throw forbidden(
      `this is the token of attempt ${attempt.number} of ${attempt.task}: it submits children of that task, puts its ` +
        "files, and reads it, those below it and those it needs",
    );
  if (FOR_SCOPED[name] === "refused" && isScoped(caller))
    throw forbidden(`this token is scoped to ${scopeOf(caller)}, and this call speaks of the work of all`);
}

/** What is claimed must be the token's own. A project that is not named is the token's only one, or the default. */
export function claimed<Body extends Owner>(caller: Caller, body: Body, at = ""): Body {
  if (!isScoped(caller)) return body;
  checkClaims(caller, body, at);
  const { projects } = caller;
  if (projects === null || body.project !== undefined) return body;
  if (projects.length === 1) return { ...body, project: projects[0] };
  if (projects.includes(DEFAULT_PROJECT)) return body;
  const field = `${at}project`;
  throw forbidden(`${field} must be one of ${projects.join(", ")}, which this token speaks for`, {
    field,
    allowed: projects,
  });
}

export function checkClaims({ agentId, projects }: Caller, body: Owner, at: string): void {
  const claims = [
    ["agentId", body.agentId, agentId === null ? null : [agentId]],
    ["project", body.project, projects],
  ] as const;
  for (const [key, given, own] of claims) {
    if (own === null || given === undefined || own.includes(given)) continue;
    const field = `${at}${key}`;
    const allowed = own.length === 1 ? own[0] : own;
    throw forbidden(`${field} is ${given}, and this token speaks for ${own.join(", ")} only`, { field, allowed });
  }
}

export const isOwn = ({ projects, ...caller }: Caller, { agentId, project = DEFAULT_PROJECT }: Owner): boolean =>
  (caller.agentId === null || caller.agentId === agentId) && (projects === null || projects.includes(project));

/** Whether a project that the token lists would be refused for want of room; it is asked for every submit. */
export function isShutOut(
  { state }: Drover,
  { projects }: Caller,
  { agentId, project = DEFAULT_PROJECT }: Owner,
): boolean {
  if (projects === null || state.projects.has(project as ProjectId) || !projects.includes(project)) return false;
  if (!state.config.projects.autoCreate) return false;
  return refusalForMaking(state, project as ProjectId, (agentId ?? null) as AgentId | null) !== null;
}

/** The writer of the token has named its projects: there is room for them where there is none for made-up ones. */
export async function makeOwnProject(drover: Drover, caller: Caller, owner: Owner): Promise<void> {
  if (isShutOut(drover, caller, owner)) await drover.putProject(owner.project ?? DEFAULT_PROJECT, {});
}

/**
 * A call without a task makes no project for a token that is scoped to an agent alone: its tasks in projects that
 * no call registered are counted, and its calls are not.
 */
export function checkProjectOfCall({ state }: Drover, { agentId, projects }: Caller, { project }: Owner): void {
  if (agentId === null || projects !== null || project === undefined || project === DEFAULT_PROJECT) return;
  if (state.projects.has(project as ProjectId) || settingsFor(state.config, project as ProjectId)[1] !== "default")
    return;
  throw refused({ type: "project-unknown", project });
}

/** A filter that names nothing but what is the token's own. */
export function ownFilter<Filter extends Owner>(
  caller: Caller,
  filter: Filter,
): Omit<Filter, "project"> & { readonly project?: string | readonly string[] } {
  checkClaims(caller, filter, "");
  const { agentId, projects } = caller;
  return {
    ...filter,
    ...(agentId === null ? {} : { agentId }),
    ...(projects === null || filter.project !== undefined ? {} : { project: projects }),
  };
}

/**
 * What a task waits for must be its caller's own too: that another's is there, and how it ended, stays hidden.
 *
 * It must be here now, or come with it (`beside`). Time passes before the task is let in, and what another caller
 * submits meanwhile is looked at by nothing any more.
 */
export async function checkDependencies(
  drover: Drover,
  caller: Caller,
  { id: own, parent, needs = [] }: { readonly id?: unknown; readonly parent?: unknown; readonly needs?: unknown },
  { at = "", beside = new Set([own]) }: { readonly at?: string; readonly beside?: ReadonlySet<unknown> } = {},
): Promise<void> {
  if (!isScoped(caller)) return;
  const { tasks, tombstones } = drover.state;
  const isKnown = (id: unknown): boolean =>
    typeof id === "string" && (tasks.has(id as TaskId) || tombstones.has(id as TaskId));
  // What it needs may be forgotten by the time it is submitted again; it is not made again.
  const isRepeated = isKnown(own);
  const ids: readonly unknown[] = Array.isArray(needs) ? needs : isRecord(needs) ? Object.values(needs) : [];
  for (const id of [parent, ...ids.slice(0, NEEDS_MAX)]) {
    if (typeof id !== "string") continue;
    const field = `${at}${id === parent ? "parent" : "needs"}`;
    const unknown = refused({ type: "dependency-unknown", field, dependency: id });
    if (isKnown(id)) await checkTask(drover, caller, id, unknown);
    else if (!isRepeated && !beside.has(id)) throw unknown;
  }
}

/** Throws, as if there were no such task, unless it is the token's own. */
export async function checkTask(drover: Drover, caller: Caller, id: string, otherwise?: Error): Promise<void> {
  if (!isScoped(caller)) return;
  if (caller.attempt !== undefined) {
    const sight = sees(drover.state, caller.attempt.task, id);
    if (sight === "needed") return;
    if (sight === null) throw otherwise ?? refused({ type: "task-unknown", task: id });
  }
  const live = drover.state.tasks.get(id as TaskId);
  const owner = live === undefined ? await drover.task(id) : { agentId: live.agent.id, project: live.project.id };
  if (!isOwn(caller, owner)) throw otherwise ?? refused({ type: "task-unknown", task: id });
}

/** How the attempt of a task sees another: as one it needs, as itself or one below it, or not at all. */
function sees({ tasks, tombstones }: State, own: string, id: string): "needed" | "below" | null {
  const links = tasks.get(own as TaskId)?.links ?? null;
  const parent = links === null ? null : awaitedParent(links);
  if (links !== null && (parent === id || links.needs.includes(id as TaskId))) return "needed";
  let at = id as TaskId | null;
  let former = Number.POSITIVE_INFINITY;
  for (let level = 0; level <= LEVELS_MAX && at !== null; level++) {
    const task = tasks.get(at);
    const found = task ?? tombstones.get(at);
    // A later task may have taken the id of one that was forgotten.
    if (found === undefined || found.seq >= former) return null;
    if (at === own) return "below";
    former = found.seq;
    at = task === undefined ? (tombstones.get(at)?.parent ?? null) : (task.links?.parent ?? null);
  }
  return null;
}
/** A tree that grows is no deeper. */
const LEVELS_MAX = 16;

/** A token that speaks for one agent may not answer what tasks ask: that agent would approve itself. */
export function checkApprover({ agentId }: Caller): void {
  if (agentId !== null)
    throw forbidden(`this token speaks for agent ${agentId}, which may not approve; ask a person, or an admin`);
}

/** Throws if a worker token does not say as whom it speaks. */
export function checkSaid({ role }: Caller, session: string | undefined): void {
  if (role === "worker" && session === undefined)
    throw badInput("session", undefined, "the session that joining gave, since a worker token speaks for its own only");
}

/** The session that runs an attempt, null if none does. */
export function sessionOf(state: State, task: string | undefined, attempt: number | undefined): string | null {
  const running = task === undefined ? null : (state.tasks.get(task as TaskId)?.attempt ?? null);
  return running === null || running.number !== attempt ? null : running.worker.session;
}

/** Throws unless a call that a worker token asks for is of an attempt that its session runs; or of no task. */
export function checkCall(
  state: State,
  caller: Caller,
  { taskId, attempt, session }: { taskId?: string; attempt?: number; session?: string },
): void {
  checkSaid(caller, session);
  if (caller.role !== "worker") return;
  if (taskId !== undefined && sessionOf(state, taskId, attempt) !== session)
    throw forbidden(`attempt ${attempt} of ${taskId} does not run under this session`, { field: "session" });
  if (taskId === undefined && !isJoined(state, session))
    throw forbidden("no worker has joined under this session", { field: "session" });
}

const isJoined = (state: State, session: string | undefined): boolean =>
  state.fleet.order.some((worker) => worker.session === session);
