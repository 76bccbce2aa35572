/**
 * Every limit, asked at the moment of a start: fleet, project, agent, type, worker, locks, gate, budgets.
 * The rules of a gate are asked at every grant: not while blocked, within maxConcurrent and the request window, one
 * probe after a block and a slow start after that; and no call is granted that did not ask.
 *
 * A limit that was lowered may be exceeded by what was running already, so only starts are judged. Tokens are summed
 * over the exact window; the core's buckets expire late, so it may be stricter than this and never laxer.
 */
import type { Event } from "../core/model/index.ts";
import {
  type Complain,
  type EventOf,
  gateSettingsOf,
  liveTasks,
  projectOf,
  type Shadow,
  type ShadowProject,
  type ShadowTask,
  spentWithin,
  takesTask,
  wantsWorktree,
} from "./shadow.ts";
import { gateOf } from "./shadow-events.ts";

/** How much longer than its window a budget may count, at most. */
const LATE = 1.01;
const MINUTE_MS = 60_000;

/** A start, and what it is judged by. */
export type Start = {
  readonly shadow: Shadow;
  readonly task: ShadowTask;
  readonly event: EventOf<"task-assigned">;
  readonly live: readonly ShadowTask[];
  readonly complain: Complain;
};

export function auditLimits(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind !== "task-assigned") return;
  const task = shadow.tasks.get(event.task);
  if (task === undefined) return;
  const live = liveTasks(shadow);
  const start: Start = { shadow, task, event, live, complain };
  for (const audit of [auditCounts, auditWorker, auditBudgets]) audit(start);
  for (const lock of task.spec.locks) {
    const holder = live.find(({ spec }) => spec.locks.includes(lock));
    if (holder !== undefined) complain("locks", `${event.task} starts though ${holder.spec.task} holds lock ${lock}`);
  }
  const gate = task.spec.provider === null ? undefined : shadow.gates.get(task.spec.provider);
  if (gate !== undefined && event.at < gate.blockedUntil) {
    complain("provider", `${event.task} starts though its provider ${task.spec.provider} is blocked`);
  }
}

function auditCounts({ shadow, task, event, live, complain }: Start): void {
  const { maxInFlight, maxPerAgentInFlight, perType, critical } = shadow.config.scheduler;
  const { project: id, agent, type } = task.spec;
  const project = projectOf(shadow, id);
  const ofProject = live.filter(({ spec }) => spec.project === id);
  const rows: [rule: string, count: number, limit: number][] = [
    ["maxInFlight", live.length, maxInFlight],
    ["maxConcurrent", ofProject.length, project.settings.maxConcurrent],
    ["maxPerAgentInFlight", live.filter(({ spec }) => spec.agent === agent).length, maxPerAgentInFlight],
    ["perType", live.filter(({ spec }) => spec.type === type).length, perType[type] ?? Number.POSITIVE_INFINITY],
  ];
  if (event.rank.express) {
    rows.push(["critical", live.filter(({ attempt }) => attempt?.start.rank.express).length, critical.maxInFlight]);
  }
  for (const [rule, count, limit] of rows) {
    if (count >= limit) complain(rule, `${event.task} starts with ${count} live already; the limit is ${limit}`);
  }
  if (shadow.paused) complain("pause", `${event.task} starts while the fleet is paused`);
  if (project.paused) complain("pause", `${event.task} starts while project ${id} is paused`);
}

function auditWorker({ shadow, task, event, live, complain }: Start): void {
  const worker = shadow.workers.get(event.worker);
  const say = (rule: string, claim: string): void =>
    complain(rule, `${event.task} starts on ${event.worker}, ${claim}`);
  if (worker === undefined) return say("worker", "which is not here");
  if (worker.status !== "ready") say("worker", `which is ${worker.status}`);
  const mine = live.filter(({ attempt }) => attempt?.start.worker === event.worker);
  const room = worker.slots + shadow.config.scheduler.placement.maxQueuePerWorker;
  if (mine.length >= room) say("slots", `which runs ${mine.length} of ${room}`);
  const { cpu, memory, capabilities } = task.spec;
  const sum = (of: "cpu" | "memory"): number => mine.reduce((total, { spec }) => total + spec[of], 0);
  if (sum("cpu") + cpu > worker.cpu) say("resources", `which has ${worker.cpu - sum("cpu")} of ${cpu} millicores left`);
  if (sum("memory") + memory > worker.memory) say("resources", `which has too little memory left for ${memory}`);
  const trees = mine.filter(wantsWorktree).length;
  if (wantsWorktree(task) && trees >= worker.worktrees)
    say("worktrees", `which has ${trees} of ${worker.worktrees} worktrees`);
  const missing = capabilities.find((capability) => !worker.capabilities.includes(capability));
  if (missing !== undefined) say("capabilities", `which lacks ${missing}`);
  if (!takesTask(worker, task)) say("takes", "which does not take its action, type or project");
  for (const [held, at] of shadow.holds) {
    if (at === event.worker && held !== event.task) say("hold", `which is kept free for ${held}`);
  }
}

