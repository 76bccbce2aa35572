/**
 * How the auditor's shadow of the fleet follows the log: what each committed event changes in it.
 *
 * Of gates it keeps who waits, who is out, and what the provider said. An episode begins with a 429 that nothing had
 * warned of, or with a new engine. Calls of an older episode are out still, but prove nothing: their 429s are no new
 * throttles and their successes end nothing. Within an episode at most `slow` calls may be out: one at first (the
 * probe), doubled by every success, without bound once it reaches the gate's own limit.
 */
import type { Config, ProjectSettings } from "../core/config/index.ts";
import type { Event, TaskSubmitted } from "../core/model/index.ts";
import {
  addToLevel,
  type Bookings,
  book,
  countHalvesAnew,
  type EventOf,
  gateSettingsOf,
  isIn,
  isOfPausedPlan,
  isPlanDue,
  noteUsage,
  OUTCOMES,
  plansOf,
  projectOf,
  type Shadow,
  type ShadowGate,
  type ShadowProject,
  type ShadowTask,
  type ShadowWorker,
  usedBy,
} from "./shadow.ts";

const THROTTLES_THAT_COUNT = 6;
/** A task that was just submitted, or is retried. */
const UNTRIED = {
  phase: "waiting",
  outcome: null,
  ownFailures: 0,
  losses: 0,
  requeues: 0,
  runnableAt: -1,
  rounds: 0,
} as const;

/** Applies an event that has been checked. */
export function note(shadow: Shadow, event: Event): void {
  shadow.seq++;
  if (event.kind !== "plan-removed") shadow.evicted = [];
  if (event.kind === "task-assigned") noteStart(shadow, event);
  else if (event.kind === "task-submitted") noteSubmitted(shadow, event);
  else if (event.kind.startsWith("permit-") || event.kind.startsWith("gate-") || event.kind === "engine-started")
    noteGates(shadow, event);
  else if ("task" in event && event.task !== null) noteTask(shadow, shadow.tasks.get(event.task) as ShadowTask, event);
  else noteWorld(shadow, event);
}

