/**
 * The calendar of a schedule: which instants its cron pattern has, by its time zone and within its life. croner knows
 * the patterns.
 */
import { Cron } from "croner";
import { type Instant, instant } from "../../core/base/index.ts";
import type { Schedule } from "../../core/model/index.ts";
import { isoTime } from "../../std/index.ts";
import { badInput, type DroverError } from "../writer/drover-error.ts";
import { type ReadSchedule, readSchedule } from "./schedule-body.ts";

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
