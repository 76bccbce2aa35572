/**
 * How the auditor's shadow of the fleet follows the log: what each committed event changes in it.
 */
import type { Config, ProjectSettings } from "../core/config/index.ts";
import type { Event, TaskSubmitted } from "../core/model/index.ts";
import {
  addToLevel,
  book,
  countHalvesAnew,
  gateSettingsOf,
  noteUsage,
  type Shadow,
  type ShadowAttempt,
  type ShadowProject,
  type ShadowTask,
  type ShadowWorker,
  usedBy,
} from "./shadow.ts";
import { noteAnswered, noteGates } from "./shadow-gate.ts";

/** Applies an event that has been checked. */
export function note(shadow: Shadow, event: Event): void {
  shadow.seq++;
  if (event.kind === "task-assigned") noteStart(shadow, event);
  else if (event.kind === "task-submitted") noteSubmitted(shadow, event);
  else if (event.kind.startsWith("permit-") || event.kind.startsWith("gate-") || event.kind === "engine-started")
    noteGates(shadow, event);
  else if ("task" in event && event.task !== null) noteTask(shadow, shadow.tasks.get(event.task) as ShadowTask, event);
  else noteWorld(shadow, event);
}

function noteSubmitted(shadow: Shadow, event: TaskSubmitted): void {
  const { type, capabilities, cpu, memory, provider, locks } = event;
  const task: ShadowTask = {
    spec: event,
    seq: shadow.seq,
    shape: JSON.stringify([type, capabilities, cpu, memory, provider, locks]),
    phase: "waiting",
    outcome: null,
    endedAt: -1,
    attempts: 0,
    ownFailures: 0,
    losses: 0,
    requeues: 0,
    iteration: event.iteration,
    priority: event.priority,
    estimate: event.estimatedTokens,
    deadline: event.deadline,
    runnableAt: -1,
    resting: false,
    paused: false,
    pin: event.pin,
    awaitsArtifact: event.artifact !== null,
    attempt: null,
  };
  shadow.tasks.set(event.task, task);
  if (event.runnable) enqueue(shadow, task);
}

/** A pause banks no credit: the project comes back at the highest level yet chosen. */
function notePause(shadow: Shadow, project: ShadowProject, paused: boolean): void {
  project.paused = paused;
  if (!paused) project.level = Math.max(project.level, shadow.highest);
}

/** A project with nothing queued and nothing in flight comes back at the highest level yet chosen. */
function enqueue(shadow: Shadow, task: ShadowTask): void {
  const { project: id } = task.spec;
  const isBusy = [...shadow.tasks.values()].some(
    ({ spec, phase, attempt }) => spec.project === id && (phase === "queued" || attempt !== null),
  );
  const project = shadow.projects.get(id) as ShadowProject;
  if (!isBusy) project.level = Math.max(project.level, shadow.highest);
  task.phase = "queued";
  task.resting = false;
  if (task.runnableAt < 0) task.runnableAt = shadow.at;
}

function noteStart(shadow: Shadow, event: Extract<Event, { kind: "task-assigned" }>): void {
  const task = shadow.tasks.get(event.task) as ShadowTask;
  const project = shadow.projects.get(task.spec.project) as ShadowProject;
  const { attempt: number, worker, charge, reserve } = event;
  task.phase = "live";
  task.attempts = number;
  task.pin = null;
  task.attempt = {
    number,
    worker,
    charge,
    express: event.rank.express,
    assignedAt: event.at,
    startedAt: -1,
    reserve,
    reported: 0,
    permitted: 0,
    known: false,
    stopping: false,
    stopBy: -1,
  };
  shadow.holds.delete(event.task);
  shadow.highest = Math.max(shadow.highest, project.level);
  project.lastServed.set(task.spec.agent, shadow.seq);
  addToLevel(shadow, project, charge);
}

