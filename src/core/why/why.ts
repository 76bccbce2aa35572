/**
 * Why a task is not running: every condition between it and its start, with the numbers.
 *
 * The answer is exact. A task passes every condition if and only if the pump would start it next, and a task
 * that waits has at least one condition that is shut; both are laws in test/laws/why.test.ts. Asking leaves no mark
 * on the state, so it may be asked of a state rebuilt from the log at any number. Its cost grows with workers,
 * projects and the agents of a project, never with how many tasks are queued.
 */
import type { Instant, TaskId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { items } from "../collections/sorted-list.ts";
import { isAwaiting, openBelow } from "../lifecycle/growth.ts";
import type { ReadonlyAttempt, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { hasEnded, type Phase } from "../model/state.ts";
import { compareRanks, shownScore, type TaskRank } from "../turn/priority.ts";
import { countAhead, fixedOf, taskRank } from "../turn/queue.ts";
import type { WhyCondition } from "./conditions.ts";
import {
  finding,
  limitConditions,
  permitConditions,
  shapeConditions,
  taskConditions,
  turnConditions,
} from "./conditions.ts";
import { asRunnable, type Question, standingOf } from "./turn.ts";
import { workerConditions } from "./workers.ts";

export { INSTANT_NUMBERS, type WhyCode, type WhyCondition } from "./conditions.ts";

/** A task that goes before another. */
export type WhyAhead = {
  /** The task. */
  readonly task: TaskId;
  /** The agent that submitted it. */
  readonly agent: string;
  /** Why it goes first, in a few words. */
  readonly reason: string;
};
/** Why a task is not running. */
export type Why = {
  /** The task. */
  readonly task: TaskId;
  /** Where it is in its life. */
  readonly state: Phase;
  /** One sentence, for people. */
  readonly summary: string;
  /** Every condition, open or shut. */
  readonly conditions: readonly WhyCondition[];
  /** What goes before it. */
  readonly ahead: {
    /** How many tasks of its agent are ahead of it. */
    readonly count: number;
    /** The first few tasks that go before it, of any agent. */
    readonly next: readonly WhyAhead[];
  };
  /** When time alone could let it start; null if that depends on somebody. */
  readonly earliestStart: number | null;
};

const AHEAD_NAMED_MAX = 5;
/** The conditions that open as other tasks start and end. */
const BEHIND_OTHERS: ReadonlySet<WhyCondition["code"]> = new Set<WhyCondition["code"]>([
  ...(["fleet-in-flight", "project-in-flight", "agent-in-flight", "type-limit", "lock"] as const),
  ...(["express-lane", "project-turn", "agent-turn", "position"] as const),
]);
/** Those that neither the ends of other tasks open nor, often, the clock. */
const LASTING: ReadonlySet<WhyCondition["code"]> = new Set<WhyCondition["code"]>([
  ...(["dependency", "artifact", "not-before", "fleet-budget", "project-budget"] as const),
  ...(["provider", "no-workers", "never-fits"] as const),
]);
const NONE_AHEAD: Why["ahead"] = { count: 0, next: [] };

/** Every condition between a task and its start. */
export function why(state: ReadonlyState, id: TaskId, now: Instant): Result<Why, Refusal> {
  const task = state.tasks.get(id);
  if (task === undefined) {
    const stone = state.tombstones.get(id);
    return stone === undefined
      ? fail({ type: "task-unknown", task: id })
      : ok(answer(id, stone.phase, endCondition(stone.phase, stone.endedAt, null)));
  }
  if (hasEnded(task))
    return ok(answer(id, task.phase, endCondition(task.phase, task.end?.at ?? 0, task.end?.error ?? null)));
  if (task.phase === "assigned" || task.phase === "running") {
    const attempt = task.attempt as ReadonlyAttempt;
    return ok(answer(id, task.phase, runCondition(task, attempt), permitConditions(state, attempt, now)));
  }
  if (task.phase === "parked")
    return ok(answer(id, task.phase, isAwaiting(task) ? childrenCondition(state, task) : approvalCondition(task)));
  return ok(whyNotStarted(state, task, now));
}

const answer = (task: TaskId, phase: Phase, first: WhyCondition, others: readonly WhyCondition[] = []): Why => ({
  task,
  state: phase,
  summary: [first, ...others.slice(0, 1)].map(({ detail }) => asSentence(detail)).join(" "),
  conditions: [first, ...others],
  ahead: NONE_AHEAD,
  earliestStart: null,
});

/** A question that a person wrote has its own mark. */
const asSentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;

function endCondition(phase: Phase, endedAt: number, error: string | null): WhyCondition {
  const detail = `The task has ended as ${phase}${error === null ? "" : `: ${error}`}`;
  return finding("ended", false, { endedAt }, ["", detail]);
}

function approvalCondition({ id, extra }: ReadonlyTask): WhyCondition {
  const { question = null, until = -1 } = extra?.approval ?? {};
  const asked = question === null ? "" : `: ${question}`;
  const detail = `The task is parked until somebody approves it (drover approve ${id})${asked}`;
  return finding("approval", false, until < 0 ? {} : { failsAt: until }, ["", detail]);
}

const CHILDREN_NAMED_MAX = 5;

function childrenCondition(state: ReadonlyState, task: ReadonlyTask): WhyCondition {
  const open = openBelow(task);
  const named = firstOpen(state, task, CHILDREN_NAMED_MAX).map(({ id, phase }) => `${id} (${phase})`);
  const more = open > named.length ? ` and ${open - named.length} more` : "";
  const has = open === 1 ? "1 task that grew below it has" : `${open} tasks that grew below it have`;
  const detail = `The task is parked until ${has} ended: ${named.join(", ")}${more}`;
  return finding("children", false, { open, children: task.extra?.growth?.children ?? 0 }, ["", detail]);
}

/** The first that grew below a task and have not ended. Where nothing is open it does not look. */
function firstOpen(state: ReadonlyState, task: ReadonlyTask, count: number): ReadonlyTask[] {
  const found: ReadonlyTask[] = [];
  for (const child of items(state.children.get(task.id) ?? NO_CHILDREN)) {
    if (found.length >= count) break;
    if (child.links?.ofRunning !== true) continue;
    if (!hasEnded(child)) found.push(child);
    if (openBelow(child) > 0) found.push(...firstOpen(state, child, count - found.length));
  }
  return found;
}
const NO_CHILDREN = { chunks: [], size: 0, head: 0, compare: () => 0 };

function runCondition(task: ReadonlyTask, attempt: ReadonlyAttempt): WhyCondition {
  const { number, worker, assignedAt } = attempt;
  const detail = `The task is ${task.phase} already, attempt ${number} on worker ${worker.id}`;
  return finding("running", false, { attempt: number, worker: worker.id, assignedAt }, ["", detail]);
}

function whyNotStarted(state: ReadonlyState, task: ReadonlyTask, now: Instant): Why {
  const question = { state, task, now, standing: standingOf(state, task, now) };
  const conditions = [
    ...taskConditions(state, task, now),
    ...limitConditions(question),
    ...turnConditions(question),
    ...shapeConditions(state, task, now),
    ...workerConditions(state, task),
  ];
  const shut = conditions.filter((condition) => !condition.ok);
  return {
    task: task.id,
    state: task.phase,
    summary: summarise(shut),
    conditions,
    ahead: aheadOf(question),
    earliestStart: earliestOf(shut, now),
  };
}

/** Who is behind others gets there as they end; who fits nowhere never does, so that is said before it. */
function summarise(shut: readonly WhyCondition[]): string {
  const lasting = shut.find(isForGood);
  const first = shut.find(({ code }) => lasting === undefined || !BEHIND_OTHERS.has(code));
  if (first === undefined) return "Nothing is in its way: it starts with the next pump.";
  const rest = shut.length - 1;
  const others = rest === 0 ? "" : ` (and ${rest} more ${rest === 1 ? "condition" : "conditions"})`;
  return `It waits because ${lastToOpen(first, shut).detail}${others}.`;
}

/** Neither others nor the clock open it: no worker fits, or its estimate alone exceeds a budget. */
const isForGood = ({ code, numbers: { needed, limit } }: WhyCondition): boolean =>
  code === "no-workers" || code === "never-fits" || (code.endsWith("-budget") && Number(needed) > Number(limit));

/** What the clock opens is not what it waits for, if something else is shut for longer or until somebody acts. */
function lastToOpen(first: WhyCondition, shut: readonly WhyCondition[]): WhyCondition {
  let last = first;
  for (const one of shut) if (LASTING.has(one.code) && opensAt(one) > opensAt(last)) last = one;
  return last;
}

const opensAt = ({ numbers: { until } }: WhyCondition): number =>
  typeof until === "number" ? until : Number.POSITIVE_INFINITY;

/** The last of the instants at which the shut conditions open by themselves, if they all do. */
function earliestOf(shut: readonly WhyCondition[], now: number): number | null {
  let earliest = now;
  for (const { numbers } of shut) {
    if (typeof numbers.until !== "number") return null;
    earliest = Math.max(earliest, numbers.until);
  }
  return earliest;
}

function aheadOf({ state, task, now, standing }: Question): Why["ahead"] {
  const others: WhyAhead[] = [];
  const { expressFirst, projectFirst, agentFirst, rank } = standing;
  const other = (first: ReadonlyTask | null, reason: string): void => {
    if (first !== null && !others.some((row) => row.task === first.id)) {
      others.push({ task: first.id, agent: first.agent.id, reason });
    }
  };
  other(expressFirst, "it goes by the express lane");
  other(projectFirst, `it is the turn of project ${projectFirst?.project.id}`);
  other(agentFirst, `it is the turn of agent ${agentFirst?.agent.id}`);
  const count = countAhead(state, asRunnable(task, now), now);
  const mine = count === 0 ? [] : firstInQueue(state, task, rank, now);
  return { count, next: [...others, ...mine].slice(0, AHEAD_NAMED_MAX) };
}

/** The first few of its agent's queue, from the front of each group. */
function firstInQueue(state: ReadonlyState, task: ReadonlyTask, rank: TaskRank, now: number): WhyAhead[] {
  const found: { task: ReadonlyTask; rank: TaskRank }[] = [];
  for (const group of task.agent.groups) {
    let taken = 0;
    for (const other of items(group.tasks)) {
      const theirs = taskRank(state, other, now);
      if (other === task || taken++ >= AHEAD_NAMED_MAX || compareRanks(theirs, rank) >= 0) break;
      found.push({ task: other, rank: theirs });
    }
  }
  return found
    .sort((left, right) => compareRanks(left.rank, right.rank))
    .slice(0, AHEAD_NAMED_MAX)
    .map((row) => ({
      task: row.task.id,
      agent: row.task.agent.id,
      reason: reasonBetween(state, row, { task: asRunnable(task, now), rank }, now),
    }));
}

type Ranked = { readonly task: ReadonlyTask; readonly rank: TaskRank };

/** The first number in which two tasks of one agent differ. */
function reasonBetween(state: ReadonlyState, theirs: Ranked, mine: Ranked, now: number): string {
  if (theirs.rank.priority !== mine.rank.priority) {
    return `effective priority ${theirs.rank.priority} before ${mine.rank.priority}`;
  }
  if (theirs.rank.overdue !== mine.rank.overdue) return "it is overdue";
  if (!theirs.rank.overdue && theirs.rank.score !== mine.rank.score) {
    const scoreOf = ({ task }: Ranked): number =>
      shownScore(fixedOf(state, task), now - task.runnableAt, state.config.scheduler.priority);
    const [high, low] = [scoreOf(theirs), scoreOf(mine)];
    return high === low ? `score ${high}, and a little older` : `score ${high} before ${low}`;
  }
  return theirs.rank.runnableAt === mine.rank.runnableAt ? "it was submitted first" : "it has been runnable longer";
}
