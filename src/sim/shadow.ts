/**
 * The fleet as the auditor understands it, from committed events alone.
 *
 * This is a second, slow and simple reading of DESIGN: lists are scanned, sums are added up anew, nothing is
 * indexed and nothing is shared with the core but the format of events and of the config. Whatever the core
 * keeps as a count or a queue is here a question asked of all tasks. Rules look at the shadow before an event is
 * applied to it (shadow-events.ts) and say whether the event was allowed.
 */
import { type Config, DEFAULT_CONFIG, type ProjectSettings } from "../core/config/index.ts";
import type { GateSettings } from "../core/gate/index.ts";
import type { Event, FileRef, Takes, TaskSubmitted } from "../core/model/index.ts";

export type EventOf<Kind extends Event["kind"]> = Extract<Event, { kind: Kind }>;
/** Names the rule that was broken and says how. */
export type Complain = (rule: string, detail: string) => void;

type ShadowAttempt = {
  readonly number: number;
  /** As it was assigned. */
  readonly start: EventOf<"task-assigned">;
  startedAt: number;
  reserve: number;
  reported: number;
  permitted: number;
  known: boolean;
};
export type ShadowTask = {
  /** As it was submitted. */
  readonly spec: TaskSubmitted;
  readonly seq: number;
  /** What decides whether it can start: tasks with the same can take each other's place. */
  readonly shape: string;
  phase: "waiting" | "queued" | "live" | "parked" | "ended";
  /** Somebody must approve it before it is queued. */
  needsApproval: boolean;
  /** When it fails if nobody answers; null: never. */
  answerBy: number | null;
  /** The event by which its attempt was done, while it waits for what grew below it. */
  answeredBy: number | null;
  outcome: string | null;
  /** When it was submitted, or was last to run again. */
  openedAt: number;
  endedAt: number;
  attempts: number;
  ownFailures: number;
  losses: number;
  requeues: number;
  iteration: number;
  /** Of its loop, that have ended since it was submitted or last retried. */
  rounds: number;
  priority: number;
  /** Of its tokens: 0 if none was given, -1 for none at all. */
  estimate: number;
  deadline: number | null;
  runnableAt: number;
  /** It rests until a task-queued says otherwise. */
  resting: boolean;
  paused: boolean;
  pin: string | null;
  awaitsArtifact: boolean;
  /** What its last attempt that left any has left. */
  files: readonly FileRef[];
  attempt: ShadowAttempt | null;
};
export type Bookings = { readonly at: number; readonly tokens: number }[];
export type ShadowProject = {
  readonly id: string;
  settings: ProjectSettings;
  source: "default" | "named" | "put";
  paused: boolean;
  level: number;
  spent: Bookings;
  /** Also what has left a window that was shorter for a while: the core may still know it. */
  readonly booked: Bookings;
  readonly lastServed: Map<string, number>;
};
export type ShadowWorker = {
  readonly kind: string;
  slots: number;
  capabilities: readonly string[];
  cpu: number;
  memory: number;
  /** How many of its tasks may have a worktree at once. */
  worktrees: number;
  status: string;
  /** Said when it joined; null: it takes whatever there is, but what tasks bring. */
  readonly takes: Takes | null;
};
export type ShadowPlan = Pick<EventOf<"plan-put">, "run" | "failsFast" | "tasks" | "documentHash" | "agent"> & {
  /** The tasks whose records it keeps, and those that it kept until it was put last. */
  readonly held: ReadonlySet<string>;
  readonly heldBefore: ReadonlySet<string>;
  readonly paused: string | null;
  /** When it was put or renewed. */
  readonly keptFrom: number;
  /** It was cancelled: what is not there will not come. */
  readonly isCut: boolean;
  /** It fails fast, and a task of it has failed since it was put; it is paused for that when nobody else has it so. */
  readonly hasFailed: boolean;
};
type ShadowPermit = {
  readonly project: string;
  readonly task: string | null;
  readonly attempt: number | null;
  readonly tokens: number;
  episode: number;
};
export type ShadowGate = {
  readonly waiting: Map<string, ShadowPermit>;
  readonly out: Map<string, ShadowPermit>;
  /** When permits were granted, for the request window. */
  grants: number[];
  /** What settled calls used, while tokens are limited; a limit counts from when it was set. */
  spent: Bookings;
  blockedUntil: number;
  throttles: number;
  episode: number;
  /** How many calls of this episode may be out; infinite when all is well. */
  slow: number;
};

