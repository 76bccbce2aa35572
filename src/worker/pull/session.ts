/**
 * What a pull worker holds, what it has said of it and what it has heard: a machine without clock and without wire.
 *
 * Everything is level-triggered. A sync says all that runs and all that has ended and was not answered yet; so a sync
 * that is lost, and an answer that is lost, are mended by the next one. The rules that make this safe:
 *
 * - An answer counts only if none to a later sync was heard before. What it names and is known already (running, or
 *   ended and not answered) is not begun a second time.
 * - A result is repeated until an answer lists it, accepted or not. What the server will not read is in `refusals.ts`.
 * - What was handed to the handlers is named as running if there is a slot for it, or one whose handler was told to
 *   stop: it will be begun in a moment. If it is not within a second, because their event loop stands still, it goes
 *   back: the shared numbers keep the handlers from it, since their loop may go on with anything before it hears of
 *   that. Until they are heard of again nothing is asked for, and then no more than they could begin. One that waits
 *   for a handler of its own task, which was told to stop and has not, goes back after one and a half leases. Where the
 *   numbers do not tell what was begun, or the server does not know of going back, it is disowned by then, and is lost:
 *   it may have begun, and what went back is begun by another.
 *   What was fetched ahead is named too, and goes back sooner (give-back.ts). What was named once is named on.
 * - An answer extends the lease from the moment its sync was *sent*, or as much later as the server says that it held
 *   it before it renewed the lease once more, and not quite by a whole lease: so here the lease always ends before it
 *   ends at the server, whatever the network did. What runs then is stopped and disowned: no longer named, so that the
 *   server gives it to another, but its slot is taken until its handler has ended.
 * - An id may be given to another task when the one that had it is forgotten; the assignment says which (`taskSeq`),
 *   and so does whatever is said of it. What is kept of the earlier task makes room: a result is given up, since nobody
 *   knows its task any more, and what still runs is stopped first.
 * - A task that must not be run twice (`onLoss: "fail"`) is named as running first, and handed to the handlers when the
 *   answer says that the server has it so: whatever becomes of this process, the log knows that it may have begun.
 * - An attempt that was disowned, or is stopped because the worker leaves, is never reported as failed or cancelled:
 *   that it was cut short is no fault of the task. A result it has all the same is offered, and the server decides.
 */
import type { AttemptRef, Joined, ResultAnswer, WantedLog } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";
import { shorten } from "../output/lines.ts";
import { judge, stopFetching } from "./ahead.ts";
import { aheadOf, giveBack, goesBack, settleUnbegun } from "./give-back.ts";
import {
  begun,
  catchUp,
  drop,
  type Flight,
  finish,
  type Held,
  heldSince,
  liveOne,
  moveTo,
  type Named,
  nextUp,
  type PullSession,
  type Stage,
} from "./held.ts";
import {
  type AttemptStopCause,
  type Handed,
  keyOf,
  type Report,
  type Stop,
  type Unread,
  type Update,
  type WantedLogs,
} from "./messages.ts";
import { UNREADABLE } from "./outcome.ts";
import { endedFor, settleShare } from "./refusals.ts";
import { packBody, type SyncCall } from "./sync-body.ts";
import { type HeardSync, mayBeginAtOnce, readInPlace } from "./unread-tasks.ts";

/** Of a lease, as much as counts here: the rest is for clocks that run unevenly and for telling the handlers. */
const LEASE_SHARE = 0.9;
const RESULTS_MAX = 10_000;
/** What is not begun for so long, though there is a slot, has met an event loop that stands still. */
const STUCK_MS = 1000;
const STUCK = "its event loop stands still";
const PACED = "its event loop stood still: it takes fewer at once for a while";
/** A loop that stood still is given twice as much with each such time in which it goes on. */
const PACE_DOUBLES_MS = 5000;
const NOT_BEGUN_LEASES = 1.5;
/** What was given so lately may have ended in a moment. */
const FRESH_MS = 5;
/** With room for the mark of what was cut off. */
const NOTE_MAX = 900;

