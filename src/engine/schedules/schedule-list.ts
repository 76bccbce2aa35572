/**
 * The schedules there are: in pages, and whether one more finds room.
 *
 * Pages go by their ids: the cursor is the last id given out, so it stays good however many come and go. A page ends by
 * its bytes as well as by its count, like one of tasks. There may be so many schedules, and so many bytes of their
 * bodies; the last tenth of both is kept for projects and agents that have little of it. As with all that is stored, it
 * is judged here and not in the core: what is refused was never put, so a replay needs no knowledge of it.
 */
import type { Refusal, ScheduleId } from "../../core/base/index.ts";
import { isKeptForOthers, isRecord, keptOf, name, whole } from "../../core/base/index.ts";
import { SCHEDULES_MAX } from "../../core/lifecycle/index.ts";
import type { Schedule } from "../../core/model/index.ts";
import { PAGE_DEFAULT } from "../../protocol/shapes/index.ts";
import { PAGE_MAX } from "../../protocol/wire/index.ts";
import { accepted, badInput, refused } from "../base/drover-error.ts";
import { PAGE_BYTES } from "../tasks/read-tasks.ts";
import type { ScheduleInput } from "./schedule-body.ts";

const BYTES_MAX = 64 * 1024 * 1024;

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

/** What a schedule takes, and whose it is. */
type ScheduleFacts = { readonly bytes: number; readonly project: string; readonly agentId: string };

/** To read a body costs much; a schedule put anew is a new one. */
const known = new WeakMap<Schedule, ScheduleFacts>();
export function scheduleFactsOf(schedule: Schedule): ScheduleFacts {
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

export function schedulePart(
  schedules: Iterable<Schedule>,
  filter: ScheduleFilter,
): { readonly found: readonly Schedule[]; readonly nextCursor?: string } {
  const { size, after, isWanted } = readFilter(filter);
  const rest = [...schedules].filter(({ id }) => id > after).sort((left, right) => (left.id < right.id ? -1 : 1));
  const found: Schedule[] = [];
  let bytes = 0;
  for (const schedule of rest) {
    const facts = scheduleFactsOf(schedule);
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

type ScheduleRoom = {
  /** `facts` are of the schedule as it would be. One that is there already has its place, and its bytes. */
  refusalFor(id: ScheduleId, facts: ScheduleFacts): Refusal | null;
  /** So many bytes came, or went if it is negative. */
  changed(bytes: number): void;
};

/** Whose the schedules are is asked only when nine tenths are taken. */
export function createScheduleRoom(schedules: ReadonlyMap<ScheduleId, Schedule>): ScheduleRoom {
  let held = 0;
  for (const { body } of schedules.values()) held += Buffer.byteLength(body);

  /** What the owner's project or agent has of it beside this schedule, whichever has more. */
  function mostOf(id: ScheduleId, owner: ScheduleFacts, weigh: (facts: ScheduleFacts) => number): number {
    let [ofProject, ofAgent] = [0, 0];
    for (const schedule of schedules.values()) {
      if (schedule.id === id) continue;
      const facts = scheduleFactsOf(schedule);
      if (facts.project === owner.project) ofProject += weigh(facts);
      if (facts.agentId === owner.agentId) ofAgent += weigh(facts);
    }
    return Math.max(ofProject, ofAgent);
  }

  return {
    refusalFor(id, facts) {
      const former = schedules.get(id);
      const had = former === undefined ? 0 : scheduleFactsOf(former).bytes;
      if (former !== undefined && facts.bytes <= had) return null;
      const ofCount = (): number => mostOf(id, facts, () => 1);
      const ofBytes = (): number => mostOf(id, facts, ({ bytes }) => bytes);
      const noPlace = former === undefined ? refusalOf("schedules", SCHEDULES_MAX, schedules.size, 1, ofCount) : null;
      return noPlace ?? refusalOf("bytes of schedules", BYTES_MAX, held - had, facts.bytes, ofBytes);
    },
    changed(bytes) {
      held += bytes;
    },
  };
}

function refusalOf(what: string, max: number, used: number, asked: number, mine: () => number): Refusal | null {
  if (used + asked > max) return { type: "too-many", what, max, used };
  const kept = keptOf(max);
  return used >= max - kept && isKeptForOthers(max, used, mine()) ? { type: "too-many", what, max, kept } : null;
}
