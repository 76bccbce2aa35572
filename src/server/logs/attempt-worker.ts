/**
 * Which worker ran an attempt.
 *
 * Of its last attempt a task itself knows; of the others, and of a task that is a tombstone, only the log does. So
 * between the event that submitted it and the last one about it the log is read until the attempt is found: one such
 * look at a time, in turns by caller, not further than so many events, and not longer than its caller waits.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { LogFailure } from "../../engine/index.ts";
import { ServerRefusal } from "../../http/index.ts";

const EVENTS_MAX = 200_000;

/** Before `since` this attempt has written nothing. */
export type RanBy = { readonly attempt: number; readonly worker: string; readonly since: number };
export type AttemptWorkers = {
  /** Of a task that is in memory: the number of its last attempt, 0 before the first, and when it was submitted. */
  known(task: string): { readonly last: number; readonly since: number } | undefined;
  /** Without a number, of the last attempt. Null if there was none, or the log does not know any more. */
  find(task: string, attempt: number | undefined, asked: Asked): Promise<RanBy | null>;
};
/** A look at the log begins in its turn, and ends when its caller has hung up. */
type Asked = { readonly signal: AbortSignal; readonly inTurn: InTurn };
type InTurn = (look: () => Promise<RanBy | null>) => Promise<RanBy | null>;

export function createAttemptWorkers(
  drover: Pick<Drover, "state" | "events">,
  eventsMax: number = EVENTS_MAX,
): AttemptWorkers {
  const { state } = drover;

  async function look(
    { task, attempt, signal }: { task: string; attempt: number | undefined; signal: AbortSignal },
    from: number,
    to: number,
  ): Promise<RanBy | null> {
    let found: RanBy | null = null;
    for await (const { seq, at, payload } of drover.events({ after: from })) {
      signal.throwIfAborted();
      if (seq > to) break;
      if (seq - from > eventsMax) {
        const text = `which worker ran that attempt of task ${task} is more than ${eventsMax} events back in the log`;
        throw new ServerRefusal("not_found", `${text}; look for its log on the workers' machines`);
      }
      if (payload.kind !== "task-assigned" || payload.task !== task) continue;
      if (attempt === undefined || payload.attempt === attempt)
        found = { attempt: payload.attempt, worker: payload.worker, since: at };
      if (found !== null && attempt !== undefined) break;
    }
    return found;
  }

  async function find(id: string, attempt: number | undefined, { signal, inTurn }: Asked): Promise<RanBy | null> {
    const task = state.tasks.get(id as TaskId);
    if (task !== undefined && (attempt ?? task.attempts) === task.attempts)
      return task.lastWorker === null
        ? null
        : { attempt: task.attempts, worker: task.lastWorker, since: task.createdAt };
    const stone = state.tombstones.get(id as TaskId);
    const [from, to] = task === undefined ? [stone?.seq, stone?.endSeq] : [task.seq, task.lastSeq];
    if (from === undefined || to === undefined || (task !== undefined && (attempt ?? 0) > task.attempts)) return null;
    try {
      return await inTurn(() => look({ task: id, attempt, signal }, from, to));
    } catch (error) {
      if (error instanceof LogFailure && error.code === "pruned") return null;
      throw error;
    }
  }

  function known(id: string): ReturnType<AttemptWorkers["known"]> {
    const task = state.tasks.get(id as TaskId);
    return task === undefined ? undefined : { last: task.attempts, since: task.createdAt };
  }

  return { known, find };
}
