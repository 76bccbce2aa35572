/**
 * The callbacks of tasks that have ended.
 *
 * A task may carry an address to be called at its end. The core knows only its host, by which callbacks take turns: the
 * tasks that want it, and the ends whose callback is due, each by the number of the event that ended it. An end
 * leaves that list by an event of its own, so a delivery that was under way when a process died is taken up by
 * the next. A callback never changes the task, and says how the task had ended then, also when it has
 * run again since, or its record has gone.
 */
import type { Instant, Seq } from "../base/brand.ts";
import { ok } from "../base/result.ts";
import { type CommandOf, type Decided, REPEATED } from "../model/commands.ts";
import type { End, EndedExtra } from "../model/extra.ts";
import type { ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import type { EndedTask, EndPhase, State, Task } from "../model/state.ts";

export function noteEnd({ callbacks }: State, task: Task, phase: EndPhase, end: number): void {
  const host = callbacks.wanted.size === 0 ? undefined : callbacks.wanted.get(task.id);
  if (host === undefined) return;
  callbacks.due.set(end as Seq, { task: task.id, end: end as Seq, phase, ended: endedOf(task), host });
}

/** Somebody is asked about it. */
export function noteParked({ callbacks, seq }: State, task: Task): void {
  const host = callbacks.wanted.size === 0 ? undefined : callbacks.wanted.get(task.id);
  if (host === undefined) return;
  const end = seq as Seq;
  callbacks.due.set(end, { task: task.id, end, phase: "parked", ended: null, host });
}

/** Of a task that has ended. */
export function endedOf(task: ReadonlyTask): EndedTask {
  const { id, seq, createdAt, depth, priority, iteration, ownFailures, attempts } = task;
  const { runnableAt, startedAt, deadline, lastWorker, phase, end, project, agent, requirements } = task;
  const counts = { depth, priority, iteration, ownFailures, attempts };
  const times = { createdAt, runnableAt, startedAt, deadline };
  const owner = { project: { id: project.id }, agent: { id: agent.id } };
  const how = { phase: phase as EndPhase, end: end as End, requirements: { onLoss: requirements.onLoss } };
  return { id, seq, ...counts, ...times, lastWorker, ...how, ...owner, extra: endedExtra(task.extra) };
}

/** As it is now: a task that runs again has further rounds. */
function endedExtra(extra: ReadonlyTask["extra"]): EndedExtra | null {
  if (extra === null) return null;
  const { usage, attempts, loop, files, approval, group } = extra;
  return {
    usage,
    attempts: attempts === null ? null : [...attempts],
    loop: loop === null ? null : { max: loop.max, rounds: loop.rounds.map((round) => ({ ...round })) },
    files,
    approval: approval === null ? null : { ...approval },
    group: group === null ? null : { group: { id: group.group.id } },
  };
}

export function decideCallback(state: ReadonlyState, command: CommandOf<"settle-callback">, now: Instant): Decided {
  const { end, outcome } = command;
  const due = state.callbacks.due.get(end);
  if (due === undefined) return REPEATED;
  return ok({ events: [{ kind: "callback-settled", at: now, task: due.task, end, ...outcome }] });
}