type HeardAnswer = {
  /** What the handlers are to begin; if it was not read, only the names, and `unread` is all of it. */
  readonly start: readonly Handed[];
  readonly unread: Unread | null;
  /** Why nobody could read what it gives, if so. */
  readonly unreadable: string | null;
  readonly stop: readonly Stop[];
  /** Results that came too late, or that the server did not want. */
  readonly refused: readonly ResultAnswer[];
  readonly drain: boolean;
  /** Tabs that another worker has taken over, if that is new. */
  readonly lost: readonly string[];
  /** Logs that somebody wants to see. */
  readonly wanted: WantedLogs | null;
  /** Tasks that were to go on here and have ended. */
  readonly over: readonly string[];
  /** Whether it said anything that was not known. */
  readonly isNew: boolean;
  /** Whether its sync said all there was to say. */
  readonly isWhole: boolean;
};

const NOTHING: HeardAnswer = {
  start: [],
  unread: null,
  unreadable: null,
  stop: [],
  refused: [],
  drain: false,
  lost: [],
  wanted: null,
  over: [],
  isNew: false,
  isWhole: true,
};

export { endAhead, endAheadAt, takeBack, takeBackAt } from "./give-back.ts";
export { createPullSession, type PullSession } from "./held.ts";
export { refuse } from "./refusals.ts";

/** Whether nothing runs, and everything that has ended was answered. */
export const isEmpty = (state: PullSession): boolean => isIdle(state) && !hasWord(state);
/** Whether there is nothing that could end. */
export const isIdle = ({ held }: PullSession): boolean => held.handed.size + held.running.size === 0;
export const hasResults = ({ held }: PullSession): boolean => held.ended.size > 0;
/** Whether the server has not heard how all ended that has, or of all that was given back. */
export const hasWord = (state: PullSession): boolean => hasResults(state) || state.unbegun.length > 0;
/** Whether something runs that is ours as long as the lease holds. */
export function isAtWork({ held }: PullSession): boolean {
  for (const one of held.running.values()) if (one.isOurs) return true;
  for (const one of held.handed.values()) if (one.isOurs) return true;
  return false;
}
/** Whether something has a slot and waits for being named. */
export const isNaming = (state: PullSession, now: number): boolean =>
  nextUp(state, now).some(({ awaits }) => awaits !== null);
/** Whether something was given so lately that its result may be there in a moment. */
export const isFresh = ({ held, handedAt }: PullSession, now: number): boolean =>
  held.handed.size + held.running.size > 0 && now - handedAt < FRESH_MS;
/** Whether this sync belongs to the session that is, and was not answered. */
export const isOpen = (state: PullSession, n: number): boolean => state.flights.has(n);

/** The lease is over. */
export function expire(state: PullSession): readonly Stop[] {
  state.lastLeased = state.n;
  return disown(state, "lease-lost");
}

/** No answer will come. */
export function fail(state: PullSession, n: number): void {
  doubt(state, n);
  state.flights.delete(n);
}

export function began(state: PullSession, attempt: AttemptRef): void {
  state.isStuck = false;
  const one = state.held.handed.get(keyOf(attempt));
  if (one !== undefined) moveTo(state, one, "running");
}

/** A handler that keeps its event loop for itself tells of itself too: that one goes on is not told by this. */
export function tell(state: PullSession, attempt: AttemptRef, update: Update): void {
  const one = liveOne(state, keyOf(attempt));
  if (one !== undefined) one.update = { ...one.update, ...update };
}

export function drain(state: PullSession): void {
  state.isDraining = true;
}

export function limit(state: PullSession, count: number, note: string | null): void {
  state.limit = count;
  state.note = note === null ? null : shorten(note, NOTE_MAX);
}

export function limitWorktrees(state: PullSession, count: number | null, note: string | null): void {
  state.worktrees = count;
  state.note = note === null ? null : shorten(note, NOTE_MAX);
}

/** Takes nothing more; what ends without a result stays held, and is given back by leaving. */
export function close(state: PullSession): void {
  state.isDraining = true;
  state.isClosing = true;
  const error = "its worker closed before it was begun";
  for (const one of [...state.held.handed.values()]) {
    if (one.awaits === null) continue;
    if (state.isGivingBack) giveBack(state, one);
    else endUnbegun(state, one, { outcome: "requeue", error });
  }
}

/** How many more it could take. */
export function free(state: PullSession, now: number): number {
  goFaster(state, now);
  const hasLate = nextUp(state, now).some((one) => !one.waitsForEarlier && now - (one.slotSince ?? now) >= STUCK_MS);
  if (state.isDraining || state.isStuck || hasLate) return 0;
  const { handed, running } = state.held;
  return Math.max(0, Math.min(state.slots, state.limit, state.pace) + aheadOf(state) - handed.size - running.size);
}

