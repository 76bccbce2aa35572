/**
 * The line: what is out, longest first, and what goes next; of the tasks and of the calls of all gates.
 *
 * It is what a screen shows that is drawn again every second, so it costs what is shown and not what is queued: of each
 * list the first few, without anything that lies in the log. The order of those that wait is that of the rules as they
 * stand: projects by level, each charged for what it is about to start, its agents in turn, of each its best task. What
 * no worker here could ever run, or its budget does not bear, stands behind all that could start.
 */
import type { Instant } from "../../core/base/index.ts";
import { whole } from "../../core/base/index.ts";
import { front, items } from "../../core/collections/index.ts";
import {
  classOf,
  type GateClass,
  gateStanding,
  queuedTickets,
  type ReadonlyGate,
  type Ticket,
} from "../../core/gate/index.ts";
import type { Agent, Attempt, Project, State, Task } from "../../core/model/index.ts";
import {
  chargeFor,
  compareProjects,
  compareRanks,
  EXPRESS_PRIORITY,
  heldBy,
  shownLevel,
  type TaskRank,
  taskRank,
} from "../../core/turn/index.ts";
import type { LineEntry, LineGate, LinePart, LineQuery, LineView } from "../../protocol/index.ts";
import { LINE_DEFAULT, LINE_MAX } from "../../protocol/shapes/index.ts";
import { readOptions } from "../base/call-options.ts";

const PROJECTS_MAX = 100;
const AGENTS_MAX = 100;

export const readLineLimit = (given: LineQuery | undefined): number =>
  readOptions<LineQuery>({ limit: whole(1, LINE_MAX) }, given).limit ?? LINE_DEFAULT;

export function lineView(state: State, now: Instant, limit: number): LineView {
  let [rateLimited, isRateLimited] = [0, false];
  for (const gate of state.gates.values()) {
    const { blockedUntil, held } = gateStanding(gate, now);
    rateLimited += gate.totals.rateLimited;
    isRateLimited ||= blockedUntil !== null || held === "requests" || held?.startsWith("tokens-") === true;
  }
  return {
    seq: state.seq,
    paused: state.paused,
    waiting: state.waiting,
    rateLimited,
    isRateLimited,
    tasks: tasksLine(state, now, limit),
    calls: callsLine(state, now, limit),
  };
}

const mean = (total: number, count: number): number => (count === 0 ? 0 : total / count);

// ------------------------------------------------------------------ calls

/** Gates know nothing of each other: the first of each comes before the second of any. */
function callsLine({ gates }: State, now: Instant, limit: number): LinePart {
  const sums = { inFlight: 0, queued: 0, completed: 0, scheduled: 0, waitMs: 0, serviceMs: 0 };
  const running = createEarliest<LineEntry>(limit, ({ ms }) => -ms);
  const queues: LineEntry[][] = [];
  const standings: LineGate[] = [];
  for (const [id, gate] of gates) {
    const standing = standingOf(id, gate, now);
    standings.push(standing);
    sums.inFlight += standing.inFlight;
    sums.queued += standing.queued;
    for (const key of ["completed", "scheduled", "waitMs", "serviceMs"] as const) sums[key] += gate.totals[key];
    for (const permit of gate.held.values()) running.add(callEntry(id, permit, now - permit.grantedAt));
    queues.push(queuedTickets(gate, now, limit).map((ticket) => callEntry(id, ticket, now - ticket.askedAt)));
  }
  const { scheduled, waitMs, serviceMs, ...counts } = sums;
  return {
    ...counts,
    maxInFlight: roomOf(standings),
    avgWaitMs: mean(waitMs, scheduled),
    avgRunMs: mean(serviceMs, counts.completed),
    running: running.list(),
    next: inRounds(queues, limit),
    gates: [...standings.filter(isUsed), ...standings.filter((gate) => !isUsed(gate))].slice(0, limit),
  };
}

