/**
 * One round over a plain snapshot: who gets which task on which worker. For people who embed it.
 *
 * This is the round of the specification of shares and budgets, without its known defects. Projects are asked in the
 * order of their turn: those with nothing yet in the window first (the minimum-task guarantee), then share minus target
 * ascending, then list order, shares and targets over the same projects. Within a project: priority, then
 * runnable time, then list order; a task that fits no worker now is passed over and blocks no other. Under the default
 * policy a start is charged, and its tokens are set aside, before the next is chosen, so that idle workers
 * never all go to one project and a budget of 1000 is not overrun by four more tasks at 999. `charge: "none"` is
 * the letter of the spec: who is eligible and both totals stand still for the round, and budgets are only asked
 * whether they are used up.
 *
 * The task is chosen first and the worker for it second, by the strategies of the scheduler's own placement. So a
 * worker with a rare capability is not given away to a task that any worker could run: least-loaded spares a worker
 * that is the last one another ready task fits and that would have no room for it afterwards, then takes the lightest
 * load, then the fewest capabilities the task does not need. Where ranks tie the order of the list decides. Pure: the
 * same snapshot always gives the same plan, and nothing handed in is changed.
 */
import { invariant } from "../base/result.ts";
import { DEFAULT_CONFIG, type Strategy } from "../config/config.ts";
import { fnv1a } from "../fleet/shape.ts";
import type { Reason } from "../model/events.ts";
import type { PlanProject, PlanWorker, ReadPolicy, ReadyTask, RoundDemand, RoundPlan } from "./plan-round-input.ts";
import { type RoundPolicy, type RoundSnapshot, readPolicy, readSnapshot } from "./plan-round-input.ts";

/** A task that starts in this round. */
export type RoundStart = {
  /** The id of the task. */
  readonly task: string;
  /** The id of the worker it goes to. */
  readonly worker: string;
  /** The id of its project. */
  readonly project: string;
  /** Why it goes to this worker. */
  readonly reason: Reason;
};

type Round = RoundPlan & {
  readonly policy: ReadPolicy;
  /** Ready tasks by project, in the order of their turn; those started are taken out. */
  readonly ready: Map<string, ReadyTask[]>;
  readonly shapes: PlanShapes;
  /** The order of projects, fixed for the round under charge "none". */
  fixedOrder: readonly PlanProject[] | null;
  reserved: number;
  /** The index in the list after the last worker chosen. */
  cursor: number;
};

/** One round over plain data: which task goes to which worker, and why. */
export function planRound(snapshot: RoundSnapshot, policy: RoundPolicy = {}): RoundStart[] {
  const read = readSnapshot(snapshot);
  const rules = readPolicy(policy, DEFAULT_CONFIG.scheduler.fairness);
  const own = { ready: byProject(read.tasks), shapes: countShapes(read.tasks), fixedOrder: null };
  const round: Round = { ...read, ...own, policy: rules, reserved: 0, cursor: 0 };
  if (rules.charge === "none") {
    if (round.globalLimit !== null && round.globalUsed >= round.globalLimit) return [];
    const eligible = round.projects.filter((project) => project.isActive && round.ready.has(project.id));
    round.fixedOrder = inOrder(round, eligible);
  }
  const starts: RoundStart[] = [];
  for (let start = next(round); start !== null; start = next(round)) starts.push(start);
  return starts;
}

function byProject(tasks: readonly ReadyTask[]): Map<string, ReadyTask[]> {
  const sorted = tasks.toSorted(
    (left, right) => left.priority - right.priority || left.runnableAt - right.runnableAt || left.index - right.index,
  );
  return Map.groupBy(sorted, ({ project }) => project);
}

/** The next start, recorded, or null when nothing more can be given. */
function next(round: Round): RoundStart | null {
  const fits = fitsSomewhere(round.workers);
  const inLine = new Map<PlanProject, ReadyTask>();
  for (const project of round.projects) {
    const task = mayStart(round, project) ? nextInLine(round, project, fits) : undefined;
    if (task !== undefined) inLine.set(project, task);
  }
  for (const project of round.fixedOrder ?? inOrder(round, [...inLine.keys()])) {
    const first = inLine.get(project);
    const task = first === undefined ? undefined : affordable(round, project, first, fits);
    if (task === undefined) continue;
    const { worker, reason } = placeTask(round, task, round.policy.strategy);
    record(round, project, task, worker);
    return { task: task.id, worker: worker.id, project: project.id, reason };
  }
  return null;
}

