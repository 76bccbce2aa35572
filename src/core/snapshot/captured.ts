/**
 * The lines of a snapshot, of a state that may change as soon as this returns.
 *
 * To write a line takes some microseconds, and there may be a million, so most are written later, as they are taken.
 * What can change until then is noted now. Of a task that has no ties to others and nothing that few have, which are
 * nearly all, that is a dozen numbers and two things that never change themselves: to note them takes an eighth of what
 * it takes to write them. Other tasks are written now. Of tombstones whose time is not up only how many children each
 * has can change, and whether they are due.
 */
import { toArray } from "../collections/fifo.ts";
import type { ReadonlyState, ReadonlyTask, ReadonlyTombstone } from "../model/read-only.ts";
import * as format from "./format.ts";
import {
  type AgentNumbers,
  closed,
  extraRow,
  isPlain,
  type MoreFacts,
  moreOf,
  numberOf,
  type RequirementsNumbers,
  requirementsRow,
  rowsAbove,
  rowsBehindTasks,
  rowsBelow,
  stoneRow,
  taskRow,
  written,
} from "./snapshot.ts";

/** Null if more than so many tasks have ties: to write them now would take long. */
export function capturedLines(state: ReadonlyState, tiedMax: number): Generator<string> | null {
  const agents: AgentNumbers = new Map();
  const above = [...written(rowsAbove(state, agents))];
  const noted = noteTasks(state, agents, tiedMax);
  if (noted === null) return null;
  const tasks = notedLines(noted, agents);
  const between = [...written(rowsBehindTasks(state))];
  const stones = toArray(state.remembered);
  const children = new Map<ReadonlyTombstone, number>();
  for (const stone of stones) if (stone.children > 0) children.set(stone, stone.children);
  const below = [...written(rowsBelow(state))];

  function* lines(): Generator<string> {
    yield* above;
    yield* tasks;
    yield* between;
    for (const stone of stones) yield JSON.stringify(stoneRow(stone, children.get(stone) ?? 0, false));
    yield* below;
  }
  return closed(lines());
}

/** How many lines `capturedLines` writes at once besides those of tasks, and how many tasks and tombstones it notes. */
export function changingLines({ tasks, remembered, tombstones, ...state }: ReadonlyState): {
  readonly written: number;
  readonly noted: number;
} {
  const { permits, loads, fleet, groups, plans, callbacks, schedules, tabs, artifacts, rejected, ledger } = state;
  const others: readonly { readonly size: number }[] = [
    ...[permits, loads, fleet.byId, groups, plans, callbacks.wanted, callbacks.due, schedules, tabs, artifacts],
    ...[{ size: state.settled.order.length }, rejected, ledger.types.rows, ledger.labels.rows],
  ];
  const written = others.reduce((sum, { size }) => sum + size, tombstones.size - remembered.length);
  return { written, noted: tasks.size + remembered.length };
}

/** Numbers that are noted of a task that has not started, and of one that has. */
const NUMBERS_OF_PLAIN = 6;
const NUMBERS_MAX = 14;
/** Added to the number of its phase: that more is noted of it, that it is paused, that it is in a group. */
const MORE = 16;
const PAUSED = 32;
const IN_GROUP = 64;
const PHASE_MASK = MORE - 1;

type Noted = {
  /** All tasks, in the order of submission. */
  readonly tasks: ReadonlyTask[];
  /** Of those without ties, one after the other; and what is no number, of those of which more is noted. */
  readonly numbers: Float64Array;
  readonly lastWorkers: ReadonlyTask["lastWorker"][];
  readonly ends: ReadonlyTask["end"][];
  /** Of those in a group. */
  readonly extras: ReadonlyTask["extra"][];
  /** The others, by their place among all. */
  readonly tied: Map<number, TiedLine>;
};
/** A line without the number of the requirements, which are numbered as lines are taken. */
type TiedLine = { readonly before: string; readonly behind: string };
const REQUIREMENTS_AT = 4;

/** That it is in a group is no tie, if that is all: all that are share what says so, and nobody changes that. */
const hasTies = ({ links, extra, pin }: ReadonlyTask): boolean =>
  links !== null || pin !== null || (extra !== null && extra !== extra.group?.extra);

/** Null if more than so many tasks have ties. */
function noteTasks(state: ReadonlyState, agents: AgentNumbers, tiedMax: number): Noted | null {
  const count = state.tasks.size;
  const tied = new Map<number, TiedLine>();
  const numbers = new Float64Array(count * NUMBERS_MAX);
  const noted: Noted = { tasks: new Array(count), numbers, lastWorkers: [], ends: [], extras: [], tied };
  let ties = 0;
  let index = 0;
  let at = 0;
  state.tasks.each((task) => {
    noted.tasks[index] = task;
    if (!hasTies(task)) at = noteNumbers(noted, at, task);
    else if (++ties <= tiedMax) tied.set(index, tiedLine(taskRow(state, task, agents.get(task.agent) as number, 0)));
    index++;
  });
  return ties > tiedMax ? null : noted;
}

function tiedLine(row: format.TaskRow): TiedLine {
  const before = JSON.stringify(row.slice(0, REQUIREMENTS_AT));
  const behind = JSON.stringify(row.slice(REQUIREMENTS_AT + 1));
  return { before: before.slice(0, -1), behind: behind.slice(1) };
}