function standingOf(id: string, gate: ReadonlyGate, now: Instant): LineGate {
  const { running: inFlight, limit: maxInFlight, queued } = gateStanding(gate, now);
  return { id, inFlight, maxInFlight, queued };
}

const isUsed = ({ inFlight, queued }: LineGate): boolean => inFlight + queued > 0;

/** Room that nobody asks for says nothing: a gate counts while a call is out or waits. */
function roomOf(gates: readonly LineGate[]): number {
  const used = gates.filter(isUsed);
  return (used.length === 0 ? gates : used).reduce((sum, { maxInFlight }) => sum + maxInFlight, 0);
}

const callEntry = (gate: string, ticket: Ticket, ms: number): LineEntry => ({
  id: ticket.id,
  class: ticket.class,
  ms: Math.max(0, ms),
  project: ticket.project,
  gate,
  ...(ticket.task === undefined ? {} : { task: ticket.task }),
});

function inRounds<Item>(queues: readonly (readonly Item[])[], limit: number): Item[] {
  const longest = queues.reduce((most, queue) => Math.max(most, queue.length), 0);
  const found: Item[] = [];
  for (let round = 0; round < longest && found.length < limit; round++)
    found.push(...queues.flatMap((queue) => queue.slice(round, round + 1)));
  return found.slice(0, limit);
}

// ------------------------------------------------------------------ tasks

function tasksLine(state: State, now: Instant, limit: number): LinePart {
  const { totals } = state;
  const running = createEarliest<Attempt>(limit, begunAt);
  for (const worker of state.fleet.order) for (const attempt of worker.attempts) running.add(attempt);
  return {
    inFlight: state.inFlight,
    maxInFlight: state.config.scheduler.maxInFlight,
    queued: state.queued,
    completed: totals.completed,
    avgWaitMs: mean(totals.waitMs, totals.starts),
    avgRunMs: mean(totals.runMs, totals.ends),
    running: running.list().map((attempt) => ({
      ...taskEntry(attempt.task, now - begunAt(attempt)),
      worker: attempt.worker.id,
    })),
    next: nextTasks(state, now, limit).map((task) => queuedEntry(state, task, now)),
    failed: totals.failed,
  };
}

const begunAt = ({ startedAt, assignedAt }: Attempt): number => (startedAt < 0 ? assignedAt : startedAt);

const taskEntry = ({ id, priority, project, agent, requirements }: Task, ms: number): LineEntry => ({
  id,
  class: classFor(priority),
  ms: Math.max(0, ms),
  project: project.id,
  agentId: agent.id,
  type: requirements.type,
});

function queuedEntry(state: State, task: Task, now: Instant): LineEntry {
  const held = heldBy(state, task, now);
  return { ...taskEntry(task, now - task.runnableAt), ...(held === null ? {} : { held: held.by }) };
}

const classFor = (priority: number): GateClass => classOf({ priority });

/** Those whose like could start, then the others. Tasks of a group are alike: its first speaks for all of them. */
function nextTasks(state: State, now: Instant, limit: number): Task[] {
  const isHeld = ({ tasks }: Group): boolean =>
    front(tasks, 1).some((head) => ![undefined, "no-workers"].includes(heldBy(state, head, now)?.by));
  const free = inTurn(state, now, limit, (group) => !isHeld(group));
  return free.length >= limit ? free : [...free, ...inTurn(state, now, limit - free.length, isHeld)];
}

type Chosen = (group: Group) => boolean;

/** A copy of who stands where, moved on start by start. */
function inTurn(state: State, now: Instant, limit: number, chosen: Chosen): Task[] {
  const turn = [...items(state.turn)].slice(0, PROJECTS_MAX).map((project) => ({
    project,
    settings: project.settings,
    registration: project.registration,
    level: shownLevel(state, project, now),
    queue: projectQueue(state, project, now, chosen),
  }));
  const found: Task[] = [];
  const take = (of: Turn, task: Task): void => {
    found.push(task);
    of.level += chargeFor(state, task) / of.settings.weight;
  };
  for (const one of turn)
    if (state.expressProjects.has(one.project))
      for (const task of one.queue.takeExpress(limit - found.length)) take(one, task);
  turn.sort(compareProjects);
  while (found.length < limit && turn.length > 0) {
    const [first] = turn.splice(0, 1) as [(typeof turn)[number]];
    const task = first.queue.take();
    if (task === undefined) continue;
    take(first, task);
    const behind = turn.findIndex((other) => compareProjects(other, first) > 0);
    turn.splice(behind < 0 ? turn.length : behind, 0, first);
  }
  return found;
}

