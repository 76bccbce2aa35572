/**
 * Who starts next, the slow and obvious way.
 *
 * Written from the rules and the facts alone: every task, project, agent and worker is looked at,
 * everything is counted anew and sorted. No queue, no shape, no tree, no count that the core keeps is read, so that a
 * mistake in any of them shows as a difference. The law is equality, at every decision.
 */
import type { Strategy } from "../../../src/core/config/config.ts";
import type { Project, State, Task, Worker } from "../../../src/core/model/state.ts";

export type Choice = {
  readonly task: string;
  readonly worker: string;
  readonly reason: string;
  readonly express: boolean;
};

type Ranking = Exclude<Strategy, "affinity">;

const EXPRESS = -200;
const STEP = 100;
const MINUTE = 60_000;

export function naiveChoice(state: State, now: number): Choice | null {
  const { scheduler, budget } = state.config;
  const tasks = [...state.tasks.values()];
  const running = tasks.filter((task) => task.attempt !== null);
  const reserved = sum(running, (task) => task.attempt?.reserve ?? 0);
  const fleetHasRoom = (tokens: number): boolean =>
    budget.limit === null || state.spent.total(now) + reserved + callsOf(state, null) + tokens <= budget.limit;
  if (state.paused || running.length >= scheduler.maxInFlight) return null;

  const startable = tasks.filter((task) => canStart(state, task, running, now));
  const eligible = [...state.projects.values()].filter((project) => {
    const mine = startable.filter((task) => task.project === project);
    if (mine.length === 0 || !isEligible(project, running)) return false;
    if (fleetHasRoom(1) && projectHasRoom(state, project, running, 1, now)) return true;
    return nextOf(state, mine.filter(expectsNone), running, now) !== null;
  });
  const byLevel = eligible.toSorted(
    (a, b) => a.level - b.level || b.settings.weight - a.settings.weight || a.registration - b.registration,
  );
  const fits = (task: Task): boolean => {
    const tokens = reserve(state, task);
    return tokens === 0 || (projectHasRoom(state, task.project, running, tokens, now) && fleetHasRoom(tokens));
  };
  const next = (project: Project, lowest: number): Task | null => {
    const mine = startable.filter((task) => task.project === project && priorityOf(state, task, now) <= lowest);
    const best = nextOf(state, mine, running, now);
    if (best === null || fits(best)) return best;
    // It waits for a budget, and only those that expect no tokens pass it.
    const passing = nextOf(state, mine.filter(expectsNone), running, now);
    return passing !== null && fits(passing) ? passing : null;
  };

  if (running.filter((task) => task.attempt?.express).length < scheduler.critical.maxInFlight) {
    for (const project of byLevel) {
      const task = next(project, EXPRESS);
      if (task !== null) return { ...placeOf(state, task), task: task.id, express: true };
    }
  }
  for (const project of scheduler.fairness.rule === "deficit" ? byDeficit(eligible, running, now) : byLevel) {
    const task = next(project, Number.POSITIVE_INFINITY);
    if (task !== null) return { ...placeOf(state, task), task: task.id, express: false };
  }
  return null;
}

const sum = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((total, item) => total + of(item), 0);

/** Runnable, its type has room, its gate is open, its locks are free, a worker fits. */
function canStart(state: State, task: Task, running: readonly Task[], now: number): boolean {
  if (task.phase !== "queued" || task.paused || task.restUntil > now || task.attempt !== null) return false;
  if (limitsOf(state, task).some((limit) => task.estimate > limit)) return false;
  const { type, provider, locks } = task.requirements;
  const limit = state.config.scheduler.perType[type];
  if (limit !== undefined && running.filter((other) => other.requirements.type === type).length >= limit) return false;
  const blockedUntil = provider === null ? null : (state.gates.get(provider as never)?.blockedUntil ?? null);
  if (blockedUntil !== null && now < blockedUntil) return false;
  if (running.some((other) => other.requirements.locks.some((lock) => locks.includes(lock)))) return false;
  return feasible(state, task).length > 0;
}

function isEligible(project: Project, running: readonly Task[]): boolean {
  const inFlight = running.filter((task) => task.project === project).length;
  return project.status === "active" && inFlight < project.settings.maxConcurrent;
}

