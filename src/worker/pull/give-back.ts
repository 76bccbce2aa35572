/**
 * What was fetched ahead and is given back: it was not begun soon, or its worker takes no more.
 *
 * The handlers are asked, since only they know what they have begun. What they have not is named no more, and the next
 * syncs say that it goes back, until one was answered.
 */
import type { AttemptRef } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";
import { giveBackAt, stopFetching } from "./ahead.ts";
import { catchUp, drop, type Held, type PullSession } from "./held.ts";

/** How many it may hold beyond its slots. One that is to run fewer than it has slots needs nothing ahead. */
export const aheadOf = ({ ahead, limit, slots }: PullSession): number => (limit < slots ? 0 : ahead.count);

/** Those that the handlers are to be asked for. Nothing more is fetched ahead then. */
export function takeBack(state: PullSession, now: number): readonly AttemptRef[] {
  if (state.isClosing || now < takeBackAt(state)) return [];
  catchUp(state);
  const late = [...beyondSlots(state)];
  if (late.length > 0) stopFetching(state.ahead);
  for (const one of late) {
    one.isAskedBack = true;
    // The handlers have never heard of it.
    if (one.awaits !== null) giveBack(state, one);
  }
  return late.filter(({ awaits }) => awaits === null).map(refOf);
}

/** When something is to be taken back. */
export function takeBackAt(state: PullSession): number {
  // Those that came first are the first to be begun.
  for (const { cameAt } of beyondSlots(state)) return state.isDraining ? Number.NEGATIVE_INFINITY : giveBackAt(cameAt);
  return Number.POSITIVE_INFINITY;
}

/** It was never begun, and the server is to hear that. */
export function giveBack(state: PullSession, one: Held): void {
  drop(state, one);
  state.unbegun = [...state.unbegun, refOf(one)];
}

/** Whether it was given back: an answer to a sync from before that still lists it. */
export const goesBack = ({ unbegun }: PullSession, { taskId, attempt, taskSeq }: AttemptRef): boolean =>
  unbegun.some((one) => one.taskId === taskId && one.attempt === attempt && one.taskSeq === taskSeq);

/** An answer says that the server knows of these. */
export function settleUnbegun(state: PullSession, known: readonly AttemptRef[]): void {
  if (known.length > 0) state.unbegun = state.unbegun.filter((one) => !known.includes(one));
}

/** Fetched ahead, with no slot for it yet, in the order in which they came. */
function* beyondSlots({ slots, held: { handed, running } }: PullSession): Generator<Held> {
  if (handed.size + running.size <= slots) return;
  let room = slots - running.size;
  for (const one of handed.values())
    if (room-- <= 0 && one.isAhead && one.isOurs && one.stop === null && !one.isAskedBack) yield one;
}

const refOf = ({ taskId, attempt, taskSeq }: Held): AttemptRef => ({ taskId, attempt, ...present({ taskSeq }) });