function noteTask(shadow: Shadow, task: ShadowTask, event: Event): void {
  const { attempt } = task;
  switch (event.kind) {
    case "task-queued":
      task.pin = event.pin;
      return enqueue(shadow, task);
    case "pin-released":
      task.pin = null;
      return;
    case "attempt-started":
      if (attempt !== null) attempt.startedAt = event.at;
      return;
    case "attempt-used":
      return noteUsage(attempt, { reported: event.tokens });
    case "attempt-stopping":
      return stop(attempt, event.stopBy);
    case "attempt-failed":
    case "attempt-lost":
      return noteRest(shadow, task, event);
    case "attempt-stopped":
      return release(shadow, task, event.tokens);
    case "task-patched":
      task.priority = event.priority;
      task.deadline = event.deadline;
      return;
    case "task-retried":
      return noteRetry(shadow, task, event);
    case "hold-placed":
      shadow.holds.set(event.task, event.worker);
      return;
    case "hold-released":
      shadow.holds.delete(event.task);
      return;
    default:
      return noteEnd(shadow, task, event);
  }
}

function noteRest(
  shadow: Shadow,
  task: ShadowTask,
  event: Extract<Event, { kind: "attempt-failed" | "attempt-lost" }>,
): void {
  if (event.kind === "attempt-failed") task.ownFailures++;
  else {
    if (event.cause === "worker-lost" || event.cause === "budget") task.losses++;
    if (event.cause === "requeue") task.requeues++;
    task.estimate = event.estimate;
  }
  task.phase = "queued";
  task.resting = event.restUntil > event.at;
  release(shadow, task, event.tokens);
}

function noteRetry(shadow: Shadow, task: ShadowTask, event: Extract<Event, { kind: "task-retried" }>): void {
  task.iteration += task.ownFailures + 1;
  task.ownFailures = 0;
  task.losses = 0;
  task.requeues = 0;
  task.runnableAt = -1;
  task.phase = "waiting";
  task.outcome = null;
  task.pin = event.pin;
  if (task.deadline !== null && task.deadline <= event.at) task.deadline = null;
  if (event.runnable) enqueue(shadow, task);
}

const OUTCOME: Readonly<Record<string, string>> = {
  "task-done": "done",
  "task-failed": "failed",
  "task-cancelled": "cancelled",
  "task-skipped": "skipped",
};

function noteEnd(shadow: Shadow, task: ShadowTask, event: Event): void {
  const outcome = OUTCOME[event.kind];
  if (outcome === undefined) return;
  const isOver = event.kind === "task-done" || (event.kind === "task-failed" && event.attempt !== null);
  if (event.kind === "task-done") noteAnswered(shadow, task.spec.provider, task.attempt?.assignedAt ?? -1);
  if (isOver && "tokens" in event) release(shadow, task, event.tokens);
  else if ("stopBy" in event && event.stopBy !== null) stop(task.attempt, event.stopBy);
  task.phase = "ended";
  task.outcome = outcome;
  task.endedAt = event.at;
  task.pin = null;
  shadow.holds.delete(task.spec.task);
}

function stop(attempt: ShadowAttempt | null, stopBy: number): void {
  if (attempt === null) return;
  attempt.stopping = true;
  attempt.stopBy = stopBy;
}

function release(shadow: Shadow, task: ShadowTask, tokens: number | null): void {
  const { attempt } = task;
  if (attempt === null) return;
  const project = shadow.projects.get(task.spec.project) as ShadowProject;
  if (tokens !== null) {
    attempt.reported = Math.max(attempt.reported, tokens);
    attempt.known = true;
  }
  book(shadow, project, usedBy(attempt));
  if (attempt.known) {
    const { startCost } = shadow.config.scheduler.fairness;
    addToLevel(shadow, project, startCost + usedBy(attempt) - attempt.charge);
  }
  task.attempt = null;
}

