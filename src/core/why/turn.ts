/**
 * Whose turn it is, read slowly.
 *
 * The pump answers "who is next?" as fast as it can; here the same rules are read once more, for one task
 * and with names, so that `why` can say who goes first and by which numbers. The law in
 * test/laws/why.test.ts holds the two readings together: a task passes every condition exactly if the pump
 * starts it next. Nothing here walks over tasks: agents and projects in the order of their turn, and the
 * heads of an agent's groups.
 */

import { first, items } from "../collections/sorted-list.ts";
import type { ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { isAffordable, reserveFor } from "../turn/budget.ts";
import { expectedTokens } from "../turn/expected-tokens.ts";
import { type Deficit, deficitOrder } from "../turn/fairness.ts";
import { ANY_PRIORITY, bestOf, mayStart, nextInLine, pickIn } from "../turn/next-in-line.ts";
import { compareRanks, EXPRESS_PRIORITY, type TaskRank } from "../turn/priority.ts";
import { taskRank } from "../turn/queue.ts";
import { compareAgents, compareProjects } from "../turn/total-orders.ts";

/** A task that waits, when it is asked why, and how it stands. */
export type Question = {
  readonly state: ReadonlyState;
  readonly task: ReadonlyTask;
  readonly now: number;
  readonly standing: Standing;
};

/** How one task stands in the three lines it waits in: among projects, among agents, in its agent's queue. */
type Standing = {
  readonly rank: TaskRank;
  /** It goes before it is anybody's turn. */
  readonly express: boolean;
  /** Who goes first in the express lane, if the task itself does not go there. */
  readonly expressFirst: ReadonlyTask | null;
  readonly projectFirst: ReadonlyTask | null;
  readonly agentFirst: ReadonlyTask | null;
  readonly queueFirst: ReadonlyTask | null;
  /** The task next in line in its project: budgets are judged on that one. */
  readonly nextInLine: ReadonlyTask | null;
};

/** A task as it would stand if it became runnable now; one that is runnable already stands as it is. */
export const asRunnable = (task: ReadonlyTask, now: number): ReadonlyTask =>
  task.runnableAt < 0 ? { ...task, runnableAt: now } : task;

export function standingOf(state: ReadonlyState, task: ReadonlyTask, now: number): Standing {
  const rank = taskRank(state, asRunnable(task, now), now);
  const isLaneOpen = state.express < state.config.scheduler.critical.maxInFlight;
  const express = isLaneOpen && state.expressProjects.has(task.project) && rank.priority <= EXPRESS_PRIORITY;
  const priorityMax = express ? EXPRESS_PRIORITY : ANY_PRIORITY;
  const next = nextInLine(state, task.project, now, priorityMax, false);
  const passes = next !== null && next !== task && passesBy(state, task, next, now);
  const asked = { state, task, rank, now };
  return {
    rank,
    express,
    expressFirst: express || !isLaneOpen ? null : firstExpress(state, now, null),
    projectFirst: express ? firstExpress(state, now, task.project) : projectBefore(state, task.project, now),
    agentFirst: agentBefore(asked, { priorityMax, onlyFree: passes }),
    queueFirst: queueBefore(asked, { priorityMax, onlyFree: passes }),
    nextInLine: passes ? nextInLine(state, task.project, now, priorityMax, true) : next,
  };
}

/** Whether a task expects no tokens and the one next in line waits for a budget: then only its like go before it. */
const passesBy = (state: ReadonlyState, task: ReadonlyTask, next: ReadonlyTask, now: number): boolean =>
  expectedTokens(task) === 0 && !isAffordable(state, next.project, reserveFor(state, next), now);

type Asked = Pick<Question, "state" | "task" | "now"> & { readonly rank: TaskRank };
type Line = { readonly priorityMax: number; readonly onlyFree: boolean };

/** The first start the express lane would give, or, with `before`, that of a project ahead of that one. */
function firstExpress(state: ReadonlyState, now: number, before: ReadonlyProject | null): ReadonlyTask | null {
  for (const project of items(state.turn)) {
    if (before !== null && compareProjects(project, before) >= 0) return null;
    const pick = state.expressProjects.has(project) ? pickIn(state, project, now, EXPRESS_PRIORITY) : null;
    if (pick !== null) return pick.task;
  }
  return null;
}

/** The start of a project whose turn comes before this one's, if there is any. */
function projectBefore(state: ReadonlyState, mine: ReadonlyProject, now: number): ReadonlyTask | null {
  for (const project of projectsBefore(state, mine, now)) {
    const pick = pickIn(state, project, now, ANY_PRIORITY);
    if (pick !== null) return pick.task;
  }
  return null;
}

function projectsBefore(state: ReadonlyState, mine: ReadonlyProject, now: number): ReadonlyProject[] {
  const before: ReadonlyProject[] = [];
  if (state.config.scheduler.fairness.rule === "deficit") {
    for (const { project } of deficitsWith(state, mine, now)) {
      if (project === mine) break;
      before.push(project);
    }
    return before;
  }
  for (const project of items(state.turn)) {
    if (compareProjects(project, mine) >= 0) break;
    before.push(project);
  }
  return before;
}

/** The order of the deficit rule among all that could start something, and this project. */
export function deficitsWith(state: ReadonlyState, mine: ReadonlyProject, now: number): Deficit[] {
  const eligible = [...items(state.turn)].filter((project) => project === mine || mayStart(state, project, now));
  return deficitOrder(eligible.includes(mine) ? eligible : [...eligible, mine], now);
}

/** The task of another agent that goes before this agent's, if there is any. */
function agentBefore({ state, task, rank, now }: Asked, line: Line): ReadonlyTask | null {
  const { fairness } = state.config.scheduler;
  for (const agent of items(task.project.turn)) {
    if (fairness.agents === "fair" && compareAgents(agent, task.agent) >= 0) return null;
    if (agent === task.agent) continue;
    const other = bestOf(state, agent, now, line.priorityMax, line.onlyFree);
    if (other === null) continue;
    if (fairness.agents === "fair" || compareRanks(taskRank(state, other, now), rank) < 0) return other;
  }
  return null;
}

/** The task of the same agent that goes before this one: one that can start, or the head of its own group. */
function queueBefore({ state, task, rank, now }: Asked, line: Line): ReadonlyTask | null {
  const best = bestOf(state, task.agent, now, line.priorityMax, line.onlyFree);
  if (best === task) return null;
  if (best !== null && compareRanks(taskRank(state, best, now), rank) < 0) return best;
  const head = task.group === null ? undefined : first(task.group.tasks);
  return head === undefined || head === task ? null : head;
}