function noteSubmitted(shadow: Shadow, event: TaskSubmitted): void {
  const { type, capabilities, cpu, memory, provider, locks, action } = event;
  const task: ShadowTask = {
    spec: event,
    seq: shadow.seq,
    shape: JSON.stringify([type, capabilities, cpu, memory, provider, locks, action === "exec(worktree)"]),
    ...UNTRIED,
    openedAt: event.at,
    endedAt: -1,
    attempts: 0,
    iteration: event.iteration,
    priority: event.priority,
    estimate: event.estimatedTokens,
    deadline: event.deadline,
    resting: false,
    paused: false,
    pin: event.pin,
    awaitsArtifact: event.artifact !== null,
    needsApproval: event.approval !== null,
    answerBy: null,
    files: [],
    answeredBy: null,
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
function comeBack(shadow: Shadow, id: string): void {
  const isBusy = [...shadow.tasks.values()].some(
    (task) =>
      task.spec.project === id && ((task.phase === "queued" && !isOfPausedPlan(shadow, task)) || task.attempt !== null),
  );
  const project = projectOf(shadow, id);
  if (!isBusy) project.level = Math.max(project.level, shadow.highest);
}

function enqueue(shadow: Shadow, task: ShadowTask): void {
  if (!isOfPausedPlan(shadow, task)) comeBack(shadow, task.spec.project);
  task.phase = "queued";
  task.resting = false;
  if (task.runnableAt < 0) task.runnableAt = shadow.at;
}

function noteStart(shadow: Shadow, event: EventOf<"task-assigned">): void {
  const task = shadow.tasks.get(event.task) as ShadowTask;
  const project = projectOf(shadow, task.spec.project);
  const { attempt: number, charge, reserve } = event;
  task.phase = "live";
  task.attempts = number;
  task.pin = null;
  task.attempt = { number, start: event, startedAt: -1, reserve, reported: 0, permitted: 0, known: false };
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
    case "attempt-usage":
      return;
    case "attempt-files":
      task.files = event.files;
      return;
    case "attempt-used":
      return noteUsage(attempt, { reported: event.tokens });
    case "attempt-failed":
    case "attempt-lost":
      return noteRest(shadow, task, event);
    case "round-ended":
      task.rounds++;
      task.phase = "queued";
      task.pin = event.pin;
      release(shadow, task, event.tokens);
      task.iteration++;
      return;
    case "task-parked":
      task.phase = "parked";
      task.pin = null;
      task.answerBy = event.until;
      if (event.attempt !== null) release(shadow, task, event.tokens);
      return;
    case "attempt-done":
      return noteDone(shadow, task, event);
    case "task-approved":
      task.needsApproval = false;
      task.pin = event.pin;
      return enqueue(shadow, task);
    case "attempt-stopped":
      return event.unbegun ? takeBack(shadow, task) : release(shadow, task, event.tokens);
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

function noteRest(shadow: Shadow, task: ShadowTask, event: EventOf<"attempt-failed" | "attempt-lost">): void {
  if (event.kind === "attempt-failed") task.ownFailures++;
  else {
    if (event.cause === "worker-lost" || event.cause === "budget") task.losses++;
    if (event.cause === "requeue") task.requeues++;
    task.estimate = event.estimate;
  }
  task.phase = "queued";
  task.resting = event.restUntil > event.at;
  if (event.kind === "attempt-lost" && event.cause === "not-begun") takeBack(shadow, task);
  else release(shadow, task, event.tokens);
}

function noteRetry(shadow: Shadow, task: ShadowTask, event: EventOf<"task-retried">): void {
  if (task.outcome === "failed") noteFailure(shadow, task, false);
  task.iteration += task.ownFailures + 1;
  Object.assign(task, UNTRIED);
  task.openedAt = event.at;
  task.pin = event.pin;
  if (task.deadline !== null && task.deadline <= event.at) task.deadline = null;
  if (event.runnable) enqueue(shadow, task);
}

function noteDone(shadow: Shadow, task: ShadowTask, event: EventOf<"attempt-done">): void {
  Object.assign(task, { phase: "parked", pin: null, answerBy: null, answeredBy: shadow.seq });
  noteAnswered(shadow, task.spec.provider, task.attempt?.start.at ?? -1);
  release(shadow, task, event.tokens);
}

function noteEnd(shadow: Shadow, task: ShadowTask, event: Event): void {
  const outcome = OUTCOMES[event.kind];
  if (outcome === undefined) return;
  if (event.kind === "task-done") noteAnswered(shadow, task.spec.provider, task.attempt?.start.at ?? -1);
  if (event.kind === "task-done") release(shadow, task, event.tokens);
  if ((event.kind === "task-failed" || event.kind === "task-skipped") && event.attempt !== null)
    release(shadow, task, event.tokens);
  if (event.kind === "task-failed") noteFailure(shadow, task, true);
  task.phase = "ended";
  task.answeredBy = null;
  task.outcome = outcome;
  task.endedAt = event.at;
  task.pin = null;
  shadow.holds.delete(task.spec.task);
}

/** Of an attempt that never began its charge is taken back, and nothing is booked. */
function takeBack(shadow: Shadow, task: ShadowTask): void {
  const { attempt } = task;
  if (attempt === null || usedBy(attempt) > 0) return release(shadow, task, 0);
  addToLevel(shadow, projectOf(shadow, task.spec.project), -attempt.start.charge);
  task.attempt = null;
}

function release(shadow: Shadow, task: ShadowTask, tokens: number | null): void {
  const { attempt } = task;
  if (attempt === null) return;
  const project = projectOf(shadow, task.spec.project);
  if (tokens !== null) {
    attempt.reported = Math.max(attempt.reported, tokens);
    attempt.known = true;
  }
  book(shadow, project, usedBy(attempt));
  if (attempt.known) {
    const { startCost } = shadow.config.scheduler.fairness;
    addToLevel(shadow, project, startCost + usedBy(attempt) - attempt.start.charge);
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
      else if (scope === "project") notePause(shadow, projectOf(shadow, id), paused);
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
    case "plan-put":
    case "plan-paused":
    case "plan-resumed":
    case "plan-removed":
    case "plan-cut":
    case "plan-renewed":
      return notePlan(shadow, event);
    default:
  }
}

type PlanEvent = EventOf<"plan-put" | "plan-paused" | "plan-resumed" | "plan-removed" | "plan-cut" | "plan-renewed">;

function notePlan(shadow: Shadow, event: PlanEvent): void {
  const { plans, tasks, holds } = shadow;
  const known = plans.get(event.plan);
  const queued = [...tasks.values()].filter(({ spec, phase }) => phase === "queued" && isIn(event.plan, spec));
  const goesOn =
    event.kind === "plan-put"
      ? known?.paused === "failed"
      : event.kind === "plan-resumed" || event.kind === "plan-removed";
  // What it held up was nothing to do for its project.
  if (known !== undefined && known.paused !== null && goesOn)
    for (const { spec } of queued) comeBack(shadow, spec.project);
  if (event.kind === "plan-put") {
    const { run, failsFast, tasks: entries, documentHash, agent } = event;
    // One that somebody has paused stays so; one that a failure has paused goes on.
    const paused = known?.paused === "asked" ? "asked" : null;
    const held = new Set<string>([...entries.map((entry) => entry.id), ...event.others]);
    const kept = { isCut: false, keptFrom: event.at, held, heldBefore: known?.held ?? new Set<string>() };
    plans.set(event.plan, { run, agent, failsFast, tasks: entries, ...kept, documentHash, paused, hasFailed: false });
  } else if (event.kind === "plan-removed") {
    const isFor = event.expired && known !== undefined && !isPlanDue(shadow, known, event.at);
    // Beyond the limit they go by themselves, for no other.
    if (isFor && plans.size <= shadow.config.scheduler.plansMax)
      shadow.evicted.push({ plan: event.plan, agent: known.agent, had: plansOf(shadow, known.agent) });
    plans.delete(event.plan);
  } else if (event.kind === "plan-cut") plans.set(event.plan, { ...(known as NonNullable<typeof known>), isCut: true });
  else if (event.kind === "plan-renewed")
    plans.set(event.plan, { ...(known as NonNullable<typeof known>), keptFrom: event.at });
  else if (known !== undefined) {
    const paused = event.kind === "plan-paused" ? event.cause : null;
    plans.set(event.plan, { ...known, paused, hasFailed: known.hasFailed && paused !== "failed" });
  }
  if (event.kind !== "plan-paused") return;
  for (const { spec } of queued) holds.delete(spec.task);
}

/** Of a plan that fails fast one of its own tasks has failed, or the last that had failed is run again. */
function noteFailure(shadow: Shadow, { spec }: ShadowTask, hasFailed: boolean): void {
  for (const [id, plan] of shadow.plans) {
    const others = plan.tasks.filter((entry) => entry.id !== spec.task);
    if (!plan.failsFast || plan.paused === "failed" || others.length === plan.tasks.length) continue;
    if (hasFailed || others.every((entry) => shadow.tasks.get(entry.id)?.outcome !== "failed"))
      shadow.plans.set(id, { ...plan, hasFailed });
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
  const fresh = { id, paused: false, level: 0, spent: [], booked: [], lastServed: new Map<string, number>() };
  const project: ShadowProject = shadow.projects.get(id) ?? { ...fresh, settings, source };
  shadow.projects.set(id, project);
  const window = Math.min(project.settings.budget.window, settings.budget.window);
  project.spent = within(shadow, project.spent, window);
  project.settings = settings;
  project.source = source;
}

const within = (shadow: Shadow, spent: Bookings, windowMs: number): Bookings =>
  spent.filter(({ at }) => at > shadow.at - windowMs);

function noteWorker(shadow: Shadow, event: EventOf<"worker-joined" | "worker-changed" | "worker-left">): void {
  for (const [task, worker] of shadow.holds) if (worker === event.worker) shadow.holds.delete(task);
  const known = shadow.workers.get(event.worker);
  if (event.kind === "worker-left") {
    if (event.lost && known !== undefined && known.kind !== "local") known.status = "unreachable";
    else shadow.workers.delete(event.worker);
    return;
  }
  const { slots, capabilities, status } = event;
  const kind = event.kind === "worker-joined" ? event.workerKind : (known?.kind ?? "local");
  const [cpu, memory, worktrees] = [event.cpu, event.memory, event.worktrees].map(
    (most) => most ?? Number.POSITIVE_INFINITY,
  ) as [number, number, number];
  const takes = event.kind === "worker-joined" ? event.takes : (known?.takes ?? null);
  shadow.workers.set(event.worker, { kind, slots, capabilities, status, takes, cpu, memory, worktrees });
}

export function gateOf(shadow: Shadow, id: string): ShadowGate {
  const known = shadow.gates.get(id);
  if (known !== undefined) return known;
  const fresh: ShadowGate = {
    waiting: new Map(),
    out: new Map(),
    grants: [],
    spent: [],
    blockedUntil: -1,
    throttles: 0,
    episode: 0,
    slow: Number.POSITIVE_INFINITY,
  };
  shadow.gates.set(id, fresh);
  return fresh;
}

function noteGates(shadow: Shadow, event: Event): void {
  switch (event.kind) {
    case "engine-started":
      for (const gate of shadow.gates.values()) {
        gate.waiting.clear();
        beginEpisode(gate);
      }
      return;
    case "permit-asked": {
      const { project, task, attempt, tokens } = event;
      gateOf(shadow, event.gate).waiting.set(event.permit, { project, task, attempt, tokens, episode: -1 });
      return;
    }
    case "permit-granted":
      return noteGrant(shadow, gateOf(shadow, event.gate), event.permit);
    case "permit-dropped":
      gateOf(shadow, event.gate).waiting.delete(event.permit);
      return;
    case "permit-settled":
      return noteSettled(shadow, event);
    case "gate-throttled":
      return noteThrottle(gateOf(shadow, event.gate), event);
    case "gate-reset": {
      const gate = gateOf(shadow, event.gate);
      beginEpisode(gate);
      gate.blockedUntil = -1;
      gate.throttles = 0;
      return;
    }
    case "gate-removed":
      shadow.gates.delete(event.gate);
      return;
    default:
  }
}

function beginEpisode(gate: ShadowGate): void {
  gate.episode++;
  gate.slow = 1;
}

function noteGrant(shadow: Shadow, gate: ShadowGate, id: string): void {
  const permit = gate.waiting.get(id);
  if (permit === undefined) return;
  gate.waiting.delete(id);
  gate.out.set(id, { ...permit, episode: gate.episode });
  gate.grants.push(shadow.at);
}

function noteSettled(shadow: Shadow, event: EventOf<"permit-settled">): void {
  const gate = gateOf(shadow, event.gate);
  const permit = gate.out.get(event.permit);
  if (permit === undefined) return;
  gate.out.delete(event.permit);
  const tokens = event.tokens ?? permit.tokens;
  if (gateSettingsOf(shadow, event.gate).tokens.perMinute !== null) gate.spent.push({ at: shadow.at, tokens });
  const attempt = permit.task === null ? null : (shadow.tasks.get(permit.task)?.attempt ?? null);
  if (attempt !== null && attempt.number === permit.attempt) noteUsage(attempt, { permitted: tokens });
  // A call whose attempt is over was paid for with it; a call of no task pays for itself.
  else if (permit.task === null) payFor(shadow, permit.project, tokens);
  if (!event.ok || permit.episode !== gate.episode || gate.slow === Number.POSITIVE_INFINITY) return;
  gate.throttles = 0;
  const doubled = gate.slow * 2;
  gate.slow = doubled >= gateSettingsOf(shadow, event.gate).maxConcurrent ? Number.POSITIVE_INFINITY : doubled;
}

function payFor(shadow: Shadow, id: string, tokens: number): void {
  const project = shadow.projects.get(id);
  book(shadow, project, tokens);
  if (project !== undefined) addToLevel(shadow, project, tokens);
}

/**
 * A task that began after the block and ended well, while no call has or wants a permit: its provider answers again.
 */
function noteAnswered(shadow: Shadow, provider: string | null, assignedAt: number): void {
  const gate = provider === null ? undefined : shadow.gates.get(provider);
  if (gate === undefined || gate.out.size > 0 || gate.waiting.size > 0) return;
  if (gate.blockedUntil >= 0 && assignedAt >= gate.blockedUntil) gate.throttles = 0;
}

function noteThrottle(gate: ShadowGate, event: EventOf<"gate-throttled">): void {
  const permit = event.permit === null ? undefined : gate.out.get(event.permit);
  const isOfThisEpisode = permit === undefined ? event.at < gate.blockedUntil : permit.episode !== gate.episode;
  if (gate.throttles === 0 || !isOfThisEpisode) {
    gate.throttles++;
    gate.episode++;
  }
  gate.slow = 1;
  const rest = Math.max(event.retryAfterMs, 1000 * 2 ** Math.min(gate.throttles, THROTTLES_THAT_COUNT));
  gate.blockedUntil = Math.max(gate.blockedUntil, event.at + rest);
}
