/**
 * Attempts that their worker gives back, since it never began them.
 *
 * They are queued again at once and at no cost. So nothing would slow down a worker that takes the same task again and
 * again and gives it back each time: each round is two events of the log. A task that was given back so often in this
 * life of the engine rests as one that its worker requeues, longer each time, and in the end fails by that.
 */
import type { Attempt, Task, Worker } from "../../core/model/index.ts";
import type { AttemptRef } from "../../protocol/index.ts";
import { remember } from "../../std/index.ts";
import { accepted } from "../base/drover-error.ts";
import { reportOf } from "../tasks/handler-outcome.ts";
import type { Writer } from "../writer/writer.ts";

const RETURNS_MAX = 10;
/** Of so many tasks it is known how often they were given back. */
const TASKS_MAX = 10_000;
const WHY = `given back un-begun ${RETURNS_MAX} times`;

export type Unbegun = {
  /** Of these the worker says so; those that it does not hold are passed over. */
  take(worker: Worker, named: readonly AttemptRef[]): void;
};

export function createUnbegun(writer: Writer): Unbegun {
  /** How often it was given back, by the number of the task. */
  const returns = new Map<number, number>();

  function giveBack({ task, number }: Attempt): void {
    const times = (returns.get(task.seq) ?? 0) + 1;
    if (times < RETURNS_MAX) {
      remember(returns, task.seq, times, TASKS_MAX);
      accepted(writer.execute({ type: "return-attempt", task: task.id, attempt: number }));
      return;
    }
    returns.delete(task.seq);
    const report = reportOf({ task: task.id, attempt: number, tokens: null }, "requeue", WHY);
    accepted(writer.execute({ type: "finish-attempt", report }));
  }

  return {
    take(worker, named) {
      for (const one of named) {
        const attempt = writer.state.tasks.get(one.taskId as Task["id"])?.attempt ?? null;
        if (attempt !== null && isNamedBy(one, attempt) && attempt.worker === worker) giveBack(attempt);
      }
    },
  };
}

/** Whether it is this attempt, and not one of an earlier task of the same id. */
export const isNamedBy = ({ attempt, taskSeq }: AttemptRef, { number, task }: Attempt): boolean =>
  attempt === number && (taskSeq === undefined || taskSeq === task.seq);
