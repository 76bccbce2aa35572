/**
 * What was fetched ahead and is given back: it was not begun soon, or its worker takes no more.
 *
 * The handlers are kept from it first: what they have begun by then stays, even if their event loop stands still. The
 * rest is named no more, and the next syncs say that it goes back, until one was answered. A server that does not know
 * of this is told that it is requeued.
 */
import type { AttemptRef } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";
import { giveBackAt, longAt, rest, stopFetching, wantedAhead } from "./ahead.ts";
import { catchUp, drop, finish, type Held, heldSince, type PullSession } from "./held.ts";

/** How many it may hold beyond its slots. One that is to run fewer than it has slots needs nothing ahead. */
export const aheadOf = ({ ahead, limit, slots }: PullSession): number => (limit < slots ? 0 : wantedAhead(ahead));

/** Something here is short no more: nothing is fetched behind it. */
export function endAhead(state: PullSession, now: number): void {
  if (now >= endAheadAt(state)) stopFetching(state.ahead);
}

/** When that is. */
export const endAheadAt = (state: PullSession): number =>
  state.ahead.count === 0 ? Number.POSITIVE_INFINITY : longAt(heldSince(state));

/** Those that the handlers are to forget, if they have not begun them. Nothing more is fetched ahead then. */
export function takeBack(state: PullSession, now: number): readonly AttemptRef[] {
  if (now < takeBackAt(state)) return [];
  catchUp(state);
  const late = [...beyondSlots(state)];
  if (late.length > 0) stopFetching(state.ahead);
  if (late.length > 0 && !isAtOnce(state)) rest(state.ahead, now);
  // Of one that awaits being named the handlers have never heard.
  const [unheard, handed] = [
    late.filter(({ awaits }) => awaits !== null),
    late.filter(({ awaits }) => awaits === null),
  ];
  for (const one of late) one.isAskedBack = true;
  for (const one of unheard) giveBack(state, one);
  const places = handed.map(({ place }) => place ?? 0);
  const begunTo = handed.length === 0 ? 0 : state.revoke(Math.min(...places) - 1, state.handedOver);
  for (const one of handed) if ((one.place ?? 0) > begunTo) giveBack(state, one);
  return handed.map(refOf);
}

/** When something is to be taken back. */
export function takeBackAt(state: PullSession): number {
  // A worker that closes has told its handlers already.
  if (state.isClosing || !state.isGivingBack) return Number.POSITIVE_INFINITY;
  // Those that came first are the first to be begun.
  for (const { cameAt } of beyondSlots(state)) return isAtOnce(state) ? Number.NEGATIVE_INFINITY : giveBackAt(cameAt);
  return Number.POSITIVE_INFINITY;
}

/** It takes no more, or runs fewer than it could. */
const isAtOnce = ({ isDraining, limit, slots }: PullSession): boolean => isDraining || limit < slots;

/** It was never begun, and the server is to hear that. */
export function giveBack(state: PullSession, one: Held): void {
  one.awaits = null;
  drop(state, one);
  state.unbegun = [...state.unbegun, one];
}

/** Whether it was given back: an answer to a sync from before that still lists it. */
export const goesBack = ({ unbegun }: PullSession, { taskId, attempt, taskSeq }: AttemptRef): boolean =>
  unbegun.some((one) => one.taskId === taskId && one.attempt === attempt && one.taskSeq === taskSeq);

/** An answer says that the server knows of these. */
export function settleUnbegun(state: PullSession, known: readonly Held[]): void {
  if (known.length > 0) state.unbegun = state.unbegun.filter((one) => !known.includes(one));
}

/** The server was replaced by one that does not know of this: what is ahead stays until it is begun. */
export function stopGivingBack(state: PullSession): void {
  stopFetching(state.ahead);
  state.ahead.most = 0;
  state.isGivingBack = false;
  for (const one of state.unbegun) finish(state, one, { outcome: "requeue", error: "its worker had no slot for it" });
  state.unbegun = [];
}

/** Fetched ahead, with no slot for it yet, in the order in which they came. */
function* beyondSlots({ slots, limit, held: { handed, running } }: PullSession): Generator<Held> {
  const most = Math.min(slots, limit);
  if (handed.size + running.size <= most) return;
  let room = most - running.size;
  for (const one of handed.values())
    if (room-- <= 0 && one.isAhead && !one.goesOn && one.isOurs && one.stop === null && !one.isAskedBack) yield one;
}

const refOf = ({ taskId, attempt, taskSeq }: Held): AttemptRef => ({ taskId, attempt, ...present({ taskSeq }) });
