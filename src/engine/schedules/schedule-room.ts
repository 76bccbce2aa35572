/**
 * Whether one more schedule finds room: how many there may be, and how many bytes their bodies may hold together.
 *
 * The last tenth of both is kept for projects and agents that have little of it. As with all that is stored, it is
 * judged here and not in the core: what is refused was never put, so a replay needs no knowledge of it.
 */

import { isKeptForOthers, keptOf, type Refusal, type ScheduleId } from "../../core/base/index.ts";
import type { Schedule } from "../../core/model/index.ts";
import { SCHEDULES_MAX } from "../../core/task/index.ts";
import { factsOf, type ScheduleFacts } from "./schedule-list.ts";

const BYTES_MAX = 64 * 1024 * 1024;

export type ScheduleRoom = {
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
      const facts = factsOf(schedule);
      if (facts.project === owner.project) ofProject += weigh(facts);
      if (facts.agentId === owner.agentId) ofAgent += weigh(facts);
    }
    return Math.max(ofProject, ofAgent);
  }

  return {
    refusalFor(id, facts) {
      const former = schedules.get(id);
      const had = former === undefined ? 0 : factsOf(former).bytes;
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
