/**
 * What a pull worker holds: attempts that were handed out, run, or have ended and were not answered.
 *
 * Who changes it, and by which rules, is `session.ts`.
 */
import { PassingMap } from "../../core/collections/index.ts";
import type { AttemptRef } from "../../protocol/index.ts";
import { type Ahead, nothingAhead } from "./ahead.ts";
import type { AttemptStopCause, Handed, Report, Update } from "./messages.ts";

/**
 * What a sync is made of. `all`: all there is to say; `names`: only what is held here, by its name; `one`: that, and
 * how one has ended. Why it is less than all is in `refusals.ts`.
 */
export type Share = "all" | "names" | "one";
export type Stage = "handed" | "running" | "ended";
export type Held = Omit<AttemptRef, "taskSeq"> & {
  /** Which task of its id; absent if an older server does not say. */
  taskSeq?: number;
  readonly key: string;
  stage: Stage;
  /** The place in which it was handed over; null: it was not yet. */
  place: number | null;
  /** The last sync that named it, and the last that reported how it ended. */
  namedIn: number;
  reportedIn: number;
  /** When it came. */
  readonly cameAt: number;
  /** It may be beyond the slots: it is named all the same. */
  readonly isAhead: boolean;
  /** It was kept for this worker, and is not given back. */
  readonly goesOn: boolean;
  /** The handlers were asked for it, if they have not begun it. */
  isAskedBack: boolean;
  /** Since when the handlers are kept from it, because another worker is to have it. */
  keptSince: number | null;
  /** Since when there is a slot in which it could be begun. */
  slotSince: number | null;
  /** An earlier attempt of its task was told to stop and has not ended: it is begun behind that one, in any slot. */
  waitsForEarlier: boolean;
  /** What is handed over once the server has heard it named; null: it was. */
  awaits: Handed | null;
  /** False: it may be given to another, and is not named any more. */
  isOurs: boolean;
  stop: AttemptStopCause | null;
  update: Update | null;
  /** Null of one that has ended: it is given up (refusals.ts). */
  report: Report | null;
  /** The server would not take its report, and this is what is said instead. */
  isSpoilt: boolean;
};
export type Named = AttemptRef & { namedIn: number };
export type Flight = {
  readonly n: number;
  readonly sentAt: number;
  readonly want: number;
  /** How many of these beyond its slots. */
  readonly ahead: number;
  readonly limit: number;
  readonly worktrees: number | null | undefined;
  readonly note: string | null;
  readonly isDraining: boolean;
  readonly share: Share;
  /** Results that its answer does not name were taken. */
  readonly isBrief: boolean;
  /** Those that it names, or that the last one named that was heard. */
  readonly named: readonly Named[];
  /** Those that it names and that wait for that. */
  readonly awaiting: readonly Held[];
  /** Those whose end it reports. */
  readonly results: readonly Held[];
  /** Those that it gives back. */
  readonly unbegun: readonly Held[];
  told: readonly { readonly one: Held; readonly update: Update | null }[];
};

/** Only session.ts, give-back.ts, refusals.ts and this file change it. */
export type PullSession = {
  readonly slots: number;
  readonly aheadMax: number;
  readonly logPlace: string | undefined;
  /** What it holds, by its stage. */
  readonly held: Readonly<Record<Stage, PassingMap<string, Held>>>;
  /** So many of those that were handed over have been begun, in their order. */
  readonly begunSoFar: () => number;
  readonly revoke: (behind: number, last: number) => number;
  readonly disown: (last: number) => number;
  /** How many were handed over, and when the last was. */
  handedOver: number;
  handedAt: number;
  readonly flights: Map<number, Flight>;
  workerId: string | null;
  /** As the server knows this run of the worker. */
  session: string;
  leaseMs: number;
  /** Until when the lease surely holds. */
  leaseEnd: number;
  /** How many run at once; what runs goes on. The note says why. */
  limit: number;
  note: string | null;
  /** How many may have a worktree; null: any number. Undefined: as it joined. */
  worktrees: number | null | undefined;
  n: number;
  lastHeard: number;
  /** The last sync before the lease was over. */
  lastLeased: number;
  last: Flight | null;
  isDraining: boolean;
  isClosing: boolean;
  /** Of the next sync. */
  share: Share;
  /** The handlers' event loop stood still for so long that tasks went back, and they were not heard of since. */
  isStuck: boolean;
  /** Since its loop stood still: as many as had been begun then, one more with each end, twice as many in a while. */
  pace: number;
  /** When it was last doubled, or stood still. */
  pacedAt: number;
  /** When something is late next: it was not begun, though there was a slot (session.ts). */
  lateAt: number;
  /** Whether the server takes brief syncs, and lean ones. */
  isBrief: boolean;
  isLean: boolean;
  /** What the last sync named that was heard. */
  namesHeard: readonly Named[] | null;
  wantedIds: ReadonlySet<string>;
  lost: ReadonlySet<string>;
  readonly ahead: Ahead;
  /** The last sync that wanted some ahead. */
  lastAhead: number;
  /** Whether an answer may give more than there are slots: none was heard to a sync behind that one. */
  mayExceed: boolean;
  /** Whether the server knows of what was never begun. */
  isGivingBack: boolean;
  /** Given back, and no answer has said that the server knows. */
  unbegun: readonly Held[];
};
export type SessionOptions = {
  readonly slots: number;
  /** How many it runs at once to begin with; as many as it has slots if absent. */
  readonly limit?: number | undefined;
  /** How many it fetches ahead at most while its tasks are short; none if absent. */
  readonly aheadMax?: number | undefined;
  /** Where it keeps its logs, if it does. */
  readonly logPlace?: string | undefined;
  /** So many of those that were handed over have been begun, in their order; none are known to be if absent. */
  readonly begunSoFar?: (() => number) | undefined;
  /** Keeps the handlers from these places, and answers up to where they have begun some (messages.ts). */
  readonly revoke?: ((behind: number, last: number) => number) | undefined;
  /** The same for all up to a place. */
  readonly disown?: ((last: number) => number) | undefined;
};

