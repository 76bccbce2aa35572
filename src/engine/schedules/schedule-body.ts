/**
 * A schedule as people write it, read: a pattern, a time zone and the task of each instant; and its calendar: which
 * instants the pattern has, by the time zone and within the schedule's life. croner knows the patterns.
 */
import { Cron } from "croner";
import type { Fields, Instant, Reader, Refusal, ScheduleId } from "../../core/base/index.ts";
import { badField, errorText, fail, instant, isRecord, name, ok, orNull, readSection } from "../../core/base/index.ts";
import type { Schedule } from "../../core/model/index.ts";
import type { ScheduleBody } from "../../protocol/index.ts";
import { readShape, type Schema } from "../../protocol/schema/index.ts";
import { SCHEDULE_ID_MAX, scheduleFields } from "../../protocol/shapes/index.ts";
import { isoTime } from "../../std/index.ts";
import { canonical } from "../base/canonical-json.ts";
import { accepted, badInput, DroverError } from "../base/drover-error.ts";
import { instantField, readTaskBody, type TaskInput } from "../tasks/task-body.ts";

const BODY_CHARACTERS_MAX = 64 * 1024;

/** As on the wire; an instant may be whole milliseconds. */
export type ScheduleInput = Omit<ScheduleBody, "task" | "startAt" | "endAt"> & {
  /** Submitted at every instant. */
  readonly task: Omit<TaskInput, "id" | "deadline">;
  /** Before this instant it submits nothing. */
  readonly startAt?: string | number | null;
  /** After this instant it submits nothing. */
  readonly endAt?: string | number | null;
};
export type ReadSchedule = {
  readonly cron: string;
  readonly timeZone: string;
  readonly task: Omit<TaskInput, "id">;
  readonly overlap: "skip" | "queue" | "cancel";
  readonly catchUp: number;
  readonly paused: boolean;
  readonly startAt: number | null;
  readonly endAt: number | null;
};

const cron: Reader<string> = (value, field) => {
  const expected = "a cron pattern such as */15 * * * * (minute hour day month weekday), or @hourly, @daily, @weekly";
  if (typeof value !== "string" || value.length > 256) return fail(badField(field, value, expected));
  // croner would take an instant too; that is what `notBefore` of a task is for.
  if (!/^(@\w+|\S+(\s+\S+){4,6})$/.test(value.trim())) return fail(badField(field, value, expected));
  try {
    new Cron(value, { paused: true });
    return ok(value);
  } catch (error) {
    return fail(badField(field, value, `${expected}; ${errorText(error).replace(/^\w+: /, "")}`));
  }
};

