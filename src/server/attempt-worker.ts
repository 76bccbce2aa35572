/**
 * Which worker ran an attempt.
 *
 * Of its last attempt a task itself knows; of the others, and of a task that is a tombstone, only the log does. So
 * between the event that submitted it and the last one about it the log is read until the attempt is found: one such
 * look at a time, and not further than so many events.
 */
import type { TaskId } from "../core/brand.ts";
import type { Drover } from "../engine/drover.ts";
import { LogFailure } from "../engine/index.ts";
import { ServerRefusal } from "./problem.ts";

export const EVENTS_MAX = 200_000;

export type RanBy = { readonly attempt: number; readonly worker: string };
export type AttemptWorkers = {
  /** The number of its last attempt, 0 before the first; undefined of a task that is not in memory. */
  lastOf(task: string): number | undefined;
  /** Without a number, of the last attempt. Null if there was none, or the log does not know any more. */
  find(task: string, attempt: number | undefined): Promise<RanBy | null>;
};

export function createAttemptWorkers(
  drover: Pick<Drover, "state" | "events">,
  eventsMax: number = EVENTS_MAX,
): AttemptWorkers {
  const { state } = drover;
  let isLooking = false;

  async function look(task: string, attempt: number | undefined, from: number, to: number): Promise<RanBy | null> {
    let found: RanBy | null = null;
    for await (const { seq, payload } of drover.events({ after: from })) {
      if (seq > to) break;
      if (seq - from > eventsMax) {
        const text = `which worker ran that attempt of task ${task} is more than ${eventsMax} events back in the log`;
        throw new ServerRefusal("not_found", `${text}; look for its log on the workers' machines`);
      }
      if (payload.kind !== "task-assigned" || payload.task !== task) continue;
      if (attempt === undefined || payload.attempt === attempt)
        found = { attempt: payload.attempt, worker: payload.worker };
      if (found !== null && attempt !== undefined) break;
    }
    return found;
  }

  async function find(id: string, attempt: number | undefined): Promise<RanBy | null> {
    const task = state.tasks.get(id as TaskId);
    if (task !== undefined && (attempt ?? task.attempts) === task.attempts)
      return task.lastWorker === null ? null : { attempt: task.attempts, worker: task.lastWorker };
    const stone = state.tombstones.get(id as TaskId);
    const [from, to] = task === undefined ? [stone?.seq, stone?.endSeq] : [task.seq, task.lastSeq];
    if (from === undefined || to === undefined || (task !== undefined && (attempt ?? 0) > task.attempts)) return null;
    if (isLooking)
      throw new ServerRefusal("overloaded", "another look for the worker of an attempt is under way; try again");
    isLooking = true;
    try {
      return await look(id, attempt, from, to);
    } catch (error) {
      if (error instanceof LogFailure && error.code === "pruned") return null;
      throw error;
    } finally {
      isLooking = false;
    }
  }

  return {
    lastOf: (id) => state.tasks.get(id as TaskId)?.attempts,
    find,
  };
}