export type Shadow = {
  seq: number;
  at: number;
  config: Config;
  paused: boolean;
  readonly tasks: Map<string, ShadowTask>;
  readonly projects: Map<string, ShadowProject>;
  readonly workers: Map<string, ShadowWorker>;
  readonly gates: Map<string, ShadowGate>;
  readonly plans: Map<string, ShadowPlan>;
  /** Plans that have just gone for another: whose they were, and how many that one had with it. */
  evicted: { readonly plan: string; readonly agent: string | null; readonly had: number }[];
  /** Worker by the task it is kept free for. */
  readonly holds: Map<string, string>;
  spent: Bookings;
  readonly booked: Bookings;
  /** The highest level chosen yet, since when half lives are counted, and the last of them that is over. */
  highest: number;
  countedFrom: number;
  halvedUntil: number;
};

export const newShadow = (): Shadow => ({
  seq: 0,
  at: 0,
  config: DEFAULT_CONFIG,
  paused: false,
  tasks: new Map(),
  projects: new Map(),
  workers: new Map(),
  gates: new Map(),
  plans: new Map(),
  evicted: [],
  holds: new Map(),
  spent: [],
  booked: [],
  highest: 0,
  countedFrom: 0,
  halvedUntil: 0,
});

/** What grew below a task and has not ended. */
export function openBelow(shadow: Shadow, { spec: { task: id }, seq }: ShadowTask): string[] {
  const children = [...shadow.tasks.values()].filter(
    ({ spec, seq: later }) => spec.ofRunning && spec.parent === id && later > seq,
  );
  return children.flatMap((child) => [
    ...(child.phase === "ended" ? [] : [child.spec.task]),
    ...openBelow(shadow, child),
  ]);
}

/** How a task ends by an event. */
export const OUTCOMES: Readonly<Record<string, string>> = {
  "task-done": "done",
  "task-failed": "failed",
  "task-cancelled": "cancelled",
  "task-skipped": "skipped",
};

export const projectOf = (shadow: Shadow, id: string): ShadowProject => shadow.projects.get(id) as ShadowProject;
export const isRunnable = (shadow: Shadow, task: ShadowTask): boolean =>
  task.phase === "queued" && !task.resting && !task.paused && task.attempt === null && !isOfPausedPlan(shadow, task);
export const wantsWorktree = ({ spec }: ShadowTask): boolean => spec.action === "exec(worktree)";
const GROUP_OF_PLAN = /^plan:/;
export const isIn = (plan: string, { group }: TaskSubmitted): boolean => group === `plan:${plan}`;
/** The plan in whose group a task is. */
export const shadowPlanOf = (shadow: Shadow, { group }: TaskSubmitted): ShadowPlan | undefined =>
  group !== null && GROUP_OF_PLAN.test(group) ? shadow.plans.get(group.replace(GROUP_OF_PLAN, "")) : undefined;
export const isOfPausedPlan = (shadow: Shadow, { spec }: ShadowTask): boolean =>
  (shadowPlanOf(shadow, spec)?.paused ?? null) !== null;
/** Tasks of a plan that have not ended, or are not there yet. */
export const openOf = (shadow: Shadow, { tasks, isCut }: ShadowPlan): string[] =>
  tasks
    .map(({ id }) => id as string)
    .filter((id) => (shadow.tasks.get(id)?.phase ?? (isCut ? "ended" : "missing")) !== "ended");
