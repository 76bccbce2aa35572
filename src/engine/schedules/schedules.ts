/**
 * Recurring tasks: a cron pattern in a time zone, and the task that each of its instants makes. Here they are put, read
 * and removed; and at each instant that is due the runner submits the task, and moves the schedule on.
 *
 * Exact over restarts: an instant's task has an id made of the schedule and the instant, and the schedule moves on by
 * an event of its own after it was submitted. A crash in between repeats the submit, which is known again by its id.
 * What was missed while no engine ran is made up for as far as `catchUp` says, the latest instants first. Where the
 * former task still lives, `overlap` decides: the instant is passed over, queued all the same, or the former task is
 * cancelled.
 */
import type { AgentId, Instant, ProjectId, ScheduleId, TaskId } from "../../core/base/index.ts";
import { hasEnded, type Schedule } from "../../core/model/index.ts";
import type { SchedulePage, ScheduleView } from "../../protocol/index.ts";
import { type Clock, isoTime, present } from "../../std/index.ts";
import { canonical } from "../base/canonical-json.ts";
import { accepted, DroverError, isStop, refused } from "../base/drover-error.ts";
import type { ArtifactSource } from "../tasks/artifacts.ts";
import { ScheduledBody } from "../tasks/task-body.ts";
import { withInstantsAsText } from "../tasks/task-view.ts";
import { CHANGE_BYTES, type StorageGuard } from "../writer/storage-guard.ts";
import { onceDurable, type Writer } from "../writer/writer.ts";
import type { ReadSchedule, ScheduleInput } from "./schedule-body.ts";
import { bodyOf, dueInstants, neverDue, nextOf, readSchedule, scheduleId } from "./schedule-body.ts";
import { createScheduleRoom, type ScheduleFilter, scheduleFactsOf, schedulePart } from "./schedule-list.ts";

/** Recurring tasks. */
export type Schedules = {
  /** Makes a schedule or changes it; the same body again changes nothing. */
  put(id: string, body: ScheduleInput): Promise<ScheduleView>;
  /** One recurring task, and when it is next due. */
  get(id: string): Promise<ScheduleView>;
  /** A page of them, by their ids. */
  list(filter?: ScheduleFilter): Promise<SchedulePage>;
  /** Removes a recurring task; what it has submitted stays. */
  remove(id: string): Promise<void>;
};
type ScheduleService = Schedules & { begin(): void; stop(): void };

type Deps = {
  readonly writer: Writer;
  readonly clock: Clock;
  /** Submits now; durable later. */
  readonly submit: (body: unknown) => unknown;
  readonly artifacts: Pick<ArtifactSource, "check">;
  readonly storage: Pick<StorageGuard, "room" | "book">;
  readonly onWarning: (message: string) => void;
};

export function createSchedules(deps: Deps): ScheduleService {
  const { writer } = deps;
  const { schedules } = writer.state;
  const room = createScheduleRoom(schedules);
  const runner = createRunner(deps);

  async function put(given: string, body: ScheduleInput): Promise<ScheduleView> {
    const id = scheduleId(given);
    const schedule = readSchedule(body);
    const { inputArtifact } = schedule.task;
    if (inputArtifact !== undefined) deps.artifacts.check(inputArtifact, "task.inputArtifact");
    const text = canonical(body, "");
    const known = schedules.get(id);
    const from = Math.max(writer.now(), known?.lastAt ?? 0);
    const isSame = known?.body === text;
    const nextAt = isSame ? known.nextAt : nextOf(schedule, from);
    if (nextAt === null && !isSame && !schedule.paused) throw neverDue(schedule, from);
    const { agentId, project = "default" } = schedule.task;
    const keeper = { project: project as ProjectId, agent: agentId as AgentId };
    const size = Buffer.byteLength(text);
    const bytes = isSame ? 0 : size + eventBytes(id);
    const full = isSame
      ? null
      : (room.refusalFor(id, { bytes: size, project, agentId }) ?? deps.storage.room(keeper, bytes, writer.now()));
    if (full !== null) throw refused(full);
    accepted(writer.execute({ type: "put-schedule", schedule: id, body: text, nextAt }));
    if (!isSame) room.changed(size - (known === undefined ? 0 : scheduleFactsOf(known).bytes));
    deps.storage.book(keeper, bytes, writer.now());
    runner.watch();
    return read(() => viewOf(find(id)));
  }

  function find(given: string): Schedule {
    const id = scheduleId(given);
    const schedule = schedules.get(id);
    if (schedule === undefined) throw refused({ type: "schedule-unknown", schedule: id });
    return schedule;
  }

  const read = <Value>(view: () => Value): Promise<Value> => onceDurable(writer, view);

  return {
    put,
    get: (id) => read(() => viewOf(find(id))),
    list: (filter = {}) =>
      read(() => {
        const { found, ...more } = schedulePart(schedules.values(), filter);
        return { schedules: found.map(viewOf), count: found.length, ...more };
      }),
    async remove(id) {
      const schedule = find(id);
      await writer.run({ type: "remove-schedule", schedule: schedule.id });
      room.changed(-scheduleFactsOf(schedule).bytes);
      runner.book(schedule, eventBytes(schedule.id));
      runner.watch();
    },
    begin: runner.watch,
    stop: runner.stop,
  };
}

function viewOf({ id, body, nextAt, lastAt, lastTask }: Schedule): ScheduleView {
  const { task, ...given } = JSON.parse(body) as ScheduleInput;
  return {
    ...withInstantsAsText(given, "startAt", "endAt"),
    task: withInstantsAsText(task, "notBefore"),
    id,
    ...(nextAt === null ? {} : { nextAt: isoTime(nextAt) }),
    ...(lastAt === null ? {} : { lastAt: isoTime(lastAt) }),
    ...present({ lastTaskId: lastTask }),
  };
}

/** How soon an instant is tried again whose task found no room. */
const NO_ROOM_MS = 1000;
/** Schedules dealt with in one turn, so that many that are due together never hold up the event loop. */
const AT_ONCE_MAX = 20;

function createRunner(deps: Deps) {
  const { writer, clock } = deps;
  const { schedules, tasks } = writer.state;
  let cancelAlarm: (() => void) | null = null;
  let isStopped = false;
  /** Due, and not dealt with yet in this round; whether anything in it found no room. */
  let round: ScheduleId[] = [];
  let wasFull = false;

  /** Sets the alarm for the schedule that is due next. */
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

  /** Books bytes that a schedule takes, for its owner. */
  function book(schedule: Schedule, bytes: number): void {
    const { project, agentId } = scheduleFactsOf(schedule);
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
const eventBytes = (id: ScheduleId): number => CHANGE_BYTES + Buffer.byteLength(id);

/** Ids sort by time: sch_nightly_20260131T120000Z. */
const taskOf = (schedule: ScheduleId, at: Instant): TaskId =>
  `sch_${schedule}_${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, "")}` as TaskId;
