/**
 * Whose turn it was: between projects, between agents, between the tasks of one agent.
 *
 * Judged wherever the answer does not depend on what fits where: against tasks of exactly the same shape, unpinned,
 * that could have started in place of the one that did, on the same worker. Projects: none that could have used this
 * worker stands at a lower level (charged ÷ weight, halved every half life, counted anew here), so competing levels
 * never drift apart by more than one charge each. Agents: fewest in flight, least recently served, id. Tasks: none of
 * equal standing overtakes, and past the bound of starvation none overtakes at all.
 */
import type { Event } from "../core/model/index.ts";
import { budgetsOf, type Start } from "./audit-limits.ts";
import { type Complain, isRunnable, liveTasks, projectOf, type Shadow, type ShadowTask, takesTask } from "./shadow.ts";

const ROUNDING = 1e-9;
const PRIORITY_STEP = 100;

export function auditTurns(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind !== "task-assigned" || event.rank.express || event.rank.hold) return;
  const task = shadow.tasks.get(event.task);
  if (task === undefined || task.pin !== null) return;
  const worker = shadow.workers.get(event.worker);
  const rivals = [...shadow.tasks.values()].filter(
    (other) =>
      other !== task &&
      isRunnable(shadow, other) &&
      other.pin === null &&
      other.shape === task.shape &&
      (worker === undefined || takesTask(worker, other)) &&
      !standsAside(shadow, other) &&
      !mayBePassed(shadow, other, task, event.at),
  );
  const { rule, agents } = shadow.config.scheduler.fairness;
  const { project, agent } = task.spec;
  const mine = rivals.filter(({ spec }) => spec.project === project);
  const ofOtherProjects = rivals.filter(({ spec }) => spec.project !== project);
  const ofAgent = mine.filter(({ spec }) => spec.agent === agent);
  const ofOtherAgents = mine.filter(({ spec }) => spec.agent !== agent);
  const start: Start = { shadow, task, event, live: liveTasks(shadow), complain };
  if (rule === "level") auditProjects(start, ofOtherProjects);
  if (agents === "fair") auditAgents(start, ofOtherAgents);
  auditTasks(start, ofAgent);
}

/** A task whose estimate alone exceeds a budget stands aside until the limit rises. */
function standsAside(shadow: Shadow, { spec, estimate }: ShadowTask): boolean {
  const { limit } = projectOf(shadow, spec.project).settings.budget;
  return [limit, shadow.config.budget.limit].some((most) => most !== null && estimate > most);
}

/**
 * One that may expect tokens waits while it, or the one next in line before it, finds no room in a budget; then one of
 * its project that expects nothing passes it. Those without an estimate expect what their kind has used, which is not
 * known here: some, perhaps, unless one of the same type that has no estimate either is the one that passes.
 */
function mayBePassed(shadow: Shadow, { spec, estimate }: ShadowTask, by: ShadowTask, at: number): boolean {
  if (spec.project !== by.spec.project || by.estimate > 0 || estimate <= by.estimate) return false;
  const budgets = budgetsOf(shadow, projectOf(shadow, spec.project), liveTasks(shadow), at, true);
  const lacksRoom = (tokens: number): boolean => budgets.some(({ limit, used }) => used + tokens > limit);
  const mayWait = (other: ShadowTask): boolean => {
    if (other.estimate !== 0) return other.estimate > 0 && lacksRoom(other.estimate);
    return budgets.length > 0 && !(by.estimate === 0 && other.spec.type === by.spec.type);
  };
  return [...shadow.tasks.values()].some(
    (other) => other.spec.project === spec.project && isRunnable(shadow, other) && mayWait(other),
  );
}

/** Levels as they are at the start, before its own charge. */
function auditProjects({ shadow, task, event, live, complain }: Start, rivals: readonly ShadowTask[]): void {
  if (shadow.config.budget.limit !== null) return;
  const served = projectOf(shadow, task.spec.project);
  const level = served.level;
  for (const other of rivals) {
    const project = projectOf(shadow, other.spec.project);
    const ofProject = live.filter(({ spec }) => spec.project === project.id);
    const ofAgent = live.filter(({ spec }) => spec.agent === other.spec.agent);
    const couldStart =
      !project.paused &&
      project.settings.budget.limit === null &&
      ofProject.length < project.settings.maxConcurrent &&
      ofAgent.length < shadow.config.scheduler.maxPerAgentInFlight;
    if (couldStart && project.level < level - Math.max(1, level) * ROUNDING) {
      const levels = `${project.level.toFixed(3)} before ${level.toFixed(3)}`;
      return complain("fairness", `${event.task} of ${served.id} starts, but ${project.id} stands lower: ${levels}`);
    }
  }
}

function auditAgents({ shadow, task, live, complain }: Start, rivals: readonly ShadowTask[]): void {
  const project = projectOf(shadow, task.spec.project);
  const inFlight = (agent: string): number =>
    live.filter(({ spec }) => spec.project === project.id && spec.agent === agent).length;
  const served = (agent: string): number => project.lastServed.get(agent) ?? 0;
  const { agent: chosen } = task.spec;
  const { maxPerAgentInFlight } = shadow.config.scheduler;
  for (const { spec } of rivals) {
    const { agent } = spec;
    if (live.filter((other) => other.spec.agent === agent).length >= maxPerAgentInFlight) continue;
    const order = inFlight(agent) - inFlight(chosen) || served(agent) - served(chosen) || (agent < chosen ? -1 : 1);
    if (order < 0) return complain("agents", `${chosen} is served in ${project.id}, but it is the turn of ${agent}`);
  }
}

function auditTasks({ shadow, task, event, complain }: Start, rivals: readonly ShadowTask[]): void {
  const { starvationAfter } = shadow.config.scheduler.priority;
  const { maxPriority } = projectOf(shadow, task.spec.project).settings;
  for (const other of rivals) {
    const isOlder = other.runnableAt < task.runnableAt;
    const steps = Math.max(0, Math.ceil((other.priority - maxPriority) / PRIORITY_STEP));
    const isPastBound = event.at - other.runnableAt >= starvationAfter * (1 + steps);
    if (isOlder && isPastBound) {
      return complain("starvation", `${event.task} starts before ${other.spec.task}, which waits past the bound`);
    }
    const isEqual =
      other.priority === task.priority &&
      other.spec.depth === task.spec.depth &&
      other.iteration + other.ownFailures === task.iteration + task.ownFailures;
    const isFirst = isOlder || (other.runnableAt === task.runnableAt && other.seq < task.seq);
    if (isEqual && isFirst) return complain("order", `${event.task} overtakes its equal ${other.spec.task}`);
  }
}
