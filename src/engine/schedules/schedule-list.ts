/**
 * Schedules in pages, by their ids: the cursor is the last id given out, so it stays good however many come and go. A
 * page ends by its bytes as well as by its count, like one of tasks.
 */

import { isRecord, name, whole } from "../../core/base/index.ts";
import type { Schedule } from "../../core/model/index.ts";
import { PAGE_BYTES, PAGE_DEFAULT, PAGE_MAX } from "../tasks/read-tasks.ts";
import { accepted, badInput, refused } from "../writer/drover-error.ts";
import type { ScheduleInput } from "./schedule-body.ts";

/** Which recurring tasks, and how many of them. */
export type ScheduleFilter = {
  /** Only of this agent. */
  readonly agentId?: string | undefined;
  /** Only of this project, or these. */
  readonly project?: string | readonly string[];
  /** How many at most. */
  readonly limit?: number;
  /** The nextCursor of the page before. */
  readonly cursor?: string;
};
export type SchedulePart = { readonly found: readonly Schedule[]; readonly nextCursor?: string };

/** What a schedule takes, and whose it is. */
export type ScheduleFacts = { readonly bytes: number; readonly project: string; readonly agentId: string };

/** To read a body costs much; a schedule put anew is a new one. */
const known = new WeakMap<Schedule, ScheduleFacts>();
export function factsOf(schedule: Schedule): ScheduleFacts {
  const had = known.get(schedule);
  if (had !== undefined) return had;
  const facts = readFacts(schedule.body);
  known.set(schedule, facts);
  return facts;
}

function readFacts(text: string): ScheduleFacts {
  const { agentId, project = "default" } = (JSON.parse(text) as ScheduleInput).task;
  return { bytes: Buffer.byteLength(text), project, agentId };
}

export function schedulePart(schedules: Iterable<Schedule>, filter: ScheduleFilter): SchedulePart {
  const { size, after, isWanted } = readFilter(filter);
  const rest = [...schedules].filter(({ id }) => id > after).sort((left, right) => (left.id < right.id ? -1 : 1));
  const found: Schedule[] = [];
  let bytes = 0;
  for (const schedule of rest) {
    const facts = factsOf(schedule);
    if (!isWanted(facts)) continue;
    bytes += facts.bytes;
    const last = found.at(-1);
    if (last !== undefined && (found.length >= size || bytes > PAGE_BYTES)) return { found, nextCursor: last.id };
    found.push(schedule);
  }
  return { found };
}

const KNOWN: readonly string[] = ["agentId", "project", "limit", "cursor"];

function readFilter(filter: ScheduleFilter) {
  if (!isRecord(filter)) throw badInput("filter", filter, "an object");
  for (const field of Object.keys(filter))
    if (!KNOWN.includes(field)) throw refused({ type: "unknown-field", field, known: KNOWN });
  const { agentId, project, limit = PAGE_DEFAULT, cursor } = filter;
  const size = accepted(whole(1, PAGE_MAX)(limit, "limit"));
  if (cursor !== undefined && !name()(cursor, "cursor").ok)
    throw badInput("cursor", cursor, "the nextCursor of a former page");
  const projects = project === undefined ? null : [project].flat();
  const isWanted = (facts: ScheduleFacts): boolean =>
    (agentId === undefined || facts.agentId === agentId) && (projects === null || projects.includes(facts.project));
  return { size, after: cursor ?? "", isWanted };
}