function auditBudgets({ shadow, task, event, live, complain }: Start): void {
  const project = projectOf(shadow, task.spec.project);
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
 * The budgets that have a limit, of a project and of the fleet, with what is used and set aside of each: at the least,
 * or at the most. The core's steps expire late, and what left a window that was shorter for a while may still be known.
 */
export function budgetsOf(
  shadow: Shadow,
  project: ShadowProject,
  live: readonly ShadowTask[],
  at: number,
  isMost = false,
): { name: string; limit: number; used: number }[] {
  const reserved = (tasks: readonly ShadowTask[]): number =>
    tasks.reduce((sum, { attempt }) => sum + (attempt?.reserve ?? 0), 0);
  const mine = live.filter(({ spec }) => spec.project === project.id);
  const [own, all] = [project.settings.budget, shadow.config.budget];
  const spent = ({ spent, booked }: Pick<Shadow, "spent" | "booked">, windowMs: number): number =>
    isMost ? spentWithin(booked, windowMs * LATE, at) : spentWithin(spent, windowMs, at);
  const usedOfOwn = spent(project, own.window) + reserved(mine) + setAsideByCalls(shadow, project.id);
  const usedOfAll = spent(shadow, all.window) + reserved(live) + setAsideByCalls(shadow, null);
  return [
    ...(own.limit === null ? [] : [{ name: `project ${project.id}`, limit: own.limit, used: usedOfOwn }]),
    ...(all.limit === null ? [] : [{ name: "the fleet", limit: all.limit, used: usedOfAll }]),
  ];
}

export function auditGates(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind === "permit-settled" && !gateOf(shadow, event.gate).out.has(event.permit)) {
    complain("permit-once", `${event.permit} is settled at ${event.gate}, which it does not hold`);
  }
  if (event.kind === "permit-asked") auditFreeCall(shadow, event, complain);
  if (event.kind !== "permit-granted") return;
  const gate = gateOf(shadow, event.gate);
  const { maxConcurrent, requests, windowMs } = gateSettingsOf(shadow, event.gate);
  const say = (rule: string, claim: string): void =>
    complain(rule, `${event.permit} is granted at ${event.gate}${claim}`);
  const permit = gate.waiting.get(event.permit);
  if (permit === undefined) return say("permit-once", ", but it does not wait there");
  const { task, attempt } = permit;
  const live = task === null ? null : (shadow.tasks.get(task)?.attempt?.number ?? null);
  if (live !== attempt) say("permit-owner", ` to attempt ${attempt} of ${task}; live: ${live}`);
  if (event.at < gate.blockedUntil) say("gate-block", `, which is blocked until ${gate.blockedUntil}`);
  if (gate.out.size >= maxConcurrent) say("gate-concurrency", ` with ${gate.out.size} out of ${maxConcurrent}`);
  const used = gate.grants.filter((at) => at > event.at - windowMs).length;
  if (used >= requests) say("gate-window", ` as number ${used + 1} of ${requests} in ${windowMs} ms`);
  const fresh = [...gate.out.values()].filter(({ episode }) => episode === gate.episode).length;
  if (fresh >= gate.slow) say("gate-probe", ` with ${fresh} out; after a block ${gate.slow} may be`);
  auditTokens(shadow, event, permit.tokens, say);
}

/** What was used in a minute, what is out and this call stay within the limit; a call alone is always let out. */
function auditTokens(shadow: Shadow, event: EventOf<"permit-granted">, tokens: number, say: Complain): void {
  const gate = gateOf(shadow, event.gate);
  const { perMinute } = gateSettingsOf(shadow, event.gate).tokens;
  if (perMinute === null) return;
  const out = [...gate.out.values()].reduce((sum, permit) => sum + permit.tokens, 0);
  const used = spentWithin(gate.spent, MINUTE_MS, event.at) + out;
  if (used > 0 && used + Math.max(1, tokens) > perMinute)
    say("gate-tokens", ` with ${used} of ${perMinute} tokens used`);
}

/** A call of no task sets its estimate aside when it asks: with all that is used and set aside it fits the budget. */
function auditFreeCall(shadow: Shadow, event: EventOf<"permit-asked">, complain: Complain): void {
  const project = shadow.projects.get(event.project);
  if (event.task !== null || project === undefined) return;
  const { limit, window } = project.settings.budget;
  const attempts = [...shadow.tasks.values()].filter(({ spec }) => spec.project === project.id);
  const reserved = attempts.reduce((sum, { attempt }) => sum + (attempt?.reserve ?? 0), 0);
  const used = spentWithin(project.spent, window, event.at) + reserved + setAsideByCalls(shadow, project.id);
  if (limit !== null && used + Math.max(1, event.tokens) > limit) {
    complain("gate-budget", `${event.permit} asks with ${used} of ${limit} used in project ${event.project}`);
  }
}

/** What calls of no task have set aside, waiting or out: of one project, or of all. */
function setAsideByCalls(shadow: Shadow, project: string | null): number {
  const calls = [...shadow.gates.values()].flatMap(({ waiting, out }) => [...waiting.values(), ...out.values()]);
  const mine = calls.filter((call) => call.task === null && (project === null || call.project === project));
  return mine.reduce((sum, { tokens }) => sum + Math.max(1, tokens), 0);
}
