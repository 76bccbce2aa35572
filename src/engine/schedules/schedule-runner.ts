/**
 * Runs schedules: at each instant that is due it submits the task, and moves the schedule on.
 *
 * Exact over restarts: an instant's task has an id made of the schedule and the instant, and the schedule moves on by
 * an event of its own after it was submitted. A crash in between repeats the submit, which is known again by its id.
 * What was missed while no engine ran is made up for as far as `catchUp` says, the latest instants first. Where the
 * former task still lives, `overlap` decides: the instant is passed over, queued all the same, or the former task is
 * cancelled.
 */
import type { AgentId, Instant, ProjectId, ScheduleId, TaskId } from "../../core/base/index.ts";
import { hasEnded, type Schedule } from "../../core/model/index.ts";
import { type Clock, isoTime } from "../../std/index.ts";
import { ScheduledBody } from "../tasks/task-body.ts";
import { DroverError, isStop } from "../writer/drover-error.ts";
import { CHANGE_BYTES, type StorageGuard } from "../writer/storage-guard.ts";
import type { Writer } from "../writer/writer.ts";
import { bodyOf, dueInstants, nextOf, type ReadSchedule } from "./schedule-body.ts";
import { factsOf } from "./schedule-list.ts";

/** How soon an instant is tried again whose task found no room. */
const NO_ROOM_MS = 1000;
/** Schedules dealt with in one turn, so that many that are due together never hold up the event loop. */
const AT_ONCE_MAX = 20;

export type ScheduleRunnerDeps = {
  readonly writer: Writer;
  readonly clock: Clock;
  /** Submits now; durable later. */
  readonly submit: (body: unknown) => unknown;
  readonly storage: Pick<StorageGuard, "book">;
  readonly onWarning: (message: string) => void;
};
export type ScheduleRunner = {
  /** Sets the alarm for the schedule that is due next. */
  watch(): void;
  /** Books bytes that a schedule takes, for its owner. */
  book(schedule: Schedule, bytes: number): void;
  stop(): void;
};

export function createScheduleRunner(deps: ScheduleRunnerDeps): ScheduleRunner {
  const { writer, clock } = deps;
  const { schedules, tasks } = writer.state;
  let cancelAlarm: (() => void) | null = null;
  let isStopped = false;
  /** Due, and not dealt with yet in this round; whether anything in it found no room. */
  let round: ScheduleId[] = [];
  let wasFull = false;

  function watch(): void {
    cancelAlarm?.();
    cancelAlarm = null;
    let next = Number.POSITIVE_INFINITY;
    for (const { nextAt } of schedules.values()) next = Math.min(next, nextAt ?? next);
    if (!isStopped && next < Number.POSITIVE_INFINITY) setAlarm(writer.alarmFor(next as Instant));
  }

  function setAlarm(at: number): void {
    cancelAlarm = clock.ringAt(at, ring, { keepAlive: true });
  }

  function ring(): void {
    cancelAlarm = null;
    if (isStopped) return;
    try {
      runDue();
    } catch (error) {
      if (!isStop(error)) throw error;
      return;
    }
    if (round.length > 0) setAlarm(clock.elapsed());
    else if (wasFull) setAlarm(clock.elapsed() + NO_ROOM_MS);
    else watch();
  }

  /** The next few of all that are due. One that finds no room waits for the next round, and keeps no other out. */
  function runDue(): void {
    const now = writer.now();
    const isDue = ({ nextAt }: Schedule): boolean => nextAt !== null && nextAt <= now;
    if (round.length === 0) {
      round = Array.from(schedules.values())
        .filter(isDue)
        .map(({ id }) => id);
      wasFull = false;
    }
    for (const id of round.splice(0, AT_ONCE_MAX)) {
      const schedule = schedules.get(id);
      if (schedule !== undefined && isDue(schedule) && !runSchedule(schedule, now)) wasFull = true;
    }
  }

  /** What a schedule comes to is stored for its owner, and never refused. */
  function move(schedule: Schedule, to: { lastAt: Instant; lastTask: TaskId | null; nextAt: Instant | null }): void {
    writer.execute({ type: "move-schedule", schedule: schedule.id, ...to });
    book(schedule, eventBytes(schedule.id) + (to.lastTask?.length ?? 0));
  }

  function book(schedule: Schedule, bytes: number): void {
    const { project, agentId } = factsOf(schedule);
    deps.storage.book({ project: project as ProjectId, agent: agentId as AgentId }, bytes, writer.now());
  }

  /** Whether all of its instants were dealt with. */
  function runSchedule(schedule: Schedule, now: Instant): boolean {
    const body = readable(schedule);
    if (body === null) return true;
    const due = dueInstants(body, schedule.nextAt as Instant, now);
    for (const [index, at] of due.entries()) {
      const next = due[index + 1] ?? nextOf(body, Math.max(now, at));
      const task = runInstant(schedule, body, at);
      if (task === "no-room") return false;
      move(schedule, { lastAt: at, lastTask: task, nextAt: next });
    }
    // Nothing of what was missed is made up for.
    if (due.length === 0) move(schedule, { lastAt: now, lastTask: null, nextAt: nextOf(body, now) });
    return true;
  }

  /** A body that an earlier version took and this one does not stops its schedule, and nothing else. */
  function readable(schedule: Schedule): ReadSchedule | null {
    try {
      return bodyOf(schedule);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      const { id, nextAt } = schedule;
      deps.onWarning(`schedule ${id} stands still, since this version cannot read it: ${error.message}`);
      move(schedule, { lastAt: nextAt as Instant, lastTask: null, nextAt: null });
      return null;
    }
  }

  /** The task of one instant, or null if it was passed over. */
  function runInstant({ id, lastTask }: Schedule, body: ReadSchedule, at: Instant): TaskId | null | "no-room" {
    const former = lastTask === null ? undefined : tasks.get(lastTask);
    const isLive = former !== undefined && !hasEnded(former);
    const task = taskOf(id, at);
    const isOverlap = isLive && former.id !== task;
    if (isOverlap && body.overlap === "skip") return null;
    const answer = deps.submit(new ScheduledBody({ ...body.task, id: task }));
    if (!(answer instanceof DroverError)) {
      // Only now: where there was no room, the former one is all there is.
      if (isOverlap && body.overlap === "cancel")
        writer.execute({ type: "cancel-task", task: former.id, reason: `schedule ${id} has its next turn` });
      return task;
    }
    if (answer.retryable) return "no-room";
    deps.onWarning(`schedule ${id} could not submit the task of ${isoTime(at)}: ${answer.message}`);
    return null;
  }

  return {
    watch,
    book,
    stop() {
      isStopped = true;
      cancelAlarm?.();
    },
  };
}

/** What an event of a schedule takes besides its body. */
export const eventBytes = (id: ScheduleId): number => CHANGE_BYTES + Buffer.byteLength(id);

/** Ids sort by time: sch_nightly_20260131T120000Z. */
const taskOf = (schedule: ScheduleId, at: Instant): TaskId =>
  `sch_${schedule}_${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, "")}` as TaskId;
