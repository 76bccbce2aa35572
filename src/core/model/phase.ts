/**
 * Where a task is in its life, and how it has ended.
 */

/** Where a task is that has not ended. */
export type LivePhase = "waiting" | "queued" | "assigned" | "running" | "parked";
/** How a task has ended. */
export type EndPhase = "done" | "failed" | "cancelled" | "skipped";
/** Where a task is in its life. */
export type Phase = LivePhase | EndPhase;
/** How many tasks are in each phase. */
export type PhaseCounts = Record<Phase, number>;

/** Asked several times for every event: to compare a few words takes a fraction of a look into a Set. */
export const isEndPhase = (phase: Phase): phase is EndPhase =>
  phase === "done" || phase === "failed" || phase === "cancelled" || phase === "skipped";
export const hasEnded = (task: { readonly phase: Phase }): boolean => isEndPhase(task.phase);

/** Whether an ended task is kept at hand for longer, so that people see it and may run it again. */
export const endedBadly = (phase: Phase): boolean => phase === "failed" || phase === "skipped";

/** What a task's dependents go by: it is not over, it went well, or it did not. */
export const wentWell = (phase: Phase): boolean => phase === "done";

export const noCounts = (): PhaseCounts => ({
  waiting: 0,
  queued: 0,
  assigned: 0,
  running: 0,
  parked: 0,
  done: 0,
  failed: 0,
  cancelled: 0,
  skipped: 0,
});
