/**
 * Every limit, asked at the moment of a start: fleet, project, agent, type, worker, locks, gate, budgets.
 *
 * A limit that was lowered may be exceeded by what was running already, so only starts are judged. Tokens are summed
 * over the exact window; the core's buckets expire late, so it may be stricter than this and never laxer.
 */
import type { Event } from "../core/model/index.ts";
import { setAsideByCalls } from "./audit-gates.ts";
import type { Complain } from "./audit-life.ts";
import { liveTasks, type Shadow, type ShadowProject, type ShadowTask, spentWithin, takesTask } from "./shadow.ts";

type Start = Extract<Event, { kind: "task-assigned" }>;

export function auditLimits(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind !== "task-assigned") return;
  const task = shadow.tasks.get(event.task);
  if (task === undefined) return;
  const live = liveTasks(shadow);
  auditCounts(shadow, task, event, live, complain);
  auditWorker(shadow, task, event, live, complain);
  auditBudgets(shadow, task, event, live, complain);
  for (const lock of task.spec.locks) {
    const holder = live.find(({ spec }) => spec.locks.includes(lock));
    if (holder !== undefined) complain("locks", `${event.task} starts though ${holder.spec.task} holds lock ${lock}`);
  }
  const gate = task.spec.provider === null ? undefined : shadow.gates.get(task.spec.provider);
  if (gate !== undefined && event.at < gate.blockedUntil) {
    complain("provider", `${event.task} starts though its provider ${task.spec.provider} is blocked`);
  }
}

function auditCounts(
  shadow: Shadow,
  task: ShadowTask,
  event: Start,
  live: readonly ShadowTask[],
  complain: Complain,
): void {
  const { maxInFlight, maxPerAgentInFlight, perType, critical } = shadow.config.scheduler;
  const { project: id, agent, type } = task.spec;
  const project = shadow.projects.get(id) as ShadowProject;
  const ofProject = live.filter(({ spec }) => spec.project === id);
  const rows: [rule: string, count: number, limit: number][] = [
    ["maxInFlight", live.length, maxInFlight],
    ["maxConcurrent", ofProject.length, project.settings.maxConcurrent],
    ["maxPerAgentInFlight", live.filter(({ spec }) => spec.agent === agent).length, maxPerAgentInFlight],
    ["perType", live.filter(({ spec }) => spec.type === type).length, perType[type] ?? Number.POSITIVE_INFINITY],
  ];
  if (event.rank.express) {
    rows.push(["critical", live.filter(({ attempt }) => attempt?.express).length, critical.maxInFlight]);
  }
  for (const [rule, count, limit] of rows) {
    if (count >= limit) complain(rule, `${event.task} starts with ${count} live already; the limit is ${limit}`);
  }
  if (shadow.paused) complain("pause", `${event.task} starts while the fleet is paused`);
  if (project.paused) complain("pause", `${event.task} starts while project ${id} is paused`);
}

function auditWorker(
  shadow: Shadow,
  task: ShadowTask,
  event: Start,
  live: readonly ShadowTask[],
  complain: Complain,
): void {
  const worker = shadow.workers.get(event.worker);
  const say = (rule: string, claim: string): void =>
    complain(rule, `${event.task} starts on ${event.worker}, ${claim}`);
  if (worker === undefined) return say("worker", "which is not here");
  if (worker.status !== "ready") say("worker", `which is ${worker.status}`);
  const mine = live.filter(({ attempt }) => attempt?.worker === event.worker);
  const room = worker.slots + shadow.config.scheduler.placement.maxQueuePerWorker;
  if (mine.length >= room) say("slots", `which runs ${mine.length} of ${room}`);
  const { cpu, memory, capabilities } = task.spec;
  const sum = (of: "cpu" | "memory"): number => mine.reduce((total, { spec }) => total + spec[of], 0);
  if (sum("cpu") + cpu > worker.cpu) say("resources", `which has ${worker.cpu - sum("cpu")} of ${cpu} millicores left`);
  if (sum("memory") + memory > worker.memory) say("resources", `which has too little memory left for ${memory}`);
  const missing = capabilities.find((capability) => !worker.capabilities.includes(capability));
  if (missing !== undefined) say("capabilities", `which lacks ${missing}`);
  if (!takesTask(worker, task)) say("takes", "which does not take its action, type or project");
  for (const [held, at] of shadow.holds) {
    if (at === event.worker && held !== event.task) say("hold", `which is kept free for ${held}`);
  }
}

function auditBudgets(
  shadow: Shadow,
  task: ShadowTask,
  event: Start,
  live: readonly ShadowTask[],
  complain: Complain,
): void {
  const project = shadow.projects.get(task.spec.project) as ShadowProject;
  const { startCost } = shadow.config.scheduler.fairness;
  const least = Math.max(0, task.estimate);
  if (event.reserve < least) {
    complain("budget", `${event.task} reserves ${event.reserve}, less than its estimate ${least}`);
  }
  if (event.charge < startCost + least) {
    complain("charge", `${event.task} is charged ${event.charge}, less than ${startCost} and its estimate`);
  }
  if (task.estimate < 0 && (event.reserve > 0 || event.charge > startCost)) {
    const took = `reserves ${event.reserve} and is charged ${event.charge}`;
    complain("expects-none", `${event.task} ${took}, with an estimate of no tokens`);
  }
  // One that expects no tokens asks no budget.
  if (event.reserve === 0) return;
  for (const { name, limit, used } of budgetsOf(shadow, project, live, event.at)) {
    if (used + event.reserve > limit) {
      complain("budget", `${event.task} reserves ${event.reserve} with ${used} of ${limit} used in ${name}`);
    }
  }
}

/**
 * The budgets that have a limit, of a project and of the fleet, with what is used and set aside of each. Windows are
 * exact, or longer by `late`: the core's steps expire late.
 */
export function budgetsOf(
  shadow: Shadow,
  project: ShadowProject,
  live: readonly ShadowTask[],
  at: number,
  late = 1,
): { name: string; limit: number; used: number }[] {
  const reserved = (tasks: readonly ShadowTask[]): number =>
    tasks.reduce((sum, { attempt }) => sum + (attempt?.reserve ?? 0), 0);
  const mine = live.filter(({ spec }) => spec.project === project.id);
  const [own, all] = [project.settings.budget, shadow.config.budget];
  const usedOfOwn =
    spentWithin(project.spent, own.window * late, at) + reserved(mine) + setAsideByCalls(shadow, project.id);
  const usedOfAll = spentWithin(shadow.spent, all.window * late, at) + reserved(live) + setAsideByCalls(shadow, null);
  return [
    ...(own.limit === null ? [] : [{ name: `project ${project.id}`, limit: own.limit, used: usedOfOwn }]),
    ...(all.limit === null ? [] : [{ name: "the fleet", limit: all.limit, used: usedOfAll }]),
  ];
}
