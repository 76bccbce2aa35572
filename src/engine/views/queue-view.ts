/**
 * The queue as people look at it: projects in the order of their turn, their agents, and who is next at each.
 *
 * Bounded everywhere: so many projects, so many agents of each, so many tasks of each agent.
 */
import type { Instant } from "../../core/base/index.ts";
import { front, items } from "../../core/collections/index.ts";
import type { Agent, Project, State } from "../../core/model/index.ts";
import { compareRanks, fixedOf, shownLevel, shownScore, taskRank } from "../../core/turn/index.ts";
import type { AgentQueue, ProjectQueue, QueuedTask, QueueView } from "../../protocol/index.ts";

const PROJECTS_MAX = 100;
const AGENTS_MAX = 100;
const TASKS_MAX = 5;

export function queueView(state: State, now: Instant): QueueView {
  const runnable = [...items(state.turn)];
  const others = [...state.projects.values()].filter((project) => project.queued === 0 && isBusy(project));
  return {
    paused: state.paused,
    waiting: state.waiting,
    queued: state.queued,
    inFlight: state.inFlight,
    maxInFlight: state.config.scheduler.maxInFlight,
    projects: [...runnable, ...others].slice(0, PROJECTS_MAX).map((project) => projectQueue(state, project, now)),
  };
}

/** What waits for its turn, of a project or an agent: a parked task waits for none. */
export const queuedOf = ({ backlog, parked }: Pick<Project, "backlog" | "parked">): number => backlog - parked;
const isBusy = (one: Project | Agent): boolean => queuedOf(one) > 0 || one.inFlight > 0;

function projectQueue(state: State, project: Project, now: Instant): ProjectQueue {
  const turn = [...items(project.turn)];
  const others = [...project.agents.values()].filter(
    (agent) => (agent.queued === 0 || agent.load.isFull) && isBusy(agent),
  );
  return {
    project: project.id,
    status: project.status,
    level: shownLevel(state, project, now),
    queued: queuedOf(project),
    inFlight: project.inFlight,
    agents: [...turn, ...others].slice(0, AGENTS_MAX).map((agent) => agentQueue(state, agent, now)),
  };
}

function agentQueue(state: State, agent: Agent, now: Instant): AgentQueue {
  const { id, inFlight } = agent;
  return { agentId: id, queued: queuedOf(agent), inFlight, next: nextOf(state, agent, now) };
}

function nextOf(state: State, agent: Agent, now: Instant): QueuedTask[] {
  // The tasks of a group keep their order for ever, so the first of all are among the first of each.
  const tasks = agent.groups.flatMap((group) => front(group.tasks, TASKS_MAX));
  const ranked = tasks.map((task) => ({ task, rank: taskRank(state, task, now) }));
  ranked.sort((left, right) => compareRanks(left.rank, right.rank));
  return ranked.slice(0, TASKS_MAX).map(({ task }) => ({
    taskId: task.id,
    type: task.requirements.type,
    priority: task.priority,
    score: shownScore(fixedOf(state, task), now - task.runnableAt, state.config.scheduler.priority),
    waitMs: Math.max(0, now - task.runnableAt),
  }));
}
