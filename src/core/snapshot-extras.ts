/**
 * The lines of a snapshot that stand for themselves: what else Drover keeps beside tasks and workers.
 *
 * Nothing follows from these facts and they follow from nothing, so each line is put back as it is.
 */
import type { Instant, ScheduleId, Seq, TaskId } from "./brand.ts";
import * as format from "./snapshot-format.ts";
import type { EndPhase, State } from "./state.ts";

export function loadCallback({ callbacks }: State, [, task, end, phase]: format.CallbackRow): void {
  if (end === undefined) {
    callbacks.wanted.add(task as TaskId);
    return;
  }
  const due = { task: task as TaskId, end: end as Seq, phase: format.PHASES[phase as number] as EndPhase };
  callbacks.due.set(due.end, due);
}

export function loadSchedule({ schedules }: State, [, name, body, nextAt, lastAt, lastTask]: format.ScheduleRow): void {
  const id = name as ScheduleId;
  const times = { nextAt: nextAt as Instant | null, lastAt: lastAt as Instant | null };
  schedules.set(id, { id, body, ...times, lastTask: lastTask as TaskId | null });
}