/** Answers where the next begin. */
function noteNumbers({ numbers, lastWorkers, ends, extras }: Noted, at: number, task: ReadonlyTask): number {
  const isShort = isPlain(task);
  const flags = (isShort ? 0 : MORE) + (task.paused ? PAUSED : 0) + (task.extra === null ? 0 : IN_GROUP);
  if (task.extra !== null) extras.push(task.extra);
  numbers[at] = format.PHASES.indexOf(task.phase) + flags;
  numbers[at + 1] = task.priority;
  numbers[at + 2] = task.iteration;
  numbers[at + 3] = task.estimate;
  numbers[at + 4] = task.runnableAt;
  numbers[at + 5] = task.lastSeq;
  if (isShort) return at + NUMBERS_OF_PLAIN;
  numbers[at + 6] = task.ownFailures;
  numbers[at + 7] = task.losses;
  numbers[at + 8] = task.attempts;
  numbers[at + 9] = task.restUntil;
  numbers[at + 10] = task.deadline;
  numbers[at + 11] = task.startedAt;
  numbers[at + 12] = task.requeues;
  numbers[at + 13] = task.throttles;
  lastWorkers.push(task.lastWorker);
  ends.push(task.end);
  return at + NUMBERS_MAX;
}

function* notedLines(noted: Noted, agents: AgentNumbers): Generator<string> {
  const { tasks, tied } = noted;
  const requirements: RequirementsNumbers = new Map();
  const taken: Taken = { numbers: 0, others: 0, extras: 0, plain: null, morePlain: "" };
  for (let index = 0; index < tasks.length; index++) {
    const task = tasks[index] as ReadonlyTask;
    const known = requirements.size;
    const number = numberOf(requirements, task.requirements);
    if (number === known) yield JSON.stringify(requirementsRow(task.requirements));
    const line = tied.get(index);
    if (line === undefined) yield takeLine(noted, taken, task, agents.get(task.agent) as number, number);
    else yield `${line.before},${number},${line.behind}`;
  }
}

/** How many of what was noted have been taken; and the end of the last line of a plain task in a group. */
type Taken = { numbers: number; others: number; extras: number; plain: ReadonlyTask["extra"]; morePlain: string };

/** The line of the next task without ties, put together by hand: a third of what it takes to write an array as JSON. */
function takeLine(noted: Noted, taken: Taken, task: ReadonlyTask, agent: number, requirements: number): string {
  const { id, seq, bodyHash, createdAt, depth } = task;
  const { numbers } = noted;
  const at = taken.numbers;
  const code = numbers[at] as number;
  const extra = (code & IN_GROUP) === 0 ? null : (noted.extras[taken.extras++] as ReadonlyTask["extra"]);
  const hash = bodyHash === "" ? '""' : JSON.stringify(bodyHash);
  const names = `["task",${JSON.stringify(id)},${seq},${agent},${requirements},${hash},${createdAt},${depth}`;
  const place = `${code & PHASE_MASK},${numbers[at + 1]},${numbers[at + 2]},${numbers[at + 3]}`;
  const text = `${names},${place},${numbers[at + 4]},${numbers[at + 5]}`;
  const isLong = (code & MORE) !== 0;
  taken.numbers += isLong ? NUMBERS_MAX : NUMBERS_OF_PLAIN;
  if (!isLong && extra === null) return `${text}]`;
  if (isLong) return `${text},${moreText(noted, at, extra, taken.others++)}]`;
  if (taken.plain !== extra) {
    taken.plain = extra;
    taken.morePlain = JSON.stringify(moreOf(PLAIN, null, groupOf(extra)));
  }
  return `${text},${taken.morePlain}]`;
}

const groupOf = (extra: ReadonlyTask["extra"]): format.ExtraRow | null => (extra === null ? null : extraRow(extra));

/** What is told of a task that has not started, if more is told of it than of most. */
const PLAIN: MoreFacts = {
  paused: false,
  ownFailures: 0,
  losses: 0,
  attempts: 0,
  restUntil: -1,
  deadline: -1,
  lastWorker: null,
  startedAt: -1,
  pin: null,
  timers: null,
  end: null,
  requeues: 0,
  throttles: 0,
};

function moreText(
  { numbers, lastWorkers, ends }: Noted,
  at: number,
  extra: ReadonlyTask["extra"],
  other: number,
): string {
  const facts: MoreFacts = {
    paused: ((numbers[at] as number) & PAUSED) !== 0,
    ownFailures: numbers[at + 6] as number,
    losses: numbers[at + 7] as number,
    attempts: numbers[at + 8] as number,
    restUntil: numbers[at + 9] as number,
    deadline: numbers[at + 10] as number,
    lastWorker: lastWorkers[other] as ReadonlyTask["lastWorker"],
    startedAt: numbers[at + 11] as number,
    pin: null,
    timers: null,
    end: ends[other] as ReadonlyTask["end"],
    requeues: numbers[at + 12] as number,
    throttles: numbers[at + 13] as number,
  };
  return JSON.stringify(moreOf(facts, null, groupOf(extra)));
}