function projectHasRoom(
  state: State,
  project: Project,
  running: readonly Task[],
  tokens: number,
  now: number,
): boolean {
  const { limit } = project.settings.budget;
  const mine = running.filter((task) => task.project === project);
  const reserved = sum(mine, (task) => task.attempt?.reserve ?? 0) + callsOf(state, project);
  return limit === null || project.spent.total(now) + reserved + tokens <= limit;
}

/** What calls of no task have set aside, waiting or out: of one project, or of all. */
function callsOf(state: State, project: Project | null): number {
  const calls = [...state.gates.values()].flatMap(({ queue, held }) => [
    ...[...queue.entries.values()].map(({ ticket }) => ticket),
    ...held.values(),
  ]);
  const mine = calls.filter((call) => call.task === undefined && (project === null || call.project === project.id));
  return sum(mine, ({ tokens }) => Math.max(1, tokens));
}

/** Its estimate (-1: none at all); else what tasks of its project and type used so far, but no more than a limit. */
function reserve(state: State, task: Task): number {
  if (task.estimate !== 0) return Math.max(0, task.estimate);
  const learned = Math.round(task.project.means.get(task.requirements.type)?.tokens ?? 0);
  return Math.min(learned, ...limitsOf(state, task));
}

const expectsNone = (task: Task): boolean =>
  task.estimate < 0 ||
  (task.estimate === 0 && Math.round(task.project.means.get(task.requirements.type)?.tokens ?? 0) === 0);

const limitsOf = (state: State, task: Task): number[] =>
  [task.project.settings.budget.limit, state.config.budget.limit].filter((limit) => limit !== null);

