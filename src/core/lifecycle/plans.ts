/**
 * Plans: tasks that were put as one, and are held, paused and forgotten as one.
 *
 * The tasks of a plan are of its group. As long as the plan is known their records stay, whatever their own time is:
 * so what is done is not done again when the plan is put once more. What was a task of it before has its own time.
 * A plan that is paused starts nothing: its tasks leave their queues, which costs what it has of them, and nothing for
 * others; what runs may end. One that fails fast is paused by the first of its tasks that fails, before anything else
 * starts.
 *
 * A plan that has ended is forgotten when its time is up, or when another needs its room: of who has the most, the one
 * that ended first. So nobody loses a plan to one who has as many, and the last tenth is kept for who has few.
 */

import type { AgentId, Instant, ProjectId, TaskId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { isKeptForOthers, keptOf } from "../base/reserve.ts";
import { fail, ok, type Result, unreachable } from "../base/result.ts";
import { first, insert, items, remove } from "../collections/sorted-list.ts";
import type { Ahead } from "../model/ahead.ts";
import { type CommandOf, type Decided, REPEATED, type Submission } from "../model/commands.ts";
import type { Event, EventOf } from "../model/events.ts";
import { noCounts } from "../model/phase.ts";
import type { Plan } from "../model/plan.ts";
import type { ReadonlyPlan, ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { State, TaskGroup } from "../model/state.ts";
import { dropHold } from "../turn/hold.ts";
import { settleQueue } from "../turn/queue.ts";
import { projectFor, refusalForBacklog, refusalForFields, refusalForRoom } from "./admission.ts";
import { groupFor, keeps, keptIn, listFailed, missingIn, recount } from "./groups.ts";
import { decideCancel, decideRetry } from "./task-commands.ts";
import { countReady, holdRecord } from "./transitions.ts";

/** Tasks that all plans have together. */
export const HELD_BY_PLANS_MAX = 100_000;

/** The group of a plan's tasks. */
export const groupOfPlan = (plan: string): string => `plan:${plan}`;

type PlanCommand = CommandOf<"put-plan" | "pause-plan" | "remove-plan" | "renew-plan" | "cut-plan">;
/** To be put as it was renews a plan once in so many parts of its time. */
const RENEWALS = 10;

export function decidePlan(state: ReadonlyState, command: PlanCommand, now: Instant): Decided {
  const { plan: id } = command;
  if (command.type === "put-plan") return decidePut(state, command, now);
  const plan = state.plans.get(id);
  if (plan === undefined) return fail({ type: "plan-unknown", plan: id });
  if (command.type === "remove-plan")
    return plan.open > 0 ? fail({ type: "plan-live", plan: id }) : ok({ events: [removed(id, false, now)] });
  if (command.type === "cut-plan")
    return missingIn(plan) === 0 ? REPEATED : ok({ events: [{ kind: "plan-cut", at: now, plan: id }] });
  if (command.type === "renew-plan") {
    const isFresh = plan.open > 0 || now - plan.keptSince < state.config.scheduler.planTtl / RENEWALS;
    return isFresh ? REPEATED : ok({ events: [{ kind: "plan-renewed", at: now, plan: id }] });
  }
  if (command.paused === (plan.paused !== null)) return REPEATED;
  const event: Event = command.paused
    ? { kind: "plan-paused", at: now, plan: id, cause: "asked" }
    : { kind: "plan-resumed", at: now, plan: id };
  return ok({ events: [event] });
}

function decidePut(state: ReadonlyState, command: CommandOf<"put-plan">, now: Instant): Decided {
  const { type: _, cancels, retries, submissions, ...put } = command;
  const room = roomFor(state, command);
  if (!room.ok) return room;
  const full = refusalForAll(state, command, now);
  if (full !== null) return fail(full);
  const events: Event[] = room.value.map((plan) => removed(plan, true, now));
  return ok({ events: [...events, { kind: "plan-put", at: now, ...put }] });
}

// ------------------------------------------------------------- how many there may be

type Measure = "plans" | "tasks";
/** How many plans an agent has, how many tasks in these, and which of them may go, in the order of their ends. */
type Holding = Record<Measure, number> & { readonly ended: ReadonlyPlan[] };
type Holdings = Map<AgentId | null, Holding>;
const nothingHeld = (): Holding => ({ plans: 0, tasks: 0, ended: [] });

/**
 * The plans that go for one that is put: what lives stays. Whose the others are is asked only when nine tenths are
 * taken; to look through all plans costs no more than to put a large one.
 */
function roomFor(state: ReadonlyState, put: CommandOf<"put-plan">): Result<readonly string[], Refusal> {
  const { plans, heldByPlans, config } = state;
  const known = plans.get(put.plan);
  const max = { plans: config.scheduler.plansMax, tasks: HELD_BY_PLANS_MAX };
  const more = {
    plans: known === undefined ? 1 : 0,
    tasks: put.tasks.length + put.others.length - (known === undefined ? 0 : keptIn(known)),
  };
  const used = { plans: plans.size, tasks: heldByPlans };
  const isRoomy = (what: Measure): boolean =>
    more[what] <= 0 || used[what] + more[what] <= max[what] - keptOf(max[what]);
  const gone: string[] = [];
  if (isRoomy("plans") && isRoomy("tasks")) return ok(gone);
  const holdings = holdingsIn(state, put.plan);
  const mine = holdings.get(put.agent) ?? nothingHeld();
  const before = { ...used };
  const isFull = (what: Measure): boolean => {
    const [all, own] = [used[what] + more[what], mine[what] + more[what]];
    // What takes the place of others takes nothing of what is kept.
    const isKept = all > before[what] && isKeptForOthers(max[what], all - 1, own - 1);
    return more[what] > 0 && (all > max[what] || isKept);
  };
  for (const what of ["plans", "tasks"] as const)
    while (isFull(what)) {
      const oldest = takeOldest(holdings, what, mine);
      if (oldest === null) return fail(noRoom(what, max[what], used[what], used[what] + more[what] <= max[what]));
      used.plans--;
      used.tasks -= keptIn(oldest);
      gone.push(oldest.id);
    }
  return ok(gone);
}

function holdingsIn({ plans, endedPlans }: ReadonlyState, but: string): Holdings {
  const holdings: Holdings = new Map();
  const of = (agent: AgentId | null): Holding => {
    const known = holdings.get(agent) ?? nothingHeld();
    holdings.set(agent, known);
    return known;
  };
  for (const plan of items(endedPlans)) if (plan.id !== but) of(plan.agent).ended.push(plan);
  for (const plan of plans.values()) {
    const holding = of(plan.agent);
    holding.plans++;
    holding.tasks += keptIn(plan);
  }
  return holdings;
}

/** Of who has the most, of all with one that has ended: for somebody of his own, or of who has more than he. */
function takeOldest(holdings: Holdings, what: Measure, mine: Holding | null): ReadonlyPlan | null {
  let most: Holding | null = null;
  for (const holding of holdings.values()) {
    if (holding.ended.length === 0 || holding[what] <= (most?.[what] ?? -1)) continue;
    if (mine === null || holding === mine || holding[what] > mine[what]) most = holding;
  }
  const oldest = most?.ended.shift() ?? null;
  if (most === null || oldest === null) return null;
  most.plans--;
  most.tasks -= keptIn(oldest);
  return oldest;
}

const REMEDY = "wait until a plan of yours has ended, or cancel one";

const noRoom = (measure: Measure, max: number, used: number, isKept: boolean): Refusal => ({
  type: "too-many",
  what: measure === "plans" ? "plans" : "tasks of plans",
  max,
  ...(isKept
    ? { kept: keptOf(max), remedy: `they are for agents that have few; ${REMEDY}` }
    : { used, remedy: REMEDY }),
});

// ---------------------------------------------------------------- what comes with it

/** What comes with a plan: why one of these could not be done after those before it. */
function refusalForAll(state: ReadonlyState, command: CommandOf<"put-plan">, now: Instant): Refusal | null {
  const ahead = nothingAhead();
  for (const task of command.cancels) {
    const decided = decideCancel(state, { type: "cancel-task", task, reason: null }, now);
    if (!decided.ok) return decided.failure;
    const { phase, project, agent } = state.tasks.get(task) as ReadonlyTask;
    if (phase !== "running") countAhead(ahead, project.id, agent.id, -1);
  }
  return refusalForRetries(state, command, ahead, now) ?? refusalForSubmissions(state, command, ahead, now);
}

const nothingAhead = (): Ahead => ({
  backlog: 0,
  ofProjects: new Map(),
  ofAgents: new Map(),
  labels: new Set(),
  labelsOf: new Map(),
  projects: new Set(),
  projectsOf: new Map(),
});

function countAhead(ahead: Ahead, project: ProjectId, agent: AgentId, by: 1 | -1): void {
  ahead.backlog += by;
  addTo(ahead.ofProjects, project, by);
  addTo(ahead.ofAgents, agent, by);
}

function addTo<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

function refusalForRetries(
  state: ReadonlyState,
  { retries }: CommandOf<"put-plan">,
  ahead: Ahead,
  now: Instant,
): Refusal | null {
  const revived = new Set<TaskId>();
  for (const id of retries) {
    const decided = decideRetry(state, { type: "retry-task", task: id }, now, revived);
    if (!decided.ok) return decided.failure;
    const { project, agent } = state.tasks.get(id) as ReadonlyTask;
    const full = refusalForBacklog(state, { project: project.id, agent: agent.id }, ahead);
    if (full !== null) return full;
    countAhead(ahead, project.id, agent.id, 1);
    revived.add(id);
  }
  return null;
}

function refusalForSubmissions(
  state: ReadonlyState,
  { submissions }: CommandOf<"put-plan">,
  ahead: Ahead,
  now: Instant,
): Refusal | null {
  const met = new Set<string>();
  const isKnown = (id: TaskId): boolean => state.tasks.has(id) || state.tombstones.has(id);
  const comes = new Set<TaskId>();
  for (const [index, task] of submissions.entries()) {
    const { id, project, agent } = task;
    if (id !== null && (isKnown(id) || comes.has(id))) return { type: "task-exists", task: id };
    const dependency = task.needs.find((need) => !isKnown(need) && !comes.has(need));
    if (dependency !== undefined) return { type: "dependency-unknown", field: "needs", dependency };
    const place = `${project}\n${agent}`;
    const settings = met.has(place) ? null : projectFor(state, project, agent, ahead);
    if (settings !== null && !settings.ok) return settings.failure;
    const full = refusalForFields(task, now) ?? refusalForRoom(state, task, ahead);
    if (full !== null) return withAll(full, submissions.slice(index));
    if (settings !== null) meetProject(state, ahead, settings.value, task);
    met.add(place);
    meetLabels(state, ahead, task);
    countAhead(ahead, project, agent, 1);
    if (id !== null) comes.add(id);
  }
  return null;
}

/** How many tasks there would be with all of them, not how many were let in before the first that is refused. */
function withAll(refusal: Refusal, rest: readonly Submission[]): Refusal {
  if (refusal.type !== "queue-full" || refusal.kept !== undefined) return refusal;
  const { limit, agent, queued } = refusal;
  const more = limit === "maxQueue" ? rest : rest.filter((task) => task.agent === agent);
  return { ...refusal, queued: queued + more.length };
}

type ProjectFound = { readonly isNew: boolean; readonly source: ReadonlyProject["source"] };

function meetProject(
  { projects }: ReadonlyState,
  ahead: Ahead,
  { isNew, source }: ProjectFound,
  { project, agent }: Submission,
): void {
  if (isNew) ahead.projects.add(project);
  if (source === "default" && projects.get(project)?.agents.has(agent) !== true) addTo(ahead.projectsOf, agent, 1);
}

function meetLabels(state: ReadonlyState, ahead: Ahead, { labels = [], agent }: Submission): void {
  for (const label of labels) {
    if (state.labels.has(label) || ahead.labels.has(label)) continue;
    ahead.labels.add(label);
    addTo(ahead.labelsOf, agent, 1);
  }
}

const removed = (plan: string, expired: boolean, now: Instant): Event => ({
  kind: "plan-removed",
  at: now,
  plan,
  expired,
});

/** Of a plan that fails fast a task has failed: nothing more of it starts. */
export function nextPlanPause({ failedPlans }: ReadonlyState, now: Instant): Event | null {
  let next: string | null = null;
  // In the order of their names, which a snapshot keeps.
  for (const { id } of failedPlans) if (next === null || id < next) next = id;
  return next === null ? null : { kind: "plan-paused", at: now, plan: next, cause: "failed" };
}

/** The plan that is forgotten next, if that is due. */
export function duePlan(state: ReadonlyState, now: Instant): Event | null {
  const oldest = first(state.endedPlans);
  if (oldest === undefined) return null;
  const { planTtl, plansMax } = state.config.scheduler;
  if (oldest.keptSince + planTtl <= now) return removed(oldest.id, true, now);
  // There may be fewer than there were: the config says so, or the log is of an older version.
  const what = state.plans.size > plansMax ? "plans" : state.heldByPlans > HELD_BY_PLANS_MAX ? "tasks" : null;
  const plan = what === null ? null : takeOldest(holdingsIn(state, ""), what, null);
  return plan === null ? null : removed(plan.id, true, now);
}

/** When a plan is forgotten by time alone. */
export const nextPlanExpiry = ({ endedPlans, config }: ReadonlyState): number =>
  (first(endedPlans)?.keptSince ?? Number.POSITIVE_INFINITY) + config.scheduler.planTtl;

export function evolvePlan(
  state: State,
  event: EventOf<"plan-put" | "plan-paused" | "plan-resumed" | "plan-removed" | "plan-renewed" | "plan-cut">,
): void {
  if (event.kind === "plan-put") return putPlan(state, event);
  const plan = state.plans.get(event.plan) as Plan;
  switch (event.kind) {
    case "plan-paused":
      return setPaused(state, plan, event.cause);
    case "plan-resumed":
      return setPaused(state, plan, null);
    case "plan-removed":
      return removePlan(state, plan);
    case "plan-renewed":
      remove(state.endedPlans, plan);
      plan.keptSince = event.at;
      insert(state.endedPlans, plan);
      return;
    case "plan-cut":
      plan.dropped += missingIn(plan);
      return recount(state, plan, groupOf(state, plan));
    default:
      return unreachable(event);
  }
}

function setPaused(state: State, plan: Plan, cause: Plan["paused"]): void {
  const wasPaused = plan.paused !== null;
  plan.paused = cause;
  // A failure of a plan that somebody has paused is waited for until that one lets it go on.
  if (cause === "failed") plan.hasFailed = false;
  listFailed(state, plan);
  if (wasPaused === (cause !== null)) return;
  for (const task of items(groupOf(state, plan).tasks)) {
    if (task.phase !== "queued") continue;
    if (cause !== null) dropHold(state, task);
    countReady(state, task.project, cause === null ? 1 : -1);
    settleQueue(state, task);
  }
}

const groupOf = (state: State, { id }: Plan): TaskGroup => state.groups.get(groupOfPlan(id)) as TaskGroup;

function putPlan(state: State, event: EventOf<"plan-put">): void {
  const { plan: id, at, project, agent, directory, run, failsFast, tasks, adopted, documentHash } = event;
  const whose = { project, agent, directory, documentHash };
  const facts = { seq: state.seq, putAt: at, ...whose, run, failsFast, tasks, adopted };
  const known = state.plans.get(id);
  if (known === undefined) {
    const plan = newPlan({ id, createdAt: at, ...facts, others: event.others });
    state.plans.set(id, plan);
    adoptGroup(state, plan);
    return;
  }
  if (known.open === 0) remove(state.endedPlans, known);
  const before = { ...known };
  Object.assign(known, facts, setsOf(event), { dropped: 0, keptSince: at });
  state.heldByPlans += keptIn(known) - keptIn(before);
  recount(state, known, groupOf(state, known));
  for (const task of [...items(groupOf(state, known).tasks)]) {
    const by = Number(keeps(known, task.id)) - Number(keeps(before, task.id));
    if (by !== 0) holdRecord(state, task, by as 1 | -1);
  }
  // Who puts it again after a failure wants it to go on; what somebody has paused stays so.
  known.hasFailed = false;
  setPaused(state, known, known.paused === "asked" ? "asked" : null);
}

type Counted = "members" | "others" | "counts" | "open" | "dropped" | "endedAt" | "keptSince" | "paused" | "hasFailed";
type PlanFacts = Omit<Plan, Counted> & { readonly others: readonly TaskId[] };

const setsOf = ({ tasks, others }: Pick<PlanFacts, "tasks" | "others">): Pick<Plan, "members" | "others"> => ({
  members: new Set(tasks.map((task) => task.id)),
  others: new Set(others),
});

export const newPlan = (facts: PlanFacts): Plan => ({
  ...facts,
  ...setsOf(facts),
  paused: null,
  hasFailed: false,
  counts: noCounts(),
  open: 0,
  dropped: 0,
  endedAt: -1,
  keptSince: -1,
});

/** A plan takes what its group has: records that are left of an earlier plan of this name, or those of a snapshot. */
export function adoptGroup(state: State, plan: Plan): void {
  const group = groupFor(state, groupOfPlan(plan.id), plan.createdAt);
  group.plan = plan;
  state.heldByPlans += keptIn(plan);
  for (const task of items(group.tasks)) {
    if (keeps(plan, task.id)) holdRecord(state, task, 1);
    if (task.phase === "queued" && plan.paused !== null) countReady(state, task.project, -1);
  }
  recount(state, plan, group);
}

/** What it held is kept as long as any ended task is. */
function removePlan(state: State, plan: Plan): void {
  const group = groupOf(state, plan);
  // A task that is no part of it any more may have been run again: it is held up no longer.
  plan.hasFailed = false;
  setPaused(state, plan, null);
  if (plan.open === 0) remove(state.endedPlans, plan);
  state.plans.delete(plan.id);
  state.heldByPlans -= keptIn(plan);
  group.plan = null;
  if (group.tasks.size === 0) state.groups.delete(group.id);
  for (const task of [...items(group.tasks)]) if (keeps(plan, task.id)) holdRecord(state, task, -1);
}