export const createPullSession = (options: SessionOptions): PullSession => ({
  slots: options.slots,
  limit: options.limit ?? options.slots,
  aheadMax: options.aheadMax ?? 0,
  logPlace: options.logPlace,
  begunSoFar: options.begunSoFar ?? (() => 0),
  revoke: options.revoke ?? (() => Number.POSITIVE_INFINITY),
  disown: options.disown ?? (() => 0),
  held: { handed: new PassingMap(), running: new PassingMap(), ended: new PassingMap() },
  handedOver: 0,
  handedAt: Number.NEGATIVE_INFINITY,
  flights: new Map(),
  workerId: null,
  session: "",
  leaseMs: 0,
  leaseEnd: Number.NEGATIVE_INFINITY,
  n: 0,
  lastHeard: 0,
  lastLeased: 0,
  last: null,
  isDraining: false,
  isClosing: false,
  share: "all",
  isStuck: false,
  pace: Number.POSITIVE_INFINITY,
  pacedAt: 0,
  lateAt: Number.POSITIVE_INFINITY,
  isBrief: false,
  isLean: false,
  namesHeard: null,
  note: null,
  worktrees: undefined,
  wantedIds: new Set(),
  lost: new Set(),
  ahead: nothingAhead(),
  lastAhead: 0,
  mayExceed: false,
  isGivingBack: false,
  unbegun: [],
});

export const liveOne = ({ held }: PullSession, key: string): Held | undefined =>
  held.running.get(key) ?? held.handed.get(key);

export function moveTo({ held }: PullSession, one: Held, stage: Stage): void {
  held[one.stage].delete(one.key);
  one.stage = stage;
  held[stage].set(one.key, one);
}

export function drop({ held }: PullSession, one: Held): void {
  held[one.stage].delete(one.key);
}

export function finish(state: PullSession, one: Held, report: Report): void {
  one.update = null;
  one.report = report;
  moveTo(state, one, "ended");
}

/** Those whose handlers were called are running, though no message has said so. */
export function catchUp(state: PullSession): void {
  const begun = state.begunSoFar();
  for (const one of state.held.handed.values())
    if (one.place !== null && one.place <= begun) moveTo(state, one, "running");
}

/**
 * Those that are named and have not been begun: what was fetched ahead; and those for which there is a slot, or will be
 * when what was told to stop has ended. If that does not end, they are given back in time. One that waits for being
 * named has not met the handlers: it waits on.
 */
export function nextUp(state: PullSession, now: number): Held[] {
  const { handed, running } = state.held;
  const next: Held[] = [];
  if (handed.size === 0) return next;
  catchUp(state);
  const room = state.slots - running.size;
  const stopping = new Set<string>();
  for (const { stop, taskId } of running.values()) if (stop !== null) stopping.add(taskId);
  const roomSoon = room + stopping.size;
  let index = 0;
  for (const one of handed.values()) {
    if (!one.isOurs) continue;
    if (one.stop !== null) {
      // Until the handlers say that they never began it.
      if (one.namedIn > 0) next.push(one);
      continue;
    }
    const hasSlot = index++ < (one.awaits === null ? roomSoon : room);
    const hasChanged = one.waitsForEarlier !== stopping.has(one.taskId);
    one.waitsForEarlier = stopping.has(one.taskId);
    one.slotSince = hasSlot ? ((hasChanged ? null : one.slotSince) ?? now) : null;
    // Named once, it is named on: what the server has as running is lost where it is missing.
    if (hasSlot || one.namedIn > 0 || (one.isAhead && one.awaits === null)) next.push(one);
  }
  return next;
}

/** When the first of those came that are here. */
export function heldSince({ held: { handed, running } }: PullSession): number {
  let first = Number.POSITIVE_INFINITY;
  for (const { cameAt } of running.values()) first = Math.min(first, cameAt);
  // These are in the order in which they came.
  for (const { cameAt } of handed.values()) return Math.min(first, cameAt);
  return first;
}

export function begun({ held }: PullSession): Held[] {
  const ours: Held[] = [];
  for (const one of held.running.values()) if (one.isOurs) ours.push(one);
  return ours;
}