function noteWorld(shadow: Shadow, event: Event): void {
  switch (event.kind) {
    case "config-changed":
      return noteConfig(shadow, event.config);
    case "project-put":
      return noteProject(shadow, event.project, event.settings, event.source);
    case "pause-changed": {
      const { scope, id, paused } = event;
      if (scope === "fleet") shadow.paused = paused;
      else if (scope === "project") notePause(shadow, shadow.projects.get(id) as ShadowProject, paused);
      else (shadow.tasks.get(id) as ShadowTask).paused = paused;
      if (scope !== "fleet") shadow.holds.clear();
      return;
    }
    case "artifact-appeared":
      for (const task of shadow.tasks.values()) {
        if (task.spec.artifact === event.artifact) task.awaitsArtifact = false;
      }
      return;
    case "worker-joined":
    case "worker-changed":
    case "worker-left":
      return noteWorker(shadow, event);
    case "tabs-moved": {
      const former = shadow.workers.get(event.worker) as ShadowWorker;
      former.capabilities = former.capabilities.filter((capability) => !event.capabilities.includes(capability));
      for (const [task, worker] of shadow.holds) if (worker === event.worker) shadow.holds.delete(task);
      return;
    }
    default:
  }
}

function noteConfig(shadow: Shadow, config: Config): void {
  if (config.scheduler.fairness.halfLife !== shadow.config.scheduler.fairness.halfLife) countHalvesAnew(shadow);
  // What left a window does not come back when the window grows.
  shadow.spent = within(shadow, shadow.spent, Math.min(shadow.config.budget.window, config.budget.window));
  for (const [id, gate] of shadow.gates) {
    const { windowMs } = gateSettingsOf(shadow, id);
    gate.grants = gate.grants.filter((at) => at > shadow.at - windowMs);
    if ((config.gates.named[id] ?? config.gates.default).tokens.perMinute === null) gate.spent = [];
  }
  shadow.config = config;
  shadow.holds.clear();
  for (const { id, source } of shadow.projects.values()) {
    const named = config.projects.named[id];
    if (source !== "put") noteProject(shadow, id, named ?? config.projects.default, named ? "named" : "default");
  }
  for (const [id, settings] of Object.entries(config.projects.named)) {
    if (!shadow.projects.has(id)) noteProject(shadow, id, settings, "named");
  }
}

function noteProject(shadow: Shadow, id: string, settings: ProjectSettings, source: ShadowProject["source"]): void {
  const fresh = { id, paused: false, level: 0, spent: [], lastServed: new Map<string, number>() };
  const project: ShadowProject = shadow.projects.get(id) ?? { ...fresh, settings, source };
  shadow.projects.set(id, project);
  const window = Math.min(project.settings.budget.window, settings.budget.window);
  project.spent = within(shadow, project.spent, window);
  project.settings = settings;
  project.source = source;
}

const within = (shadow: Shadow, spent: ShadowProject["spent"], windowMs: number): ShadowProject["spent"] =>
  spent.filter(({ at }) => at > shadow.at - windowMs);

function noteWorker(
  shadow: Shadow,
  event: Extract<Event, { kind: "worker-joined" | "worker-changed" | "worker-left" }>,
): void {
  for (const [task, worker] of shadow.holds) if (worker === event.worker) shadow.holds.delete(task);
  const known = shadow.workers.get(event.worker);
  if (event.kind === "worker-left") {
    if (event.lost && known !== undefined && known.kind !== "local") known.status = "unreachable";
    else shadow.workers.delete(event.worker);
    return;
  }
  const { worker: id, slots, capabilities, status } = event;
  const kind = event.kind === "worker-joined" ? event.workerKind : (known?.kind ?? "local");
  const room = { cpu: event.cpu ?? Number.POSITIVE_INFINITY, memory: event.memory ?? Number.POSITIVE_INFINITY };
  const takes = event.kind === "worker-joined" ? event.takes : (known?.takes ?? null);
  shadow.workers.set(id, { id, kind, slots, capabilities, status, takes, ...room });
}