function goFaster(state: PullSession, now: number): void {
  if (state.isStuck || state.pace >= state.slots) state.pacedAt = now;
  for (; now - state.pacedAt >= PACE_DOUBLES_MS; state.pacedAt += PACE_DOUBLES_MS) state.pace *= 2;
}

export function join(state: PullSession, joined: Joined, sentAt: number): void {
  const { workerId, session, leaseMs, brief, tokenKey } = joined;
  state.workerId = workerId;
  state.session = session;
  state.leaseMs = leaseMs;
  state.leaseEnd = sentAt + leaseMs * LEASE_SHARE;
  state.last = null;
  state.isBrief = brief === true;
  state.isLean = state.isBrief && tokenKey !== undefined;
  stopFetching(state.ahead);
  state.isGivingBack = joined.ahead === true;
  state.ahead.most = state.isGivingBack ? state.aheadMax : 0;
  state.mayExceed = false;
  state.unbegun = [];
  state.namesHeard = null;
  state.lastHeard = state.n;
}

export function compose(state: PullSession, now: number, mayWaitMs: number): SyncCall {
  const next = nextUp(state, now);
  const { isBrief, share } = state;
  const { ended, unsayable } = endedFor(state);
  const resultsMax = share === "all" ? RESULTS_MAX : 1;
  const packed = packBody([...begun(state), ...next, ...unsayable], ended, state.unbegun, resultsMax);
  // Whatever else was lost, a poll says all that runs.
  const isSame = isBrief && ended.length > 0 && packed.told.length === 0 && isEqual(packed.named, state.namesHeard);
  // What found no room in it is not to wait for long.
  const waitMs = share !== "all" || (isBrief && packed.reported.length < ended.length) ? 0 : mayWaitMs;
  const told = packed.told.map((one) => ({ one, update: one.update }));
  for (const one of packed.told) one.update = null;
  const n = ++state.n;
  for (const one of packed.named) one.namedIn = n;
  for (const one of packed.reported) one.reportedIn = n;
  judge(state.ahead, loadOf(state, packed.reported), now);
  const want = free(state, now);
  const ahead = aheadOf(state);
  const { isDraining, session, limit, worktrees, logPlace, unbegun } = state;
  const note = noteOf(state);
  const awaiting = next.filter(({ awaits }) => awaits !== null);
  const { named, reported: results } = packed;
  state.last = {
    n,
    sentAt: now,
    want,
    ahead,
    limit,
    worktrees,
    note,
    isDraining,
    share,
    isBrief,
    named,
    told,
    awaiting,
    results,
    unbegun,
  };
  state.flights.set(n, state.last);
  const trees = worktrees === undefined ? {} : { worktrees };
  const status = isDraining ? "draining" : null;
  const manner = { brief: isBrief || null, lean: state.isLean || null };
  if (ahead > 0) {
    state.lastAhead = n;
    state.mayExceed = true;
  }
  const more = { ...manner, ahead: ahead || null, status, note, logPlace };
  const head = { session, n, want, waitMs, ...trees, ...present(more) };
  const fields = [
    JSON.stringify(head).slice(1, -1),
    isSame ? "" : packed.running,
    packed.unbegun,
    packed.results,
  ].filter(Boolean);
  const isQuiet = share === "all" && (results.length === 0 || (isBrief && waitMs > 0));
  return { n, workerId: state.workerId ?? "", waitMs, isQuiet, text: `{${fields.join()}}` };
}

/** What it says of itself: in words of its own if it was given none. */
const noteOf = ({ note, isStuck, pace, slots }: PullSession): string | null =>
  note ?? (isStuck ? STUCK : pace < slots ? PACED : null);

/** What a sync with these ends has to do with. */
const loadOf = (state: PullSession, reported: readonly Held[]): Parameters<typeof judge>[1] => ({
  slots: Math.min(state.slots, state.limit),
  cameAt: reported.map(({ cameAt }) => cameAt),
  held: state.held.handed.size + state.held.running.size,
  heldSince: heldSince(state),
});

const isEqual = (named: readonly Named[], before: readonly Named[] | null): boolean =>
  before !== null && named.length === before.length && named.every((one, index) => one === before[index]);

