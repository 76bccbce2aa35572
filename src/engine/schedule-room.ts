/**
 * Whether one more schedule finds room: how many there may be, and how many bytes their bodies may hold together.
 *
 * The last tenth of both is kept for projects and agents that have little of it. As with all that is stored, it is
 * judged here and not in the core: what is refused was never put, so a replay needs no knowledge of it.
 */
import type { ScheduleId } from "../core/brand.ts";
import type { Refusal } from "../core/refusal.ts";
import { isKeptForOthers, keptOf } from "../core/reserve.ts";
import { SCHEDULES_MAX, type Schedule } from "../core/schedule-order.ts";
import { factsOf, type ScheduleFacts } from "./schedule-list.ts";

const BYTES_MAX = 64 * 1024 * 1024;

type Sum = { count: number; bytes: number };

/** `facts` are of the schedule as it would be. One that is there already has its place, and its bytes. */
export function refusalForSchedule(
  schedules: ReadonlyMap<ScheduleId, Schedule>,
  id: ScheduleId,
  facts: ScheduleFacts,
): Refusal | null {
  const former = schedules.get(id);
  if (former !== undefined && facts.bytes <= factsOf(former).bytes) return null;
  const [all, ofProject, ofAgent] = [none(), none(), none()] as const;
  for (const schedule of schedules.values()) {
    if (schedule === former) continue;
    const other = factsOf(schedule);
    add(all, other);
    if (other.project === facts.project) add(ofProject, other);
    if (other.agentId === facts.agentId) add(ofAgent, other);
  }
  const mostOf = (what: keyof Sum): number => Math.max(ofProject[what], ofAgent[what]);
  const noPlace = former === undefined ? refusalOf("schedules", SCHEDULES_MAX, all.count, mostOf("count"), 1) : null;
  return noPlace ?? refusalOf("bytes of schedules", BYTES_MAX, all.bytes, mostOf("bytes"), facts.bytes);
}

const none = (): Sum => ({ count: 0, bytes: 0 });
function add(sum: Sum, { bytes }: ScheduleFacts): void {
  sum.count++;
  sum.bytes += bytes;
}

function refusalOf(what: string, max: number, used: number, mine: number, asked: number): Refusal | null {
  if (used + asked > max) return { type: "too-many", what, max, used };
  return isKeptForOthers(max, used, mine) ? { type: "too-many", what, max, kept: keptOf(max) } : null;
}
