/**
 * Recurring tasks on the wire. The task of an instant is called `sch_<schedule>_<instant>`, so no instant runs twice.
 */
import type * as wire from "../generated/schedules.ts";
import * as s from "../schema/schema.ts";
import { PAGE_MAX } from "../wire/endpoints.ts";
import { PAGE_DEFAULT } from "./task-calls.ts";
import { taskFields } from "./tasks.ts";

export const SCHEDULE_ID_MAX = 100;

const { id: _, deadline: __, ...scheduleTaskFields } = taskFields;
const scheduleTask: s.Schema<wire.ScheduleTask> = s.namedObject("ScheduleTask", scheduleTaskFields, {
  expected: "the task of each instant: an object with agentId and action",
});

export const scheduleFields: s.Fields<wire.ScheduleBody> = {
  cron: s.described(s.text(1, 256), "Five or six fields, or a nickname such as @daily.", {
    expected: "a cron expression such as 0 9 * * 1-5",
  }),
  timeZone: s.optional(s.text(1, 256), "An IANA time zone; it decides what the hours mean.", { default: "UTC" }),
  task: s.described(scheduleTask, "Submitted at every instant."),
  overlap: s.optional(
    s.oneOf("skip", "queue", "cancel"),
    "While the task of a former instant has not ended: leave this one out, run both, or cancel the former.",
    { default: "skip" },
  ),
  catchUp: s.optional(s.whole(0, 100), "How many missed instants are run after a restart.", { default: 1 }),
  paused: s.optional(s.flag()),
  startAt: s.optional(s.nullable(s.instant())),
  endAt: s.optional(s.nullable(s.instant())),
};
export const scheduleBody: s.Schema<wire.ScheduleBody> = s.namedObject("ScheduleBody", scheduleFields, {
  examples: [{ cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", task: { agentId: "ann", action: "report" } }],
});
export const scheduleView: s.Schema<wire.ScheduleView> = s.namedAnswer("Schedule", {
  ...scheduleFields,
  id: s.name(),
  nextAt: s.optional(s.instant(), "Absent: never again, or paused."),
  lastAt: s.optional(s.instant()),
  lastTaskId: s.optional(s.name()),
});
export const schedulesQuery: s.Schema<wire.SchedulesQuery> = s.object({
  limit: s.optional(s.whole(1, PAGE_MAX), "How many at most; large ones end a page sooner.", { default: PAGE_DEFAULT }),
  cursor: s.optional(s.name(SCHEDULE_ID_MAX), "The nextCursor of the page before.", {
    expected: "the nextCursor of a former page",
  }),
});
export const schedulePage: s.Schema<wire.SchedulePage> = s.namedAnswer("SchedulePage", {
  schedules: s.described(s.list(scheduleView), "By their ids."),
  count: s.described(s.whole(0), "Of this page."),
  nextCursor: s.optional(s.name(SCHEDULE_ID_MAX), "Where to go on. Absent on the last page, and only there."),
});
export const scheduleStatus: s.Schema<wire.ScheduleStatus> = s.answer({ status: s.oneOf("removed"), id: s.name() });