export function hear(state: PullSession, n: number, answer: HeardSync, now: number): HeardAnswer {
  const flight = state.flights.get(n);
  state.flights.delete(n);
  if (flight === undefined || n <= state.lastHeard) return NOTHING;
  state.lastHeard = n;
  // It may have been changed since; a server that does not say so has not changed it.
  state.leaseMs = answer.leaseMs > 0 ? answer.leaseMs : state.leaseMs;
  const renewedAt = Math.min(now, flight.sentAt + (answer.heldMs ?? 0));
  state.leaseEnd = Math.max(state.leaseEnd, renewedAt + state.leaseMs * LEASE_SHARE);
  state.namesHeard = flight.named;
  settleUnbegun(state, flight.unbegun);
  const { settled, refused } = hearResults(state, flight, answer.results);
  const stop = answer.cancel.flatMap((attempt) => stopOne(state, meantBy(state, attempt), "cancelled"));
  // An answer that lay somewhere for a whole lease gives nothing any more; nor does one to a sync from before the lease
  // was over, since what it gives may have been disowned then.
  const isTaking = !state.isClosing && now < state.leaseEnd && n > state.lastLeased;
  const { start, unread, unreadable, taken } = isTaking ? takeAll(state, flight, answer, now) : NOTHING_GIVEN;
  settleShare(state, flight);
  if (n > state.lastAhead) state.mayExceed = false;
  const drain = answer.drain === true;
  const { wanted, isNewWish } = hearWishes(state, answer.logs ?? []);
  const isNew = taken + start.length + stop.length + settled > 0 || (drain && !state.isDraining) || isNewWish;
  const lost = (answer.lost ?? []).filter((tab) => !state.lost.has(tab));
  state.lost = new Set(answer.lost);
  const isWhole = flight.share === "all";
  return { start, unread, unreadable, stop, refused, drain, lost, wanted, over: answer.over ?? [], isNew, isWhole };
}

/** In words that an older server knows. */
const NEVER_BEGUN: Report = { outcome: "requeue", error: "its worker could not begin it" };
const NOTHING_GIVEN = { start: [], unread: null, unreadable: null, taken: 0 };

/** What an answer gives, and what waited for it. If all of it can be begun at once, nobody has to read it here. */
function takeAll(
  state: PullSession,
  { awaiting }: Flight,
  { assignments, unread }: HeardSync,
  now: number,
): Pick<HeardAnswer, "start" | "unread" | "unreadable"> & { readonly taken: number } {
  const onRecord = awaiting.filter(({ awaits }) => awaits !== null);
  const taken = assignments.map((named) => takeOn(state, named, now)).filter((one) => one !== null);
  const isPlain = taken.length === assignments.length && onRecord.length === 0 && taken.every(mayBeginAtOnce);
  const unreadable = unread === undefined || isPlain ? null : readInPlace(taken, unread);
  if (unreadable !== null) for (const one of taken) endUnbegun(state, one, UNREADABLE);
  const given = unreadable === null ? taken.filter(mayBeginAtOnce) : [];
  const start = [...given, ...onRecord].map((one) => handOver(state, one, now));
  return { start, unread: isPlain ? (unread ?? null) : null, unreadable, taken: taken.length };
}

/** An answer lists all that is wanted, so what the last one did not have is new. */
function hearWishes(state: PullSession, logs: readonly WantedLog[]): { wanted: WantedLogs | null; isNewWish: boolean } {
  const known = state.wantedIds;
  state.wantedIds = new Set(logs.map(({ id }) => id));
  if (state.logPlace === undefined || logs.length === 0) return { wanted: null, isNewWish: false };
  const wanted = { workerId: state.workerId ?? "", session: state.session, logs };
  return { wanted, isNewWish: logs.some(({ id }) => !known.has(id)) };
}

/** How many of its results the answer has settled, and those that were not taken. */
function hearResults(
  { held }: PullSession,
  { results, isBrief }: Flight,
  listed: readonly ResultAnswer[],
): { settled: number; refused: readonly ResultAnswer[] } {
  const open = new Map<string, Held>();
  for (const one of results) if (held.ended.get(one.key) === one) open.set(one.key, one);
  const own = listed.filter((result) => isSameTask(open.get(keyOf(result)), result));
  const settled = isBrief ? [...open.keys()] : own.map(keyOf);
  for (const key of settled) held.ended.delete(key);
  // That a task which was cancelled has ended by then is no news to anybody.
  const isNews = (result: ResultAnswer): boolean =>
    !result.accepted && !(result.code === "conflict" && open.get(keyOf(result))?.stop === "cancelled");
  return { settled: settled.length, refused: own.filter(isNews) };
}

