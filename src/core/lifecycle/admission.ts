/**
 * What is let in.
 *
 * A task is refused outright when it can never be right: an unknown dependency, a deadline that has
 * passed, an id that stands for another body. It is turned away when there is no room: the queue or its
 * agent's share of it is full, or the fleet is overloaded. The same id with the same body is the same
 * task again, however often it is sent. Nothing here depends on how many tasks there are.
 */

import type { AgentId, Instant, ProjectId, TaskId } from "../base/brand.ts";
import { badField, type Refusal } from "../base/refusal.ts";
import { isKeptForOthers, keptOf } from "../base/reserve.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { ownId } from "../collections/task-table.ts";
import { type Config, type ProjectSettings, settingsFor } from "../config/config.ts";
import { pinFor } from "../fleet/placement.ts";
import { type Needed, offers } from "../fleet/shape.ts";
import { refusalsOf, refusedInWords } from "../fleet/worker-filter.ts";
import type { Ahead } from "../model/ahead.ts";
import type { CommandOf, Decided, Decision, Submission, Warning } from "../model/commands.ts";
import type { Event, EventOf, TaskSubmitted } from "../model/events.ts";
import type { ReadonlyProject, ReadonlyState } from "../model/read-only.ts";
import { type EndPhase, hasEnded, type Phase, wentWell } from "../model/state.ts";
import { estimateFrom } from "../turn/expected-tokens.ts";
import { parked } from "./approval.ts";
import { tabCapability } from "./browser-tab.ts";
import { hasLeft } from "./files.ts";
import { growingParent } from "./growth.ts";
import { refusalForLabels } from "./labels.ts";
import { dependenciesOf } from "./transitions.ts";

export const PROJECTS_MAX = 10_000;
/** Unregistered projects that one agent may have tasks in: they are never removed. */
const MADE_PROJECTS_MAX = 100;
/** Where a task goes that names none: no agent may be shut out of it. */
const DEFAULT_PROJECT = "default";
const DEPTH_MAX = 100_000;
const NO_LIMIT = Number.POSITIVE_INFINITY;
const ATTEMPTS_DEFAULT = 3;
/** A click must not be repeated. */
const ATTEMPTS_DEFAULT_WITH_TAB = 1;
/** Ids Drover makes; a caller may not choose one. */
const OWN_IDS = /^tsk_\d+$|^rej_/;

/** What back-pressure goes by. */
export type Load = {
  /** Tasks waiting or queued. */
  readonly queued: number;
  /** Tasks running. */
  readonly inFlight: number;
  /** Workers that can take work. */
  readonly workers: number;
  /** Tasks that may wait or be queued. */
  readonly maxQueue: number;
  /** Tasks a worker is good for; null or absent: not counted. */
  readonly perWorker?: number | null;
  /** Usage from which tasks are refused; 1 is full. */
  readonly rejectThreshold: number;
  /** Usage above which callers are asked to slow down; 1 is full. */
  readonly throttleAt: number;
};

/** How full the fleet is: 1 is full. */
export function usage(load: Load): number {
  const ofQueue = load.queued / load.maxQueue;
  const { perWorker } = load;
  if (perWorker === undefined || perWorker === null) return ofQueue;
  return Math.max(ofQueue, (load.queued + load.inFlight) / Math.max(1, load.workers * perWorker));
}

/** Whether callers of this fleet should slow down. Its load is spelled out only where the workers count. */
export function isThrottling(state: ReadonlyState): boolean {
  const { maxQueue, backpressure } = state.config.scheduler;
  const { perWorker, throttleAt } = backpressure;
  return (perWorker === null ? backlogOf(state) / maxQueue : usage(loadOf(state))) > throttleAt;
}

/** All that is let in and has not begun, or waits for somebody's word. */
const backlogOf = ({ waiting, queued, parked }: ReadonlyState): number => waiting + queued + parked;

function loadOf(state: ReadonlyState, queued = backlogOf(state)): Load {
  const { maxQueue, backpressure } = state.config.scheduler;
  const { perWorker, rejectThreshold, throttleAt } = backpressure;
  const workers = state.fleet.able;
  return { queued, inFlight: state.inFlight, workers, maxQueue, perWorker, rejectThreshold, throttleAt };
}