export const plansOf = ({ plans }: Shadow, agent: string | null): number =>
  [...plans.values()].filter((plan) => plan.agent === agent).length;
/** Whether a plan that has ended has had its time. */
export function isPlanDue({ tasks, config }: Shadow, plan: ShadowPlan, at: number): boolean {
  const keptFrom = Math.max(plan.keptFrom, ...plan.tasks.map(({ id }) => tasks.get(id)?.endedAt ?? 0));
  return at >= keptFrom + config.scheduler.planTtl;
}
export const liveTasks = (shadow: Shadow): ShadowTask[] =>
  [...shadow.tasks.values()].filter(({ attempt }) => attempt !== null);
export const usedBy = (attempt: ShadowAttempt): number =>
  attempt.known ? Math.max(attempt.reported, attempt.permitted) : attempt.reserve;
/** Tokens booked within the window that ends at this instant. */
export const spentWithin = (spent: Bookings, windowMs: number, at: number): number =>
  spent.reduce((sum, booking) => (booking.at > at - windowMs ? sum + booking.tokens : sum), 0);

export const gateSettingsOf = (shadow: Shadow, gate: string): GateSettings =>
  shadow.config.gates.named[gate] ?? shadow.config.gates.default;

/** So many half lives are counted on from where they began; after so many nothing is left, and a charge begins anew. */
const HALVES_KEPT = 512;
const HALVES_FADED = 1024;

export function countHalvesAnew(shadow: Shadow): void {
  shadow.countedFrom = shadow.at;
  shadow.halvedUntil = shadow.at;
}

/** Whether what a worker said when it joined covers a task's action, type and project. */
export function takesTask({ takes }: ShadowWorker, { spec }: ShadowTask): boolean {
  const covers = (patterns: readonly string[] | null | undefined, name: string): boolean =>
    patterns?.some((pattern) => new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name)) ?? true;
  // What tasks bring is run only by those who name it.
  const isUnnamed = (takes?.actions ?? null) === null && /^exec\((command|worktree)\)$/.test(spec.action);
  if (isUnnamed) return false;
  return (
    covers(takes?.actions, spec.action) && covers(takes?.types, spec.type) && covers(takes?.projects, spec.project)
  );
}

/** Time passes: levels halve together every half life. */
export function tick(shadow: Shadow, at: number): void {
  shadow.at = Math.max(shadow.at, at);
  const { halfLife } = shadow.config.scheduler.fairness;
  const times = Math.floor((shadow.at - shadow.halvedUntil) / halfLife);
  if (times <= 0) return;
  const factor = 1 / 2 ** times;
  for (const project of shadow.projects.values()) project.level *= factor;
  shadow.highest *= factor;
  shadow.halvedUntil += times * halfLife;
}

/** Usage that outgrows the reservation is reserved too. */
export function noteUsage(attempt: ShadowAttempt | null, more: Partial<ShadowAttempt>): void {
  if (attempt === null) return;
  attempt.reported = Math.max(attempt.reported, more.reported ?? 0);
  attempt.permitted += more.permitted ?? 0;
  attempt.known = true;
  attempt.reserve = Math.max(attempt.reserve, attempt.reported, attempt.permitted);
}

export function book(shadow: Shadow, project: ShadowProject | undefined, tokens: number): void {
  const booking = { at: shadow.at, tokens };
  for (const list of [shadow.spent, shadow.booked, project?.spent, project?.booked]) list?.push(booking);
}

export function addToLevel(shadow: Shadow, project: ShadowProject, amount: number): void {
  const { halfLife } = shadow.config.scheduler.fairness;
  const halves = Math.floor((shadow.at - shadow.countedFrom) / halfLife);
  if (halves >= HALVES_FADED) countHalvesAnew(shadow);
  else if (halves >= HALVES_KEPT) shadow.countedFrom += HALVES_KEPT * halfLife;
  project.level += amount / project.settings.weight;
}
