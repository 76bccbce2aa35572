/**
 * What a task is expected to use, before anybody knows.
 *
 * The larger of its own estimate and the running mean of what tasks of its project and type have used. A task with
 * neither expects nothing, as far as anybody can tell: plain commands never use any tokens. Queued tasks with an
 * estimate and those without lie in groups of their own (queue.ts), so that one look at a group says whether all of
 * its tasks expect none.
 */
import type { Group, Mean, Project, Task } from "./state.ts";

const MEAN_SAMPLES_MAX = 50;
const MEANS_MAX = 256;

export const hasMean = (task: Task): boolean => task.project.means.has(task.ask.type);

const meanOf = (project: Project, type: string): number => Math.round(project.means.get(type)?.tokens ?? 0);

export const expectedTokens = (task: Task): number => Math.max(task.estimate, meanOf(task.project, task.ask.type));

/** Whether the tasks of this group expect no tokens: one that waits for a budget does not hold them up. */
export const expectsNone = ({ isEstimated, agent, shape }: Group): boolean =>
  !isEstimated && meanOf(agent.project, shape.type.type) === 0;

export function learnMean(project: Project, type: string, tokens: number): void {
  const known: Mean = project.means.get(type) ?? { count: 0, tokens: 0 };
  known.count = Math.min(MEAN_SAMPLES_MAX, known.count + 1);
  known.tokens += (tokens - known.tokens) / known.count;
  project.means.delete(type);
  project.means.set(type, known);
  if (project.means.size > MEANS_MAX) {
    const [oldest] = project.means.keys();
    if (oldest !== undefined) project.means.delete(oldest);
  }
}