/** Whether it is there, and of that task of its id, as far as it is said. */
const isSameTask = (one: Held | undefined, { taskSeq }: AttemptRef): one is Held =>
  one !== undefined && (one.taskSeq ?? taskSeq) === (taskSeq ?? one.taskSeq);

function meantBy(state: PullSession, attempt: AttemptRef): Held | undefined {
  const one = liveOne(state, keyOf(attempt));
  return isSameTask(one, attempt) ? one : undefined;
}

/** Null if it is known already or goes back, or an earlier task of its id still runs here: then it is listed again. */
function takeOn(state: PullSession, given: HeardSync["assignments"][number], now: number): Held | null {
  const { taskId, attempt, taskSeq } = given;
  const key = keyOf(given);
  if (liveOne(state, key) !== undefined || isSameTask(state.held.ended.get(key), given)) return null;
  if (goesBack(state, given)) return null;
  state.held.ended.delete(key);
  const one = {
    taskId,
    attempt,
    ...(taskSeq === undefined ? {} : { taskSeq }),
    key,
    stage: "handed" as Stage,
    place: null,
    namedIn: 0,
    reportedIn: 0,
    cameAt: now,
    isAhead: state.mayExceed,
    goesOn: "goesOn" in given,
    isAskedBack: false,
    keptSince: null,
    slotSince: null,
    waitsForEarlier: false,
    awaits: given as Handed,
    isOurs: true,
    stop: null,
    update: null,
    report: null,
    isSpoilt: false,
  };
  state.held.handed.set(key, one);
  return one;
}

/** It may be begun at once, or a sync had named it and the server now has it as running. */
function handOver(state: PullSession, one: Held, now: number): Handed {
  const handed = one.awaits as Handed;
  one.awaits = null;
  one.slotSince = null;
  one.place = ++state.handedOver;
  state.handedAt = now;
  return handed;
}

/** The handlers never heard of it, so only this session says that it is over. */
function endUnbegun(state: PullSession, one: Held, report: Report | null): void {
  one.awaits = null;
  if (report === null) drop(state, one);
  else finish(state, one, report);
}

/**
 * What is not begun for so long, though there is a slot, is for somebody else, once the handlers are kept from it: it
 * did nothing wrong, and goes back at no cost. Answers those that the handlers are told to stop.
 */
export function disownLate(state: PullSession, now: number): Stop[] {
  const next = nextUp(state, now);
  const late = next.filter((one) => now >= lateAt(state, one));
  const stops = late.length === 0 ? [] : disownThese(state, late, now);
  const left = late.length === 0 ? next : nextUp(state, now);
  state.lateAt = Math.min(...left.map((one) => (one.keptSince === null ? lateAt : lostAt)(state, one)));
  return stops;
}

function disownThese(state: PullSession, late: readonly Held[], now: number): Stop[] {
  const begunTo = state.disown(Math.max(...late.map(({ place }) => place ?? 0)));
  catchUp(state);
  const unbegun = late.filter(({ stage }) => stage === "handed");
  // The handlers say of these that they never began as soon as their loop goes on.
  if (unbegun.some(waitsForLoop)) {
    state.isStuck = true;
    state.pace = Math.min(state.pace, Math.max(1, state.held.running.size));
  }
  return unbegun.flatMap((one) => {
    one.keptSince ??= now;
    const isUntouched = isBehind(one, begunTo);
    if (isUntouched && state.isGivingBack) {
      giveBack(state, one);
      return [];
    }
    if (!isUntouched && now < lostAt(state, one)) return [];
    one.isOurs = false;
    return stopOne(state, one, "not-begun");
  });
}

/** Since when it could have been begun, if it could. */
const waitsSince = ({ slotSince, isAskedBack, cameAt }: Held): number =>
  slotSince ?? (isAskedBack ? cameAt : Number.POSITIVE_INFINITY);

/** When the handlers are to be kept from it. */
function lateAt({ isGivingBack, leaseMs }: PullSession, one: Held): number {
  const lateAfterMs = leaseMs * NOT_BEGUN_LEASES;
  return waitsSince(one) + (isGivingBack && waitsForLoop(one) ? Math.min(STUCK_MS, lateAfterMs) : lateAfterMs);
}

/** Which of those before one that was begun out of turn have been begun too, messages say that were sent by then. */
const lostAt = ({ leaseMs }: PullSession, one: Held): number =>
  Math.max(waitsSince(one) + leaseMs * NOT_BEGUN_LEASES, (one.keptSince ?? 0) + STUCK_MS);