export function decideSubmit(state: ReadonlyState, command: CommandOf<"submit-task">, now: Instant): Decided {
  const { submission: task } = command;
  const known = task.id === null ? undefined : (state.tasks.get(task.id) ?? state.tombstones.get(task.id));
  if (known !== undefined) {
    return known.bodyHash === task.bodyHash
      ? ok({ events: [], id: known.id, repeated: true })
      : fail({ type: "task-exists", task: known.id });
  }
  const never = refusalForFields(task, now);
  if (never !== null) return fail(never);
  const settings = projectFor(state, task.project, task.agent);
  if (!settings.ok) return settings;
  const { ofRunning = null } = command;
  const growing = ofRunning === null ? null : growingParent(state, task, ofRunning);
  if (growing !== null && !growing.ok) return growing;
  const ties = readTies(state, task, growing !== null);
  if (!ties.ok) return ties;
  const full = refusalForRoom(state, task);
  if (full !== null && command.counted !== true) return fail(full);
  return ok(admit(state, command, settings.value, ties.value, now));
}

export function refusalForFields({ id, deadline }: Submission, now: Instant): Refusal | null {
  if (id !== null && OWN_IDS.test(id))
    return badField("id", id, "an id not of the form tsk_<number> or rej_…, which Drover makes itself");
  return deadline !== null && deadline <= now ? { type: "past-deadline", field: "deadline", deadline, now } : null;
}

type ProjectPlan = {
  readonly settings: ProjectSettings;
  readonly isNew: boolean;
  readonly source: ReadonlyProject["source"];
};

/** The settings of a task's project, and whether it must be made first. A call of no task has no agent. */
export function projectFor(
  state: ReadonlyState,
  id: ProjectId,
  agent: AgentId | null,
  ahead: Ahead | null = null,
): Result<ProjectPlan, Refusal> {
  const project = state.projects.get(id);
  if (project !== undefined) {
    const isNewThere = agent !== null && project.source === "default" && !project.agents.has(agent);
    const spread = isNewThere ? refusalForSpread(state, id, agent, ahead) : null;
    return spread === null ? ok({ settings: project.settings, isNew: false, source: project.source }) : fail(spread);
  }
  const [settings, source] = settingsFor(state.config, id);
  if (source === "default" && !state.config.projects.autoCreate) return fail({ type: "project-unknown", project: id });
  const noRoom = source === "default" ? refusalForMaking(state, id, agent, ahead) : null;
  return noRoom === null ? ok({ settings, isNew: true, source }) : fail(noRoom);
}

/**
 * Whether an unregistered project may be made. Those that the config names always may, and the last tenth of
 * PROJECTS_MAX is kept for those that are put.
 */
export function refusalForMaking(
  state: ReadonlyState,
  id: ProjectId,
  agent: AgentId | null,
  ahead: Ahead | null = null,
): Refusal | null {
  if (id === DEFAULT_PROJECT) return null;
  const made = ahead === null || ahead.projects.has(id) ? 0 : ahead.projects.size;
  if (state.projects.size + made >= PROJECTS_MAX - keptOf(PROJECTS_MAX))
    return { type: "too-many", what: "projects", max: PROJECTS_MAX, kept: keptOf(PROJECTS_MAX), remedy: remedyFor(id) };
  return refusalForSpread(state, id, agent, ahead);
}

const remedyFor = (id: ProjectId): string => `name ${id} in the config, or have an admin put it`;

/** Whether an agent may have tasks in one more unregistered project, even one that is there. */
function refusalForSpread(
  state: ReadonlyState,
  id: ProjectId,
  agent: AgentId | null,
  ahead: Ahead | null,
): Refusal | null {
  if (id === DEFAULT_PROJECT || agent === null) return null;
  const known = state.loads.get(agent)?.agents ?? [];
  const more = ahead === null ? 0 : (ahead.projectsOf.get(agent) ?? 0);
  if (known.length + more < MADE_PROJECTS_MAX) return null;
  const made = known.filter(({ project }) => project.source === "default").length + more;
  if (made < MADE_PROJECTS_MAX) return null;
  return {
    type: "too-many",
    what: `unregistered projects of agent ${agent}`,
    max: MADE_PROJECTS_MAX,
    remedy: remedyFor(id),
  };
}

