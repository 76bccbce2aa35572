/**
 * Recurring tasks: a cron pattern in a time zone, and the task that each of its instants makes. Here they are put, read
 * and removed; schedule-runner.ts runs them.
 */
import type { AgentId, ProjectId } from "../../core/base/index.ts";
import type { Schedule } from "../../core/model/index.ts";
import type { SchedulePage, ScheduleView } from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";
import type { ArtifactSource } from "../tasks/artifacts.ts";
import { withInstantsAsText } from "../tasks/task-view.ts";
import { canonical } from "../writer/canonical-json.ts";
import { accepted, refused } from "../writer/drover-error.ts";
import type { StorageGuard } from "../writer/storage-guard.ts";
import { neverDue, nextOf, readSchedule, type ScheduleInput, scheduleId } from "./schedule-body.ts";
import { createScheduleRoom, factsOf, type ScheduleFilter, schedulePart } from "./schedule-list.ts";
import { createScheduleRunner, eventBytes, type ScheduleRunnerDeps } from "./schedule-runner.ts";

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
export type ScheduleService = Schedules & { begin(): void; stop(): void };

type Deps = ScheduleRunnerDeps & {
  readonly artifacts: Pick<ArtifactSource, "check">;
  readonly storage: Pick<StorageGuard, "room" | "book">;
};

export function createSchedules(deps: Deps): ScheduleService {
  const { writer } = deps;
  const { schedules } = writer.state;
  const room = createScheduleRoom(schedules);
  const runner = createScheduleRunner(deps);

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
    if (!isSame) room.changed(size - (known === undefined ? 0 : factsOf(known).bytes));
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

  async function read<Value>(view: () => Value): Promise<Value> {
    const value = view();
    await writer.settled();
    return value;
  }

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
      room.changed(-factsOf(schedule).bytes);
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
    ...(lastTask === null ? {} : { lastTaskId: lastTask }),
  };
}
