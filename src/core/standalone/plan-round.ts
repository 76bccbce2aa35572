/**
 * One round over a plain snapshot: who gets which task on which worker. For people who embed it.
 *
 * This is the round of the specification of shares and budgets, without its known defects. Projects are asked in the
 * order
 * of their turn: those with nothing yet in the window first (the minimum-task guarantee), then share minus target
 * ascending, then list order, shares and targets over the same projects. Within a project: priority, then
 * runnable time, then list order; a task that fits no worker now is passed over and blocks no other. Under the default
 * policy a start is charged, and its tokens are set aside, before the next is chosen, so that idle workers
 * never all go to one project and a budget of 1000 is not overrun by four more tasks at 999. `charge: "none"` is
 * the letter of the spec: who is eligible and both totals stand still for the round, and budgets are only asked
 * whether they are used up.
 *
 * The task is chosen first and the worker for it second, so a worker with a rare capability is not given away to
 * a task that any worker could run: least-loaded spares a worker that is the last one another ready task fits, then
 * takes the lightest load, then the fewest capabilities the task does not need, then list order. Pure: the same
 * snapshot always gives the same plan, and nothing handed in is changed.
 */
import { DEFAULT_CONFIG } from "../config/config.ts";
import type { Reason } from "../model/events.ts";
import {
  type PlanProject,
  type PlanWorker,
  type ReadPolicy,
  type ReadyTask,
  type RoundPlan,
  type RoundPolicy,
  type RoundSnapshot,
  readPolicy,
  readSnapshot,
} from "./plan-round-input.ts";
import { countShapes, fitsSomewhere, type PlanShapes, placeTask, takeShape } from "./plan-round-workers.ts";

export type { RoundPolicy, RoundProject, RoundSnapshot, RoundTask, RoundWorker } from "./plan-round-input.ts";
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
  const ready = new Map<string, ReadyTask[]>();
  const sorted = [...tasks].sort(
    (left, right) => left.priority - right.priority || left.runnableAt - right.runnableAt || left.index - right.index,
  );
  for (const task of sorted) {
    const mine = ready.get(task.project);
    if (mine === undefined) ready.set(task.project, [task]);
    else mine.push(task);
  }
  return ready;
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