/** Active, below its cap, and its budget not used up. */
function mayStart({ policy }: Round, project: PlanProject): boolean {
  const spent = project.usage + (policy.charge === "none" ? 0 : project.reserved);
  return (
    project.isActive && project.active < project.maxConcurrent && (project.limit === null || spent < project.limit)
  );
}

/** The task next in line if the budgets allow it; else the first that expects no tokens, which passes it. */
function affordable(round: Round, project: PlanProject, first: ReadyTask, fits: Fits): ReadyTask | undefined {
  if (budgetsAllow(round, project, first)) return first;
  const free = nextInLine(round, project, (task) => (task.estimate ?? 0) === 0 && fits(task));
  return free !== undefined && budgetsAllow(round, project, free) ? free : undefined;
}

type Fits = (task: ReadyTask) => boolean;

/** The first of a project's tasks that some worker has room for and whose type is not at its limit. */
function nextInLine(round: Round, project: PlanProject, fits: Fits): ReadyTask | undefined {
  const { policy, typesRunning } = round;
  const hasTypeRoom = ({ type }: ReadyTask): boolean =>
    type === null || (typesRunning.get(type) ?? 0) < (policy.perType.get(type) ?? Number.POSITIVE_INFINITY);
  return round.ready.get(project.id)?.find((task) => hasTypeRoom(task) && fits(task));
}

/** Judged on the task next in line. Charge "none" has asked already. */
function budgetsAllow(round: Round, project: PlanProject, task: ReadyTask): boolean {
  if (round.policy.charge === "none") return true;
  const needed = reserveOf(task);
  return (
    (project.limit === null || project.usage + project.reserved + needed <= project.limit) &&
    (round.globalLimit === null || round.globalUsed + round.reserved + needed <= round.globalLimit)
  );
}

const reserveOf = (task: ReadyTask): number => Math.max(1, task.estimate ?? 0);

/** Guarantee first, then share − target, then list order; shares and targets over the same projects. */
function inOrder({ policy }: Round, eligible: readonly PlanProject[]): PlanProject[] {
  let weights = 0;
  let charged = 0;
  for (const project of eligible) {
    weights += project.weight;
    charged += project.usage + project.charged;
  }
  const keyed = eligible.map((project, index) => ({
    project,
    index,
    served: (policy.guarantee === "started" ? project.started : project.completed) > 0 ? 1 : 0,
    deficit: (charged === 0 ? 0 : (project.usage + project.charged) / charged) - project.weight / weights,
  }));
  keyed.sort((left, right) => left.served - right.served || left.deficit - right.deficit || left.index - right.index);
  return keyed.map(({ project }) => project);
}

function record(round: Round, project: PlanProject, task: ReadyTask, worker: PlanWorker): void {
  const { policy, typesRunning } = round;
  const mine = round.ready.get(project.id) as ReadyTask[];
  mine.splice(mine.indexOf(task), 1);
  takeShape(round.shapes, task);
  worker.inFlight++;
  worker.cpu -= task.cpu;
  worker.memory -= task.memory;
  round.cursor = worker.index + 1;
  project.active++;
  if (task.type !== null) typesRunning.set(task.type, (typesRunning.get(task.type) ?? 0) + 1);
  if (policy.charge === "none") return;
  project.started++;
  project.charged += policy.startCost + (task.estimate ?? policy.defaultTokens);
  project.reserved += reserveOf(task);
  round.reserved += reserveOf(task);
}

/** What is still asked for, and how often. */
type PlanShapes = Map<string, { readonly demand: RoundDemand; count: number }>;
type Chosen = { readonly worker: PlanWorker; readonly reason: Reason };
type Fleet = { readonly workers: readonly PlanWorker[]; readonly shapes: PlanShapes; readonly cursor: number };

function countShapes(tasks: readonly ReadyTask[]): PlanShapes {
  const shapes: PlanShapes = new Map();
  for (const task of tasks) {
    const shape = shapes.get(task.shape);
    if (shape === undefined) shapes.set(task.shape, { demand: task, count: 1 });
    else shape.count++;
  }
  return shapes;
}