/** The agent whose turn it is, then its best task; without the agents' level, the best task. */
function nextOf(state: State, startable: readonly Task[], running: readonly Task[], now: number): Task | null {
  const { scheduler } = state.config;
  const inFlight = (task: Task): number => running.filter((other) => other.agent === task.agent).length;
  const inAll = (task: Task): number => running.filter((other) => other.agent.id === task.agent.id).length;
  const allowed = startable.filter((task) => inAll(task) < scheduler.maxPerAgentInFlight);
  const byAgent = (a: Task, b: Task): number =>
    inFlight(a) - inFlight(b) || a.agent.lastServed - b.agent.lastServed || compare(a.agent.id, b.agent.id);
  const order = allowed.toSorted(
    (a, b) => (scheduler.fairness.agents === "fair" ? byAgent(a, b) : 0) || byRank(state, a, b, now),
  );
  return order[0] ?? null;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const waitedOf = (task: Task, now: number): number => Math.max(0, now - task.runnableAt);

function priorityOf(state: State, task: Task, now: number): number {
  const steps = Math.floor(waitedOf(task, now) / state.config.scheduler.priority.starvationAfter);
  return Math.max(task.project.settings.maxPriority, task.priority - STEP * steps);
}

function byRank(state: State, a: Task, b: Task, now: number): number {
  const { starvationAfter } = state.config.scheduler.priority;
  const urgency = priorityOf(state, a, now) - priorityOf(state, b, now);
  if (urgency !== 0) return urgency;
  const isOverdue = waitedOf(a, now) >= starvationAfter;
  if (isOverdue !== waitedOf(b, now) >= starvationAfter) return isOverdue ? -1 : 1;
  const better = isOverdue ? 0 : scoreOf(state, b, now) - scoreOf(state, a, now);
  return better || a.runnableAt - b.runnableAt || a.seq - b.seq;
}

/** In sixty-thousandths, so that the exact age stays a whole number. */
function scoreOf(state: State, task: Task, now: number): number {
  const rules = state.config.scheduler.priority;
  const base = rules.base[task.requirements.type] ?? rules.base.other ?? 100;
  const failed = Math.max(0, task.iteration + task.ownFailures - 1);
  const age = Math.min(rules.ageMax * MINUTE, waitedOf(task, now) * rules.agePerMinute);
  return (base + task.depth * rules.depthBoost - Math.min(rules.retryMax, failed * rules.retryPenalty)) * MINUTE + age;
}

/** Nothing yet in the window first, then share − target, then registration; over the eligible ones only. */
function byDeficit(eligible: readonly Project[], running: readonly Task[], now: number): Project[] {
  const weights = sum(eligible, (project) => project.settings.weight);
  const chargeOf = (project: Project): number => {
    const mine = running.filter((task) => task.project === project);
    return project.recent.total(now) + sum(mine, (task) => task.attempt?.charge ?? 0);
  };
  const charged = sum(eligible, chargeOf);
  const deficit = (project: Project): number =>
    (charged === 0 ? 0 : chargeOf(project) / charged) - project.settings.weight / weights;
  const isServed = (project: Project): number => (project.starts.total(now) > 0 ? 1 : 0);
  return eligible.toSorted(
    (a, b) => isServed(a) - isServed(b) || deficit(a) - deficit(b) || a.registration - b.registration,
  );
}

const workersOf = (state: State): Worker[] => [...state.fleet.byId.values()].sort((a, b) => compare(a.id, b.id));

const heldBy = (state: State, worker: Worker): Task[] =>
  [...state.tasks.values()].filter((task) => task.attempt?.worker === worker);

const cpuLeft = (state: State, worker: Worker): number =>
  worker.cpu - sum(heldBy(state, worker), (task) => task.requirements.cpu);

const isInTree = ({ requirements }: Pick<Task, "requirements">): boolean => requirements.action === "exec(worktree)";

/** The last attempt was there, and either ended a round or asked and was answered. */
const hasItsTree = ({ id }: Worker, { lastWorker, extra, attempts }: Task): boolean =>
  lastWorker === id &&
  ((extra?.loop?.rounds ?? []).some((round) => round.attempt === attempts && round.outcome === "again") ||
    (attempts > 0 && extra?.approval?.askedBy === attempts && extra.approval.given !== null));

function hasRoom(state: State, worker: Worker, task: Task): boolean {
  const held = heldBy(state, worker);
  return (
    worker.status === "ready" &&
    held.length < worker.slots + state.config.scheduler.placement.maxQueuePerWorker &&
    cpuLeft(state, worker) >= task.requirements.cpu &&
    worker.memory - sum(held, (other) => other.requirements.memory) >= task.requirements.memory &&
    (!isInTree(task) || held.filter(isInTree).length < worker.worktrees || hasItsTree(worker, task)) &&
    task.requirements.capabilities.every((capability) => worker.capabilities.includes(capability)) &&
    (task.pin === null || task.pin === worker.id || task.pin === `zone ${worker.zone}`) &&
    takes(worker, task)
  );
}

/** What a worker says it takes, by regular expressions. */
export function takes(
  { takes: said }: Worker,
  { requirements, project }: Pick<Task, "requirements" | "project">,
): boolean {
  const isMeant = (patterns: readonly string[] | null | undefined, name: string): boolean =>
    patterns?.some((pattern) => new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name)) ?? true;
  // What a task brings is run only by those who name its action.
  if (isInTree({ requirements }) && (said?.actions ?? null) === null) return false;
  return (
    isMeant(said?.actions, requirements.action.replace("(worktree)", "")) &&
    isMeant(said?.types, requirements.type) &&
    isMeant(said?.projects, project.id)
  );
}

/** Workers nobody else has a hold on; the one held for this very task only if there is no other. */
function feasible(state: State, task: Task): Worker[] {
  const fitting = workersOf(state).filter((worker) => hasRoom(state, worker, task));
  const free = fitting.filter((worker) => worker.hold === null);
  return free.length > 0 ? free : fitting.filter((worker) => worker.hold?.task === task);
}

function placeOf(state: State, task: Task): { worker: string; reason: string } {
  const { strategy, preferLocality } = state.config.scheduler.placement;
  const workers = feasible(state, task);
  const [only] = workers;
  if (only !== undefined && workers.length === 1 && (task.pin === null || only.hold !== null)) {
    return { worker: only.id, reason: "only-worker-available" };
  }
  if (strategy === "affinity" || task.pin !== null) {
    return affine(state, task, workers) ?? byStrategy(state, task, workers, "least-loaded");
  }
  const chosen = byStrategy(state, task, workers, strategy);
  if (!preferLocality) return chosen;
  const ties = workers.filter((worker) => sameToStrategy(state, worker, chosen.worker, strategy));
  return affine(state, task, ties) ?? chosen;
}

