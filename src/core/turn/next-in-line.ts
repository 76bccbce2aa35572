/**
 * The task next in line in a project, and whether it may start.
 *
 * The agent whose turn it is gives its best task (or, without the agents' level, the project its best); a task
 * that has a hold comes in by its rank once its worker has room. The budget is then asked for that very task:
 * no task of its project overtakes it, but the next one that expects no tokens passes it. The pump starts what this
 * says, `why` explains it, and the alarm is set by it, so the three can never disagree.
 */
import { anyOutside, hasBit } from "../collections/bit-set.ts";
import { beginningOf, first } from "../collections/sorted-list.ts";
import { heldPlacement } from "../fleet/placement.ts";
import type { ReadonlyAgent, ReadonlyGroup, ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { isAffordable, reserveFor } from "./budget.ts";
import { expectsNone } from "./expected-tokens.ts";
import { compareRanks } from "./priority.ts";
import { bestGroup, taskRank } from "./queue.ts";

export const ANY_PRIORITY: number = Number.POSITIVE_INFINITY;

export type Pick = { readonly task: ReadonlyTask; readonly reserve: number };

/** Whether a project could start something, as far as is known without choosing a task. */
export function mayStart(state: ReadonlyState, project: ReadonlyProject, now: number): boolean {
  const { shapes } = state;
  return (
    project.status === "active" &&
    project.inFlight < project.settings.maxConcurrent &&
    (anyOutside(project.shapes, shapes.shutOtherwise, shapes.shutByWorkers) || readyHold(state, project) !== null) &&
    (isAffordable(state, project, 1, now) || hasFree(state, project, now))
  );
}

/** Whether some task that could start expects no tokens, so that it need not wait for a budget that is used up. */
const hasFree = (state: ReadonlyState, project: ReadonlyProject, now: number): boolean =>
  project.mayExpectNone > 0 && nextInLine(state, project, now, ANY_PRIORITY, true) !== null;

/** What a project starts if it is its turn: the task next in line, if the budgets allow it, or one that passes it. */
export function pickIn(state: ReadonlyState, project: ReadonlyProject, now: number, priorityMax: number): Pick | null {
  if (!mayStart(state, project, now)) return null;
  const first = nextInLine(state, project, now, priorityMax, false);
  if (first === null) return null;
  const pick = ifAffordable(state, first, now);
  if (pick !== null || project.mayExpectNone === 0) return pick;
  const free = nextInLine(state, project, now, priorityMax, true);
  return free === null ? null : ifAffordable(state, free, now);
}

function ifAffordable(state: ReadonlyState, task: ReadonlyTask, now: number): Pick | null {
  const reserve = reserveFor(state, task);
  return isAffordable(state, task.project, reserve, now) ? { task, reserve } : null;
}

/** The task a project gives first of those that can start (or that expect no tokens), before any budget is asked. */
export function nextInLine(
  state: ReadonlyState,
  project: ReadonlyProject,
  now: number,
  priorityMax: number,
  onlyFree: boolean,
): ReadonlyTask | null {
  const { fairness } = state.config.scheduler;
  let best: ReadonlyTask | null = null;
  const { turn } = project;
  for (let index = 0; index < turn.chunks.length; index++) {
    const chunk = turn.chunks[index] as ReadonlyAgent[];
    for (let offset = beginningOf(turn, index); offset < chunk.length; offset++) {
      const agent = chunk[offset] as ReadonlyAgent;
      const task = bestOf(state, agent, now, priorityMax, onlyFree);
      if (task === null) continue;
      if (fairness.agents === "fair") return task;
      if (best === null || compareRanks(taskRank(state, task, now), taskRank(state, best, now)) < 0) best = task;
    }
  }
  return best;
}

/** The best task of an agent among those that can start. */
export function bestOf(
  state: ReadonlyState,
  agent: ReadonlyAgent,
  now: number,
  priorityMax: number,
  onlyFree: boolean,
): ReadonlyTask | null {
  const group = bestGroup(state, agent, now, { priorityMax, ignoreWorkers: false, onlyFree });
  const task = group === null ? null : (first(group.tasks) ?? null);
  const held = readyHold(state, agent.project);
  if (held === null || held.agent !== agent || held === task) return task;
  if (onlyFree && !expectsNone(held.group as ReadonlyGroup)) return task;
  const rank = taskRank(state, held, now);
  if (rank.priority > priorityMax) return task;
  return task === null || compareRanks(rank, taskRank(state, task, now)) < 0 ? held : task;
}

/** The project's held task, if its worker has room by now and nothing else is in the way. */
function readyHold(state: ReadonlyState, project: ReadonlyProject): ReadonlyTask | null {
  const task = project.hold?.task;
  if (task === undefined || task.group === null || hasBit(state.shapes.shutOtherwise, task.group.shape.id)) return null;
  return heldPlacement(state, task) === null ? null : task;
}
