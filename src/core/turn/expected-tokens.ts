/**
 * What a task is expected to use, before anybody knows.
 *
 * The larger of its own estimate and the running mean of what tasks of its project and type have used. A task with
 * neither expects nothing, as far as anybody can tell: plain commands never use any tokens. An estimate of 0 is a word
 * too: such a task expects nothing, whatever its kind has used. Queued tasks with an estimate of some tokens, of none
 * and without any lie in groups of their own (queue.ts), so that one look at a group says whether all of its tasks
 * expect none.
 */
import type { ReadonlyGroup, ReadonlyProject, ReadonlyTask } from "../model/read-only.ts";
import type { Mean, Project } from "../model/state.ts";

const MEAN_SAMPLES_MAX = 50;
const MEANS_MAX = 256;

/** Stands for an estimate of 0 wherever a 0 says that none was given. */
const NONE = -1;

/** The estimate as events and tasks have it. */
export const estimateFrom = (given: number | null): number => (given === 0 ? NONE : (given ?? 0));

/** Which groups an estimate divides: of some tokens (1), not given (0), of none (-1). */
export const signOfEstimate = (estimate: number): number => (estimate > 0 ? 1 : estimate);

/** Whether it has no estimate, and what its kind uses is unknown. */
export const isUnknown = ({ estimate, project, requirements }: ReadonlyTask): boolean =>
  estimate === 0 && !project.means.has(requirements.type);

const meanOf = (project: ReadonlyProject, type: string): number => Math.round(project.means.get(type)?.tokens ?? 0);

export const expectedTokens = (task: ReadonlyTask): number =>
  task.estimate < 0 ? 0 : Math.max(task.estimate, meanOf(task.project, task.requirements.type));

/** Whether the tasks of this group expect no tokens: one that waits for a budget does not hold them up. */
export const expectsNone = ({ estimateSign, agent, shape }: ReadonlyGroup): boolean =>
  estimateSign < 0 || (estimateSign === 0 && meanOf(agent.project, shape.type.type) === 0);

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
