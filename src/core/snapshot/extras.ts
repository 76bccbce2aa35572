/**
 * The lines of a snapshot that stand for themselves: what else Drover keeps beside tasks and workers.
 *
 * Nothing follows from these facts and they follow from nothing, so each line is put back as it is.
 */
import type { AgentId, Instant, ProjectId, ScheduleId, Seq, TaskId, WorkerId } from "../base/brand.ts";
import { endedOf } from "../lifecycle/callbacks.ts";
import type { End, EndedTask, EndPhase, State } from "../model/state.ts";
import * as format from "./format.ts";

/** Tasks are there already. */
export function loadCallback({ callbacks, tasks }: State, row: format.CallbackRow): void {
  const [, task, end = null, phase, ended = null, host = ""] = row;
  if (end === null) {
    callbacks.wanted.set(task as TaskId, host);
    return;
  }
  const due = { task: task as TaskId, end: end as Seq, phase: format.PHASES[phase as number] as EndPhase };
  const known = tasks.get(due.task);
  const seen = known !== undefined && known.end?.seq === end ? endedOf(known) : null;
  callbacks.due.set(due.end, { ...due, ended: ended === null ? seen : endedFrom(due, ended), host });
}

function endedFrom({ task: id, phase }: { task: TaskId; phase: EndPhase }, row: format.EndedRow): EndedTask {
  const [seq, project, agent, created, depth, priority, iteration, ownFailures, attempts] = row;
  const [, , , , , , , , , runnableAt, startedAt, deadline, worker, onLoss, end] = row;
  const counts = { depth, priority, iteration, ownFailures, attempts };
  const times = { createdAt: created as Instant, runnableAt, startedAt, deadline };
  const owner = { project: { id: project as ProjectId }, agent: { id: agent as AgentId } };
  const lastWorker = worker as WorkerId | null;
  return { id, seq, ...counts, ...times, lastWorker, phase, end: endOf(end), requirements: { onLoss }, ...owner };
}

export const endOf = ([at, seq, error, resultHash, resultSize, resultSeq]: format.EndRow): End => ({
  at: at as Instant,
  seq,
  error,
  resultHash,
  resultSize,
  resultSeq,
});

export function loadSchedule({ schedules }: State, [, name, body, nextAt, lastAt, lastTask]: format.ScheduleRow): void {
  const id = name as ScheduleId;
  const times = { nextAt: nextAt as Instant | null, lastAt: lastAt as Instant | null };
  schedules.set(id, { id, body, ...times, lastTask: lastTask as TaskId | null });
}
