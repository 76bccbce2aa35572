/**
 * Queued tasks that need a person: those that no worker here could ever run, and those that wait too long.
 *
 * Tasks that are alike stand in one line (a group), so the first of each line speaks for it; a task is never looked at
 * by itself, and the number of lines is bounded by agents and shapes.
 */
import { front } from "../../core/collections/index.ts";
import type { Agent, State } from "../../core/model/index.ts";
import { fitsNowhere, isOverdue } from "../../core/turn/index.ts";
import { STUCK_MAX, type StuckTask } from "../../protocol/index.ts";

/** `isSeen` says whose tasks the caller sees. */
export function stuckTasks(
  state: State,
  now: number,
  isSeen: (project: string, agentId: string) => boolean,
): readonly StuckTask[] {
  const found: StuckTask[] = [];
  for (const project of state.projects.values()) {
    if (project.queued === 0) continue;
    for (const agent of project.agents.values()) {
      if (agent.queued === 0 || !isSeen(project.id, agent.id)) continue;
      for (const group of agent.groups) {
        const why = reasonOf(state, group, now);
        const [head] = why === null ? [] : front(group.tasks, 1);
        if (why === null || head === undefined) continue;
        const waitMs = Math.max(0, now - group.headAt);
        found.push({ taskId: head.id, project: project.id, agentId: agent.id, why, waitMs, count: group.tasks.size });
      }
    }
  }
  return found.sort((left, right) => right.waitMs - left.waitMs).slice(0, STUCK_MAX);
}

function reasonOf(state: State, group: Agent["groups"][number], now: number): StuckTask["why"] | null {
  if (fitsNowhere(state, group)) return "never-fits";
  return isOverdue(group.headAt, now, state.config.scheduler.priority) ? "overdue" : null;
}
