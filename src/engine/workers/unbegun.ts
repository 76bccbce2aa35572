/**
 * Attempts that their worker gives back, since it never began them.
 *
 * They are queued again at once and at no cost. So nothing would slow down workers that take the same task again and
 * again and give it back each time: each round is two events of the log. A task that was given back so often in a row
 * rests each time from then on, longer and longer, as between the attempts of one that fails.
 */
import type { Attempt, Task, Worker } from "../../core/model/index.ts";
import type { AttemptRef } from "../../protocol/index.ts";
import { remember } from "../../std/index.ts";
import { accepted } from "../base/drover-error.ts";
import type { Writer } from "../writer/writer.ts";

const RETURNS_MAX = 10;
/** Of so many tasks it is known how often they were given back. */
const TASKS_MAX = 10_000;
type Returns = { readonly times: number; readonly attempt: number };

export type Unbegun = {
  /** Of these the worker says so; those that it does not hold are passed over. */
  take(worker: Worker, named: readonly AttemptRef[]): void;
};

export function createUnbegun(writer: Writer): Unbegun {
  /** How often in a row, up to which attempt, by the number of the task. */
  const returns = new Map<number, Returns>();

  function giveBack({ task, number }: Attempt): void {
    const before = returns.get(task.seq);
    const times = before?.attempt === number - 1 ? before.times + 1 : 1;
    remember(returns, task.seq, { times, attempt: number }, TASKS_MAX);
    const rests = Math.max(0, times - RETURNS_MAX + 1);
    accepted(writer.execute({ type: "return-attempt", task: task.id, attempt: number, rests }));
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
