/**
 * Recurring tasks: what is kept of a schedule, and how far it has come.
 *
 * Calendars and time zones are no business of the core: the engine says when the next instant is, and the core
 * keeps it. The body is text to the core. A schedule moves on only by an event that names the instant it has
 * dealt with, and the task of an instant has an id made of both, so an instant is never run twice and never
 * lost, whenever a process dies in between.
 */
import type { Instant } from "../base/brand.ts";
import { fail, ok, unreachable } from "../base/result.ts";
import { type CommandOf, type Decided, REPEATED } from "../model/commands.ts";
import type { EventOf } from "../model/events.ts";
import type { ReadonlyState } from "../model/read-only.ts";
import type { Schedule, State } from "../model/state.ts";

export const SCHEDULES_MAX = 10_000;

type ScheduleCommand = CommandOf<"put-schedule" | "move-schedule" | "remove-schedule">;

export function decideSchedule(state: ReadonlyState, command: ScheduleCommand, now: Instant): Decided {
  const { schedule: id } = command;
  const known = state.schedules.get(id);
  if (command.type === "put-schedule") {
    const { body, nextAt } = command;
    if (known === undefined && state.schedules.size >= SCHEDULES_MAX)
      return fail({ type: "too-many", what: "schedules", max: SCHEDULES_MAX });
    if (known !== undefined && known.body === body && known.nextAt === nextAt) return REPEATED;
    return ok({ events: [{ kind: "schedule-put", at: now, schedule: id, body, nextAt }] });
  }
  if (known === undefined) return fail({ type: "schedule-unknown", schedule: id });
  if (command.type === "remove-schedule") return ok({ events: [{ kind: "schedule-removed", at: now, schedule: id }] });
  const { lastAt, lastTask, nextAt } = command;
  return ok({ events: [{ kind: "schedule-moved", at: now, schedule: id, lastAt, lastTask, nextAt }] });
}

type ScheduleEvent = EventOf<"schedule-put" | "schedule-moved" | "schedule-removed">;

export function evolveSchedule({ schedules }: State, event: ScheduleEvent): void {
  const known = schedules.get(event.schedule);
  switch (event.kind) {
    case "schedule-put": {
      const { schedule: id, body, nextAt } = event;
      schedules.set(id, { id, body, nextAt, lastAt: known?.lastAt ?? null, lastTask: known?.lastTask ?? null });
      return;
    }
    case "schedule-moved": {
      const { lastAt, nextAt } = event;
      // An instant that was passed over has no task; the last that had one is still the last.
      const lastTask = event.lastTask ?? known?.lastTask ?? null;
      Object.assign(known as Schedule, { lastAt, nextAt, lastTask });
      return;
    }
    case "schedule-removed":
      schedules.delete(event.schedule);
      return;
    default:
      return unreachable(event);
  }
}