type Ties = {
  readonly ofRunning: boolean;
  readonly depth: number;
  readonly priority: number | null;
  /** Whether anybody gave the parent its priority; a tombstone has forgotten, so one that is not 0 counts. */
  readonly prioritised: boolean;
  readonly unmet: boolean;
  /** A dependency that has ended badly, if all have ended: the task is skipped. */
  readonly failed: { readonly id: TaskId; readonly phase: Phase; readonly seq: number | null } | null;
};

const NO_TIES: Result<Ties, Refusal> = ok({
  ofRunning: false,
  depth: 0,
  priority: null,
  prioritised: false,
  unmet: false,
  failed: null,
});

/** What its parent and needs mean for a task. */
function readTies(state: ReadonlyState, task: Submission, ofRunning: boolean): Result<Ties, Refusal> {
  if (task.parent === null && task.needs.length === 0) return NO_TIES;
  let unmet = false;
  let failed: Ties["failed"] = null;
  for (const id of dependenciesOf({ ...task, ofRunning })) {
    const field = id === task.parent ? "parent" : "needs";
    if (id === task.id) return fail({ type: "cycle", path: [id, id] });
    const found = state.tasks.get(id) ?? state.tombstones.get(id);
    if (found === undefined) return fail({ type: "dependency-unknown", field, dependency: id });
    if (!hasEnded(found)) unmet = true;
    else if (!wentWell(found.phase) && task.onDependencyFailure === "skip") {
      failed ??= { id, phase: found.phase, seq: state.tasks.get(id)?.end?.seq ?? null };
    }
  }
  const parent = task.parent === null ? undefined : (state.tasks.get(task.parent) ?? state.tombstones.get(task.parent));
  const depth = parent === undefined ? 0 : parent.depth + 1;
  if (depth > DEPTH_MAX) return fail(badField("parent", task.parent, `a task at most ${DEPTH_MAX} levels deep`));
  const priority = parent?.priority ?? null;
  const ofParent = task.parent === null ? undefined : state.tasks.get(task.parent)?.requirements;
  const prioritised = ofParent === undefined ? (priority ?? 0) !== 0 : ofParent.prioritised;
  // It is judged when the last of them has ended.
  return ok({ ofRunning, depth, priority, prioritised, unmet, failed: unmet ? null : failed });
}

/** Callbacks that are due, beyond which no more tasks with a callback are taken. */
const CALLBACKS_MAX = 1_000_000;

export function refusalForRoom(state: ReadonlyState, task: Submission, ahead: Ahead | null = null): Refusal | null {
  if (typeof task.callback === "string" && state.callbacks.due.size >= CALLBACKS_MAX)
    return { type: "too-many", what: "callbacks that are due", max: CALLBACKS_MAX };
  const tooMany = task.labels === undefined || task.labels.length === 0 ? null : refusalForLabels(state, task, ahead);
  return tooMany ?? refusalForBacklog(state, task, ahead);
}

/** Whether one more task may wait or be queued. */
export function refusalForBacklog(
  state: ReadonlyState,
  { project, agent }: Pick<Submission, "project" | "agent">,
  ahead: Ahead | null,
): Refusal | null {
  const { maxQueue, maxPerAgent, backpressure } = state.config.scheduler;
  const before = ahead === null ? 0 : ahead.backlog;
  const queued = backlogOf(state) + before;
  if (queued >= maxQueue) return { type: "queue-full", limit: "maxQueue", agent, queued, maxQueue, maxPerAgent };
  const beforeThere = ahead === null ? 0 : (ahead.ofProjects.get(project) ?? 0);
  const ofProject = (state.projects.get(project)?.backlog ?? 0) + beforeThere;
  const mine = (state.loads.get(agent)?.backlog ?? 0) + (ahead === null ? 0 : (ahead.ofAgents.get(agent) ?? 0));
  // Names of projects are free, so an agent counts over all of its own.
  if (isKeptForOthers(maxQueue, queued, Math.max(ofProject, mine))) {
    const kept = { project: project as string, ofProject, ofAgent: mine, kept: keptOf(maxQueue) };
    return { type: "queue-full", limit: "maxQueue", agent, queued, maxQueue, maxPerAgent, ...kept };
  }
  if (mine >= maxPerAgent)
    return { type: "queue-full", limit: "maxPerAgent", agent, queued: mine, maxQueue, maxPerAgent };
  // What comes together is let in together, so it is no pressure on itself; what it cancels is none any more.
  const pressing = before > 0 ? backlogOf(state) : queued;
  if (state.fleet.able > 0 && backpressure.perWorker === null && pressing / maxQueue < backpressure.rejectThreshold)
    return null;
  const load = loadOf(state, pressing);
  if (load.workers === 0) {
    if (!backpressure.acceptWithoutWorkers) return { type: "no-workers", agent };
    // Without workers to compare with, only the length of the queue counts.
    if (pressing / maxQueue < backpressure.rejectThreshold) return null;
  } else if (usage(load) < backpressure.rejectThreshold) return null;
  return { type: "backpressure", usage: usage(load), rejectThreshold: backpressure.rejectThreshold, agent };
}