/** More than any worker holds: one without a free slot comes after all that have one. */
const TAKEN = 1_000_000;
/** Whether it would begin there at once. */
const isFree = (state: State, worker: Worker): boolean =>
  heldBy(state, worker).length < Math.min(worker.slots, worker.offered);

function sameToStrategy(state: State, worker: Worker, chosen: string, strategy: Ranking): boolean {
  const other = state.fleet.byId.get(chosen as never) as Worker;
  if (isFree(state, worker) !== isFree(state, other)) return false;
  switch (strategy) {
    case "least-loaded":
      return heldBy(state, worker).length === heldBy(state, other).length;
    case "best-fit":
      return cpuLeft(state, worker) === cpuLeft(state, other);
    case "round-robin":
    case "random":
      return true;
  }
}

function byStrategy(
  state: State,
  task: Task,
  feasible: readonly Worker[],
  strategy: Ranking,
): { worker: string; reason: string } {
  const all = workersOf(state);
  const free = feasible.filter((worker) => isFree(state, worker));
  const workers = free.length > 0 ? free : feasible;
  /** The first feasible one from a place on, going round. */
  const from = (place: number): string => {
    const round = [...all.slice(place), ...all.slice(0, place)];
    return (round.find((worker) => workers.includes(worker)) as Worker).id;
  };
  const least = (...costs: ((worker: Worker) => number)[]): string => {
    const cost = (a: Worker, b: Worker): number => costs.reduce((found, of) => found || difference(of(a), of(b)), 0);
    return (workers.toSorted((a, b) => cost(a, b) || compare(a.id, b.id))[0] as Worker).id;
  };
  switch (strategy) {
    case "round-robin": {
      const after = all.findIndex((worker) => state.cursor !== null && worker.id > state.cursor);
      return { worker: from(state.cursor === null || after < 0 ? 0 : after), reason: "round-robin" };
    }
    case "random":
      return { worker: from(fnv(`${task.id}#${task.attempts + 1}`) % all.length), reason: "random" };
    case "best-fit":
      return { worker: least((worker) => cpuLeft(state, worker)), reason: "resource-fit" };
    case "least-loaded": {
      const load = (worker: Worker): number => heldBy(state, worker).length;
      return { worker: least(load, (worker) => worker.capabilities.length), reason: "least-loaded" };
    }
  }
}

/** Infinite room is as much as infinite room. */
const difference = (a: number, b: number): number => (a === b ? 0 : a - b);

/** FNV-1a over UTF-16 code units, 32 bits. */
function fnv(text: string): number {
  let hash = 2166136261n;
  for (let index = 0; index < text.length; index++)
    hash = ((hash ^ BigInt(text.charCodeAt(index))) * 16777619n) & 0xffffffffn;
  return Number(hash);
}

function affine(state: State, task: Task, workers: readonly Worker[]): { worker: string; reason: string } | null {
  const ran = (id: string | null): string | null =>
    id === null ? null : ((state.tasks.get(id as never) ?? state.tombstones.get(id as never))?.lastWorker ?? null);
  const parent = task.links?.ofRunning === true ? null : (task.links?.parent ?? null);
  const data = [parent, ...(task.links?.needs ?? [])].map(ran);
  const isThere = (id: string | null): boolean => workers.some((worker) => worker.id === id);
  const near = data.find(isThere);
  if (near !== undefined && near !== null) return { worker: near, reason: "affinity data-locality" };
  if (task.lastWorker !== null && isThere(task.lastWorker)) {
    return { worker: task.lastWorker, reason: "affinity previously-executed" };
  }
  const inZone = workers.filter((worker) => task.requirements.zone !== null && worker.zone === task.requirements.zone);
  const load = (worker: Worker): number => heldBy(state, worker).length + (isFree(state, worker) ? 0 : TAKEN);
  const [first] = inZone.toSorted((a, b) => load(a) - load(b) || compare(a.id, b.id));
  return first === undefined ? null : { worker: first.id, reason: "affinity same-zone" };
}