const timeZone: Reader<string> = (value, field) => {
  const expected = "the name of a time zone, such as Europe/Berlin or UTC";
  if (typeof value !== "string") return fail(badField(field, value, expected));
  try {
    new Intl.DateTimeFormat("en", { timeZone: value });
    return ok(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return fail(badField(field, value, expected));
  }
};

/** The task is judged as if it were submitted, so that a schedule never fails for what could have been said at once. */
const task: Reader<Omit<TaskInput, "id">> = (value, field) => {
  if (!isRecord(value)) return fail(badField(field, value, "an object: the task of each instant"));
  if (value.id !== undefined)
    return fail(badField(`${field}.id`, value.id, "absent: each instant has an id of its own"));
  if (value.deadline !== undefined)
    return fail(badField(`${field}.deadline`, value.deadline, "absent: it would pass; use timeoutMs"));
  try {
    readTaskBody(value);
    return ok(value as Omit<TaskInput, "id">);
  } catch (error) {
    if (!(error instanceof DroverError) || error.refusal === null) throw error;
    return fail(within(field, error.refusal));
  }
};

const within = (field: string, refusal: Refusal): Refusal =>
  refusal.type === "bad-field" || refusal.type === "unknown-field"
    ? { ...refusal, field: `${field}.${refusal.field}` }
    : refusal;

const by =
  <Value>(schema: Schema<Value>): Reader<Value> =>
  (value, field) =>
    readShape(schema, value, field);
const FIELDS: Fields<ReadSchedule> = {
  cron,
  timeZone,
  task,
  overlap: by(scheduleFields.overlap),
  catchUp: by(scheduleFields.catchUp),
  paused: by(scheduleFields.paused),
  startAt: orNull(instantField),
  endAt: orNull(instantField),
};
const BASE = { timeZone: "UTC", overlap: "skip", catchUp: 1, paused: false, startAt: null, endAt: null } as const;

export function readSchedule(body: unknown): ReadSchedule {
  const schedule = accepted(readSection<ReadSchedule>(FIELDS, BASE as unknown as ReadSchedule, body, ""));
  if (schedule.cron === undefined) throw badInput("cron", undefined, "a cron pattern such as */15 * * * *");
  if (schedule.task === undefined) throw badInput("task", undefined, "the task of each instant, as an object");
  if (schedule.startAt !== null && schedule.endAt !== null && schedule.endAt < schedule.startAt)
    throw badInput("endAt", schedule.endAt, "not before startAt");
  const size = canonical(body, "").length;
  if (size > BODY_CHARACTERS_MAX)
    throw badInput("(body)", `${size} characters`, `at most ${BODY_CHARACTERS_MAX}; put more into an artifact`);
  return schedule;
}

export const scheduleId = (id: unknown): ScheduleId => accepted(name(SCHEDULE_ID_MAX)(id, "schedule")) as ScheduleId;

/** An instant that is so late was missed: no engine ran then. */
const LATE_MS = 60_000;

/** To read a body, and a pattern, costs more than all else about an instant; a schedule put anew is a new one. */
const bodies = new WeakMap<Schedule, ReadSchedule>();
const patterns = new WeakMap<ReadSchedule, Cron>();

export function bodyOf(schedule: Schedule): ReadSchedule {
  const body = bodies.get(schedule) ?? readSchedule(JSON.parse(schedule.body));
  bodies.set(schedule, body);
  return body;
}

function cronOf(body: ReadSchedule): Cron {
  const { cron, timeZone } = body;
  const pattern = patterns.get(body) ?? new Cron(cron, { timezone: timeZone, paused: true });
  patterns.set(body, pattern);
  return pattern;
}

/** The first instant after the given one, within the schedule's life. */
export function nextOf(body: ReadSchedule, after: number): Instant | null {
  if (body.paused) return null;
  const from = body.startAt === null ? after : Math.max(after, body.startAt - 1);
  const next = cronOf(body).nextRun(new Date(from));
  if (next === null || (body.endAt !== null && next.getTime() > body.endAt)) return null;
  return instant(next.getTime());
}

/** A schedule that would never run is a mistake, and says so at once. */
export function neverDue(body: ReadSchedule, after: number): DroverError {
  if (cronOf(body).nextRun(new Date(after)) === null) return badInput("cron", body.cron, "a pattern that comes round");
  return badInput("endAt", isoTime(body.endAt ?? 0), "after the first instant of the pattern");
}

/** The instants to run: those from the first that is due on, but of what was missed only the last few. */
export function dueInstants(body: ReadSchedule, first: Instant, now: Instant): Instant[] {
  // The one that is due now is not missed: it is only late by what a timer is late.
  const most = Math.max(1, body.catchUp);
  const isMissed = now - first >= LATE_MS;
  if (isMissed && body.catchUp === 0) return [];
  if ((nextOf(body, first) ?? Number.POSITIVE_INFINITY) > now) return [first];
  const last = Math.min(now, body.endAt ?? now);
  const found = cronOf(body).previousRuns(most, new Date(last + 1000));
  const instants = found.map((date) => instant(date.getTime())).filter((at) => at >= first && at <= last);
  return instants.length === 0 ? [first] : instants.sort((left, right) => left - right).slice(-most);
}