function admit(
  state: ReadonlyState,
  { submission: task, group = null }: CommandOf<"submit-task">,
  project: ProjectPlan,
  ties: Ties,
  now: Instant,
): Decision {
  const { settings, source } = project;
  const asked = task.priority ?? ties.priority ?? 0;
  const priority = Math.max(settings.maxPriority, asked);
  const id = task.id ?? ownId(state.seq + (project.isNew ? 2 : 1));
  const submitted = submittedEvent(state, task, { id, priority, settings, ties, group }, now);
  const warnings = warningsFor(state, task, submitted, { asked, settings });
  // Nearly every submit is just that: a list made with room to grow would be garbage ten times over.
  if (!project.isNew && typeof task.callback !== "string" && ties.failed === null && submitted.approval === null)
    return { events: [submitted], id, warnings };
  const events: Event[] = [submitted];
  if (project.isNew) events.unshift({ kind: "project-put", at: now, project: task.project, settings, source });
  if (typeof task.callback === "string")
    events.push({ kind: "callback-asked", at: now, task: id, host: task.callback });
  if (ties.failed !== null) {
    const { id: dependency, phase, seq } = ties.failed;
    const reason = skipReason(dependency, phase as EndPhase);
    const cause = seq as EventOf<"task-skipped">["cause"];
    events.push({ kind: "task-skipped", at: now, task: id, cause, dependency, reason, attempt: null, tokens: null });
  }
  if (submitted.approval !== null && !waits(task, ties, submitted.artifact, now))
    events.push(parked(id, submitted.approval, now));
  return { events, id, warnings };
}

/** The artifact that it waits for; null where it waits for none, since it is there or its parent has left it. */
function awaitedArtifact(state: ReadonlyState, { artifact, artifactReady, parent }: Submission): string | null {
  if (artifact === null || artifactReady) return null;
  return parent !== null && hasLeft(state.tasks.get(parent), artifact) ? null : artifact;
}

/** Whether it waits for something that is no person. */
const waits = ({ notBefore }: Submission, ties: Ties, artifact: string | null, now: Instant): boolean =>
  ties.unmet || ties.failed !== null || artifact !== null || (notBefore !== null && notBefore > now);

const NO_WARNINGS: readonly Warning[] = [];

function warningsFor(
  state: ReadonlyState,
  task: Submission,
  submitted: TaskSubmitted,
  { asked, settings }: { readonly asked: number; readonly settings: ProjectSettings },
): readonly Warning[] {
  const { priority } = submitted;
  const isClamped = priority !== asked && task.priority !== null;
  const unfit = unfitWarning(state, submitted);
  const limit = Math.min(settings.budget.limit ?? NO_LIMIT, state.config.budget.limit ?? NO_LIMIT);
  const isOver = (task.estimatedTokens ?? 0) > limit;
  if (!isClamped && unfit === null && !isOver) return NO_WARNINGS;
  const warnings: Warning[] = isClamped ? [{ type: "priority-clamped", asked, given: priority }] : [];
  if (unfit !== null) warnings.push(unfit);
  if (isOver) {
    const detail = `estimatedTokens ${task.estimatedTokens} exceed the budget of ${limit}; it waits for a higher one`;
    warnings.push({ type: "over-budget", detail });
  }
  return warnings;
}