/** And neither for the server, which is to hear it named, nor for a handler of its own task that has not stopped. */
const waitsForLoop = ({ awaits, waitsForEarlier }: Held): boolean => awaits === null && !waitsForEarlier;

/** Whether no handler has begun it, now that they are kept from it. */
const isBehind = ({ place }: Held, begunTo: number): boolean => place === null || place > begunTo;

function stopOne(state: PullSession, one: Held | undefined, cause: AttemptStopCause): Stop[] {
  if (one === undefined || one.stage === "ended" || (one.stop !== null && cause === "cancelled")) return [];
  if (one.awaits !== null) {
    endUnbegun(state, one, cause === "cancelled" ? { outcome: "cancelled" } : null);
    return [];
  }
  const wasTold = one.stop !== null;
  one.stop = cause;
  return wasTold ? [] : [{ taskId: one.taskId, attempt: one.attempt, cause }];
}

/** No answer yet: what only this sync had said is said again. It may still be answered. */
export function doubt(state: PullSession, n: number): void {
  const flight = state.flights.get(n);
  for (const { one, update } of flight?.told ?? [])
    if (one.stage === "running") one.update = { ...update, ...one.update };
  if (flight !== undefined) flight.told = [];
}

/** They are not ours any more; those that have not ended must, and those that have not begun never do. */
function disown(state: PullSession, cause: AttemptStopCause): Stop[] {
  const { handed, running } = state.held;
  const begunTo = state.disown(state.handedOver);
  // The session goes on when the server is back, and hears then what never began.
  const isKept = cause === "lease-lost" && state.isGivingBack;
  return [...running.values(), ...handed.values()].flatMap((one) => {
    if (isKept && one.stage === "handed" && one.stop === null && isBehind(one, begunTo)) {
      giveBack(state, one);
      return [];
    }
    one.isOurs = false;
    return stopOne(state, one, cause);
  });
}

/** The session is over: nothing that was held counts any more. */
export function lose(state: PullSession): readonly Stop[] {
  state.held.ended.clear();
  state.flights.clear();
  state.workerId = null;
  state.leaseEnd = Number.NEGATIVE_INFINITY;
  state.last = null;
  state.unbegun = [];
  return disown(state, "session-lost");
}

export function end(state: PullSession, attempt: AttemptRef, given: Report | null): void {
  state.isStuck = false;
  const one = liveOne(state, keyOf(attempt));
  if (one === undefined) return;
  state.pace++;
  const report = given === null ? null : reportAfter(one.stop, state.isClosing, given);
  if (report !== null) finish(state, one, report);
  else if (given === null && one.isOurs && state.isGivingBack) giveBack(state, one);
  else if (given === null && one.isOurs && !state.isClosing) finish(state, one, NEVER_BEGUN);
  else if (!state.isClosing || !one.isOurs) drop(state, one);
}

/** What the last sync did not say: a result, a free slot or a drain; or a name, progress, usage. */
export function unsaid(state: PullSession, now: number): "urgent" | "mild" | "nothing" {
  const { last, isDraining } = state;
  if (last === null || (isDraining && !last.isDraining) || free(state, now) > last.want) return "urgent";
  if (state.unbegun.length > 0 && state.unbegun !== last.unbegun) return "urgent";
  // What it offered ahead is not meant any more, and could still be given.
  if (last.ahead > 0 && last.want > 0 && aheadOf(state) === 0) return "urgent";
  if (state.limit !== last.limit || state.worktrees !== last.worktrees || noteOf(state) !== last.note) return "urgent";
  for (const one of state.held.ended.values())
    if ((one.report === null ? one.namedIn : one.reportedIn) !== last.n) return "urgent";
  const hasNew = ({ update, namedIn }: Held): boolean => update !== null || namedIn !== last.n;
  return nextUp(state, now).some(hasNew) || begun(state).some(hasNew) ? "mild" : "nothing";
}

/** What is reported of an attempt that was told to stop: null is nothing. */
function reportAfter(stop: AttemptStopCause | null, isClosing: boolean, report: Report): Report | null {
  if (stop === "session-lost") return null;
  if (report.outcome === "done") return report;
  if (stop === "lease-lost" || stop === "not-begun") return null;
  const { error, usage } = report;
  if (stop === "cancelled") return { outcome: "cancelled", ...present({ error, usage }) };
  return isClosing && !(report.outcome === "failed" && report.permanent === true) ? null : report;
}
