/**
 * The one way anything starts.
 *
 *     fleet ─► express ─► project ─► agent ─► task ─► worker
 *
 * `pump` decides one step: what the clock has brought about, then tasks whose last child has ended and dependents of
 * what has ended, then calls of attempts that are over, a permit, one start, a hold. The host applies it and asks again
 * until nothing is left (in slices, so that no turn lasts long). A start is charged and reserved in its own event
 * before the next is chosen, so one round never gives everything to one project or to one worker.
 *
 * No step walks over tasks: projects and agents stand in the order of their turn, shapes say what can
 * start at all, and within an agent only the heads of its groups are compared.
 */

import type { Instant, Pin } from "./base/brand.ts";
import { invariant } from "./base/result.ts";
import { beginningOf, front, items } from "./collections/sorted-list.ts";
import { place } from "./fleet/placement.ts";
import { due } from "./lifecycle/deadlines.ts";
import { nextNotified, nextReady } from "./lifecycle/dependency.ts";
import { nextClosed } from "./lifecycle/growth.ts";
import { nextPermit, strayPermits } from "./lifecycle/permits.ts";
import { nextPlanPause } from "./lifecycle/plans.ts";
import type { Event, Rank } from "./model/events.ts";
import type { ReadonlyProject, ReadonlyState } from "./model/read-only.ts";
import { chargeFor, deficitOrder, shownLevel } from "./turn/fairness.ts";
import { idleHold, nextHold } from "./turn/hold.ts";
import { ANY_PRIORITY, mayStart, type Pick, pickIn } from "./turn/next-in-line.ts";
import { EXPRESS_PRIORITY, effectivePriority, isOverdue, shownScore } from "./turn/priority.ts";

const PINS_RELEASED_AT_ONCE_MAX = 256;
const NONE: readonly Event[] = [];

/** The events of the next small step that is due, or none. */
export function pump(state: ReadonlyState, now: Instant): readonly Event[] {
  const events = due(state, now);
  if (events.length > 0) return events;
  const paused = state.failedPlans.size === 0 ? null : nextPlanPause(state, now);
  if (paused !== null) return [paused];
  const closed = nextClosed(state, now);
  if (closed.length > 0) return closed;
  const notified = nextNotified(state, now);
  if (notified.length > 0) return notified;
  const ready = nextReady(state, now);
  if (ready.length > 0) return ready;
  const stray = strayPins(state, now);
  if (stray.length > 0) return stray;
  const strays = strayPermits(state, now);
  if (strays.length > 0) return strays;
  // Permits before starts: a call that may go out never waits for a burst of starts.
  const permit = nextPermit(state, now);
  if (permit !== null) return [permit];
  const start = nextStart(state, now);
  if (start !== null) return [start];
  const idle = idleHold(state, now);
  if (idle !== null) return [{ kind: "hold-released", at: now, task: idle.task.id, worker: idle.worker.id }];
  const hold = nextHold(state, now);
  return hold === null ? [] : [{ kind: "hold-placed", at: now, task: hold.task.id, worker: hold.worker.id }];
}

/** Tasks that wait for a worker that has left, or for a zone without workers, wait no longer. */
function strayPins(state: ReadonlyState, now: Instant): readonly Event[] {
  if (state.strayPins.size === 0) return NONE;
  const [pin] = [...state.strayPins].sort();
  const pinned = state.pins.get(pin as Pin);
  const tasks = pinned === undefined ? [] : front(pinned, PINS_RELEASED_AT_ONCE_MAX);
  return tasks.map((task) => ({ kind: "pin-released", at: now, task: task.id }));
}

/** The next start, or null when nothing more can be admitted. */
function nextStart(state: ReadonlyState, now: Instant): Event | null {
  const { scheduler } = state.config;
  if (state.paused || state.inFlight >= scheduler.maxInFlight) return null;
  const express = nextExpress(state, now);
  if (express !== null) return express;
  if (scheduler.fairness.rule === "deficit") return nextByDeficit(state, now);
  const { turn } = state;
  for (let index = 0; index < turn.chunks.length; index++) {
    const chunk = turn.chunks[index] as ReadonlyProject[];
    for (let offset = beginningOf(turn, index); offset < chunk.length; offset++) {
      const project = chunk[offset] as ReadonlyProject;
      const pick = pickIn(state, project, now, ANY_PRIORITY);
      if (pick !== null) return startEvent(state, pick, shownLevel(state, project, now), false, now);
    }
  }
  return null;
}

/** Critical tasks of projects that are allowed the lane, before it is anybody's turn. */
function nextExpress(state: ReadonlyState, now: Instant): Event | null {
  if (state.expressProjects.size === 0 || state.express >= state.config.scheduler.critical.maxInFlight) return null;
  for (const project of items(state.turn)) {
    if (!state.expressProjects.has(project)) continue;
    const pick = pickIn(state, project, now, EXPRESS_PRIORITY);
    if (pick !== null) return startEvent(state, pick, shownLevel(state, project, now), true, now);
  }
  return null;
}

function nextByDeficit(state: ReadonlyState, now: Instant): Event | null {
  const eligible = [...items(state.turn)].filter((project) => mayStart(state, project, now));
  for (const { project, excess } of deficitOrder(eligible, now)) {
    const pick = pickIn(state, project, now, ANY_PRIORITY);
    if (pick !== null) return startEvent(state, pick, excess, false, now);
  }
  return null;
}

function startEvent(state: ReadonlyState, pick: Pick, level: number, express: boolean, now: Instant): Event {
  const { task, reserve } = pick;
  const { group } = task;
  invariant(group !== null, "a task that was chosen stands in a queue");
  const { demand } = group.shape;
  const placement = place(state, task, demand);
  invariant(placement !== null, "a task that was chosen has a worker with room");
  // To apply this it is asked for by its id.
  state.tasks.expect(task.id, task);
  const { priority: rules } = state.config.scheduler;
  const waited = Math.max(0, now - task.runnableAt);
  const rank: Rank = {
    express,
    hold: task.project.hold?.task === task && demand.feasible === 0,
    level,
    weight: task.project.settings.weight,
    agentInFlight: task.agent.inFlight,
    priority: effectivePriority(task.priority, waited, task.project.settings.maxPriority, rules.starvationAfter),
    overdue: isOverdue(task.runnableAt, now, rules),
    score: shownScore(group.fixedScore, waited, rules),
  };
  return {
    kind: "task-assigned",
    at: now,
    task: task.id,
    attempt: task.attempts + 1,
    worker: placement.worker.id,
    reason: placement.reason,
    rank,
    charge: chargeFor(state, task),
    reserve,
  };
}