export const skipReason = (dependency: TaskId, phase: EndPhase): string => `its dependency ${dependency} is ${phase}`;

type Admitted = {
  readonly id: TaskId;
  readonly priority: number;
  readonly settings: ProjectSettings;
  readonly ties: Ties;
  readonly group: string | null;
};

const NO_LABELS: readonly string[] = [];

/** One literal, in the order of FIELDS: every task costs one, and spreading its parts would cost as much again. */
function submittedEvent(state: ReadonlyState, task: Submission, admitted: Admitted, now: Instant): TaskSubmitted {
  const { ties } = admitted;
  const { parent, needs, cpu, memory, action } = task;
  const capabilities = needed(task);
  const artifact = awaitedArtifact(state, task);
  const approval = task.approval ?? null;
  const runnable = approval === null && !waits(task, ties, artifact, now);
  return {
    kind: "task-submitted",
    at: now,
    task: admitted.id,
    project: task.project,
    agent: task.agent,
    named: task.id !== null,
    bodyHash: task.bodyHash,
    bodySize: task.bodySize,
    type: task.type,
    capabilities,
    cpu,
    memory,
    provider: task.provider ?? admitted.settings.provider,
    locks: task.locks,
    zone: task.zone,
    tab: task.tab,
    priority: admitted.priority,
    prioritised: task.priority !== null || ties.prioritised,
    depth: ties.depth,
    parent,
    needs,
    artifact,
    notBefore: task.notBefore !== null && task.notBefore > now ? task.notBefore : null,
    deadline: task.deadline,
    estimatedTokens: estimateFrom(task.estimatedTokens),
    iteration: task.iteration,
    maxAttempts: task.maxAttempts ?? (task.tab === null ? ATTEMPTS_DEFAULT : ATTEMPTS_DEFAULT_WITH_TAB),
    timeoutMs: task.timeoutMs,
    onDependencyFailure: task.onDependencyFailure,
    runnable,
    pin: runnable
      ? pinFor(
          state,
          { parent, needs, ofRunning: ties.ofRunning, lastWorker: null },
          neededOf(state, task, capabilities),
        )
      : null,
    // A click of which it is unknown whether it was made must not be repeated.
    onLoss: task.onLoss ?? (task.tab === null ? "retry" : "fail"),
    action,
    labels: task.labels ?? NO_LABELS,
    group: admitted.group,
    maxRounds: task.maxRounds ?? 0,
    ofRunning: ties.ofRunning,
    approval,
    wait: task.wait ?? null,
  };
}

const neededOf = (
  state: ReadonlyState,
  task: Submission,
  capabilities: readonly string[],
): Needed & Pick<Submission, "zone"> => {
  const { cpu, memory, zone, project } = task;
  return { capabilities, cpu, memory, zone, refusedBy: refusalsOf(state.fleet, task, project) };
};

/** What the worker must offer: the tab is a capability like any other. */
function needed({ tab, capabilities }: Submission): readonly string[] {
  if (tab === null || capabilities.includes(tabCapability(tab))) return capabilities;
  return [...capabilities, tabCapability(tab)].sort();
}

/** Accepted all the same, but no known worker could ever run it. */
function unfitWarning(state: ReadonlyState, submitted: TaskSubmitted): Warning | null {
  const { fleet } = state;
  const { capabilities, cpu, memory, type, action, project } = submitted;
  const needed = { capabilities, cpu, memory, refusedBy: refusalsOf(fleet, submitted, project) };
  for (const worker of fleet.order) if (offers(worker, needed)) return null;
  const needs = [
    ...capabilities.map((capability) => `capability ${capability}`),
    ...(cpu > 0 ? [`${cpu} millicores`] : []),
    ...(memory > 0 ? [`${memory} bytes of memory`] : []),
    ...refusedInWords(fleet, { action, type }, project),
  ];
  return state.fleet.able === 0
    ? { type: "no-workers", detail: "no worker is here yet; the task waits for one" }
    : {
        type: "never-fits",
        detail: `no known worker takes or offers ${needs.join(", ")}; the task waits for one that does`,
      };
}

/** Where the policy part of a config is hashed from: what a decision depends on. */
export const policyOf = (config: Config): string =>
  JSON.stringify([config.scheduler, config.budget, config.projects, config.gates]);