function takeShape(shapes: PlanShapes, task: ReadyTask): void {
  const shape = shapes.get(task.shape);
  if (shape !== undefined && --shape.count === 0) shapes.delete(task.shape);
}

function fits(worker: PlanWorker, demand: RoundDemand): boolean {
  return (
    worker.isTaking &&
    worker.inFlight < worker.slots &&
    worker.cpu >= demand.cpu &&
    worker.memory >= demand.memory &&
    demand.capabilities.every((capability) => worker.capabilities.has(capability))
  );
}

/** Whether any worker has room for a task, asked once per shape. */
function fitsSomewhere(workers: readonly PlanWorker[]): (task: ReadyTask) => boolean {
  const known = new Map<string, boolean>();
  return (task) => {
    const answer = known.get(task.shape) ?? workers.some((worker) => fits(worker, task));
    known.set(task.shape, answer);
    return answer;
  };
}

/** Where a task that fits somewhere goes. */
function placeTask(fleet: Fleet, task: ReadyTask, strategy: Strategy): Chosen {
  const feasible = fleet.workers.filter((worker) => fits(worker, task));
  const [only] = feasible;
  invariant(only !== undefined, `a task that was chosen (${task.id}) has a worker with room`);
  if (feasible.length === 1) return { worker: only, reason: { type: "only-worker-available" } };
  const total = fleet.workers.length;
  switch (strategy) {
    case "round-robin":
      return { worker: atOrAfter(feasible, fleet.cursor, total), reason: { type: "round-robin" } };
    case "random":
      return { worker: atOrAfter(feasible, fnv1a(`${task.id}#1`) % total, total), reason: { type: "random" } };
    case "best-fit":
      return tightest(feasible, task);
    case "affinity": {
      const near = task.zone === null ? [] : feasible.filter((worker) => worker.zone === task.zone);
      const worker = near.length === 0 ? null : lightest(fleet, near, task).worker;
      return worker === null
        ? lightest(fleet, feasible, task)
        : { worker, reason: { type: "affinity", reason: "same-zone" } };
    }
    case "least-loaded":
      return lightest(fleet, feasible, task);
  }
}

function atOrAfter(feasible: readonly PlanWorker[], index: number, total: number): PlanWorker {
  const distance = (worker: PlanWorker): number => (worker.index - index + total) % total;
  return feasible.reduce((best, worker) => (distance(worker) < distance(best) ? worker : best));
}

function tightest(feasible: readonly PlanWorker[], task: ReadyTask): Chosen {
  const worker = feasible.reduce((best, other) => (other.cpu < best.cpu ? other : best));
  const availableCpu = Number.isFinite(worker.cpu) ? worker.cpu : null;
  return { worker, reason: { type: "resource-fit", availableCpu, requiredCpu: task.cpu } };
}

function lightest(fleet: Fleet, feasible: readonly PlanWorker[], task: ReadyTask): Chosen {
  const spared = soleWorkers(fleet, task);
  const rank = (worker: PlanWorker): readonly number[] => [
    spared.has(worker) ? 1 : 0,
    worker.inFlight,
    worker.capabilities.size,
  ];
  const isBefore = (left: readonly number[], right: readonly number[]): boolean => {
    const at = left.findIndex((value, index) => value !== right[index]);
    return at >= 0 && (left[at] as number) < (right[at] as number);
  };
  const worker = feasible.reduce((best, other) => (isBefore(rank(other), rank(best)) ? other : best));
  return { worker, reason: { type: "least-loaded", queueDepth: worker.inFlight } };
}

/** Workers that another ready task could not do without if this one were placed there. */
function soleWorkers({ workers, shapes }: Fleet, task: ReadyTask): ReadonlySet<PlanWorker> {
  const sole = new Set<PlanWorker>();
  for (const [shape, { demand }] of shapes) {
    if (shape === task.shape) continue;
    const able = workers.filter((worker) => fits(worker, demand));
    const [worker] = able;
    if (worker === undefined || able.length > 1) continue;
    const { inFlight, cpu, memory } = worker;
    const after = { ...worker, inFlight: inFlight + 1, cpu: cpu - task.cpu, memory: memory - task.memory };
    if (!fits(after, demand)) sole.add(worker);
  }
  return sole;
}