/** Where a project stands, at the level it would have. */
type Turn = Pick<Project, "settings" | "registration"> & { level: number };

type Queue = { take(): Task | undefined; takeExpress(most: number): Task[] };

/** Where agents take turns, each gives its best after the other; else the best of all goes. */
function projectQueue(state: State, { turn }: Project, now: Instant, chosen: Chosen): Queue {
  const agents = [...items(turn)].slice(0, AGENTS_MAX);
  const isFair = state.config.scheduler.fairness.agents === "fair";
  const lines = isFair ? agents.map((agent) => [agent]) : [agents];
  const heads = lines.map((line) => createMerge(state, line, now, chosen));
  return {
    take() {
      for (let left = heads.length; left > 0; left--) {
        const head = heads.shift() as Merge;
        const task = head.take(Number.POSITIVE_INFINITY);
        if (task === undefined) continue;
        heads.push(head);
        return task;
      }
      return undefined;
    },
    takeExpress(most) {
      const found: Task[] = [];
      for (const head of heads)
        for (let task = head.take(EXPRESS_PRIORITY); task !== undefined; task = head.take(EXPRESS_PRIORITY)) {
          if (found.length >= most) return found;
          found.push(task);
        }
      return found;
    },
  };
}

type Merge = { take(priorityMax: number): Task | undefined };
type Group = Agent["groups"][number];
type Cursor = { readonly group: Group; readonly tasks: readonly Task[]; readonly at: number; readonly rank: TaskRank };

/** How many of a group are looked at first; of one that gives them all, twice as many. */
const LOOKED_AT_FIRST = 8;

/** The tasks of a group keep their order for ever, so the best of all is the head of one. Begun when it is asked. */
function createMerge(state: State, agents: readonly Agent[], now: Instant, chosen: Chosen): Merge {
  const cursorAt = (group: Group, at: number, before: readonly Task[]): Cursor[] => {
    const tasks = at < before.length ? before : front(group.tasks, Math.max(LOOKED_AT_FIRST, 2 * at));
    const head = tasks[at];
    return head === undefined ? [] : [{ group, tasks, at, rank: taskRank(state, head, now) }];
  };
  let cursors: Cursor[] | null = null;
  return {
    take(priorityMax) {
      cursors ??= agents.flatMap(({ groups }) => groups.filter(chosen).flatMap((group) => cursorAt(group, 0, [])));
      const [first, ...others] = cursors;
      if (first === undefined) return undefined;
      const best = others.reduce((least, one) => (compareRanks(one.rank, least.rank) < 0 ? one : least), first);
      if (best.rank.priority > priorityMax) return undefined;
      const { group, tasks, at } = best;
      cursors = [...cursors.filter((one) => one !== best), ...cursorAt(group, at + 1, tasks)];
      return tasks[at];
    },
  };
}

// ------------------------------------------------------------------ the first of many

type Earliest<Item> = { add(item: Item): void; list(): Item[] };

/** Keeps the least so many; what is more is dropped now and then, and not one by one. */
function createEarliest<Item>(limit: number, keyOf: (item: Item) => number): Earliest<Item> {
  let kept: Item[] = [];
  const cut = (): Item[] => kept.sort((left, right) => keyOf(left) - keyOf(right)).slice(0, limit);
  return {
    add(item) {
      kept.push(item);
      if (kept.length >= 4 * limit) kept = cut();
    },
    list: cut,
  };
}
