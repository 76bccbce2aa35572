/**
 * When a task's turn comes among its agent's tasks.
 *
 * Effective priority first (lower is sooner; waiting lowers it, one step of 100 per starvationAfter, down to
 * the project's maxPriority), then overdue tasks oldest first, then the score, then who has been
 * runnable longest, then who came first. The score is the seed's: a base by type, a point a minute up
 * to a cap, a boost by depth, a penalty by failed iterations. The order uses the exact age and the
 * shown score whole minutes, so that two tasks a second apart are in order and the number stays readable.
 *
 * Two tasks of one agent with the same priority and the same fixed part of the score never change
 * places: the older one is ahead while both age, when both are at the cap, and when both are overdue.
 * So a group of such tasks is a plain queue, and choosing compares only the heads of the groups.
 */
import { entryOf, type PriorityRules } from "../config/config.ts";

export const MINUTE_MS = 60_000;
export const PRIORITY_STEP = 100;
export const EXPRESS_PRIORITY = -200;

/** When a task that became runnable then is overdue: the one place that says so. */
export const overdueAt = (runnableAt: number, { starvationAfter }: PriorityRules): number =>
  runnableAt + starvationAfter;
export const isOverdue = (runnableAt: number, now: number, rules: PriorityRules): boolean =>
  now >= overdueAt(runnableAt, rules);

export const baseScore = (type: string, { base }: PriorityRules): number => entryOf(base, type) ?? base.other ?? 100;

/** The part of the score that time does not change. */
export function fixedScore(
  task: { readonly type: string; readonly depth: number; readonly iteration: number },
  rules: PriorityRules,
): number {
  const failed = Math.max(0, task.iteration - 1);
  return (
    baseScore(task.type, rules) + task.depth * rules.depthBoost - Math.min(rules.retryMax, failed * rules.retryPenalty)
  );
}

/** The score as shown: whole minutes of age. */
export function shownScore(fixed: number, waitedMs: number, rules: PriorityRules): number {
  const minutes = Math.max(0, waitedMs) / MINUTE_MS;
  return fixed + Math.min(rules.ageMax, Math.floor(minutes * rules.agePerMinute));
}

/** The score as ordered, times 60 000: the exact age. */
export function exactScore(fixed: number, waitedMs: number, rules: PriorityRules): number {
  return fixed * MINUTE_MS + Math.min(rules.ageMax * MINUTE_MS, Math.max(0, waitedMs) * rules.agePerMinute);
}

export function effectivePriority(
  priority: number,
  waitedMs: number,
  maxPriority: number,
  starvationAfter: number,
): number {
  const steps = Math.floor(Math.max(0, waitedMs) / starvationAfter);
  return Math.max(maxPriority, priority - PRIORITY_STEP * steps);
}

/** What decides between two tasks of one agent. */
export type TaskRank = {
  readonly priority: number;
  readonly overdue: boolean;
  readonly score: number;
  readonly runnableAt: number;
  readonly seq: number;
};

export function rankOf(
  task: { readonly priority: number; readonly fixed: number; readonly runnableAt: number; readonly seq: number },
  now: number,
  maxPriority: number,
  rules: PriorityRules,
): TaskRank {
  const waited = Math.max(0, now - task.runnableAt);
  return {
    priority: effectivePriority(task.priority, waited, maxPriority, rules.starvationAfter),
    overdue: isOverdue(task.runnableAt, now, rules),
    score: exactScore(task.fixed, waited, rules),
    runnableAt: task.runnableAt,
    seq: task.seq,
  };
}

/** Negative when the first goes first. Never zero for two different tasks. */
export function compareRanks(left: TaskRank, right: TaskRank): number {
  if (left.priority !== right.priority) return left.priority - right.priority;
  if (left.overdue !== right.overdue) return left.overdue ? -1 : 1;
  if (!left.overdue && left.score !== right.score) return right.score - left.score;
  return left.runnableAt - right.runnableAt || left.seq - right.seq;
}
