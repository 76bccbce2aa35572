/**
 * A schedule as people write it, read: a pattern, a time zone and the task of each instant.
 */

import { Cron } from "croner";
import {
  badField,
  type Fields,
  fail,
  isRecord,
  name,
  ok,
  orNull,
  type Reader,
  type Refusal,
  readSection,
  type ScheduleId,
} from "../../core/base/index.ts";

import type { ScheduleBody } from "../../protocol/index.ts";
import { readShape, type Schema } from "../../protocol/schema/index.ts";
import { SCHEDULE_ID_MAX, scheduleFields } from "../../protocol/shapes/index.ts";
import { instantField, readTaskBody, type TaskInput } from "../tasks/task-body.ts";
import { canonical } from "../writer/canonical-json.ts";
import { accepted, badInput, DroverError } from "../writer/drover-error.ts";

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

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const cron: Reader<string> = (value, field) => {
  const expected = "a cron pattern such as */15 * * * * (minute hour day month weekday), or @hourly, @daily, @weekly";
  if (typeof value !== "string" || value.length > 256) return fail(badField(field, value, expected));
  // croner would take an instant too; that is what `notBefore` of a task is for.
  if (!/^(@\w+|\S+(\s+\S+){4,6})$/.test(value.trim())) return fail(badField(field, value, expected));
  try {
    new Cron(value, { paused: true });
    return ok(value);
  } catch (error) {
    return fail(badField(field, value, `${expected}; ${reason(error).replace(/^\w+: /, "")}`));
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
