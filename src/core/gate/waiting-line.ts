/**
 * Whose call goes out next, among those that wait at one gate.
 *
 * The rule: the most urgent class first, where waiting `agingPerClassMs` counts as one class up; then the
 * project with the lowest level (what it was charged here ÷ its weight); then first come, first served.
 *
 * Within one class of one project the one who came first beats all others, whatever the time and the levels.
 * So there is one line per (project, class), and choosing compares the heads of lines only: its cost grows
 * with the projects that wait, never with the tickets. "Came first" is askedAt, then order, then id. A call that
 * comes back after a 429 brings its old askedAt and order, and so its old position, also among those of one instant.
 *
 * Leaving from the middle marks the entry dead; dead ones are swept when they outnumber the living, so it is
 * constant in the long run. The head of a line is always alive.
 *
 * Idleness banks no credit: a project that comes back from having nothing here starts at the level last
 * served, or at the lowest level among those waiting if that is lower (a critical call of a costly project may
 * just have been served at a level far above what the others wait at). Levels of idle projects are
 * remembered as long as they matter, and at most about SHARES_MAX of them.
 */

import type { DeepReadonly } from "../collections/deep-readonly.ts";
import { SlotMap } from "../collections/slot-map.ts";
import { lowerBound } from "../collections/sorted-list.ts";
import { CLASS_RANK, type GateClass } from "./settings.ts";

export type Ticket = {
  readonly id: string;
  readonly class: GateClass;
  readonly project: string;
  readonly weight: number;
  /** The estimate; 0 if unknown. */
  readonly tokens: number;
  readonly askedAt: number;
  readonly order: number;
  /** When it was put back, if it was out before and met a 429: its wait is shorter than its age. */
  readonly since?: number | undefined;
  readonly task?: string;
  readonly attempt?: number;
  /** The caller is in another process, and may hold it longer than this one lives. */
  readonly remote?: true;
};

/** One project at this gate. */
export type Share = {
  readonly project: string;
  level: number;
  queued: number;
  held: number;
  /** By rank of class; absent until first used. */
  readonly lanes: (Lane | undefined)[];
};

/** One line: the tickets of one class of one project. */
type Lane = {
  readonly share: Share;
  readonly rank: number;
  entries: Entry[];
  head: number;
  live: number;
  /** Its index among the lines that are not empty. */
  slot: number;
};

type Entry = { readonly ticket: Ticket; readonly lane: Lane; live: boolean };

export type Queue = {
  readonly entries: SlotMap<Entry>;
  readonly shares: Map<string, Share>;
  /** The lines that are not empty, in no order. */
  readonly active: Lane[];
  /** The highest level served yet. */
  served: number;
  sweepAt: number;
};

type ReadonlyQueue = DeepReadonly<Queue>;
type ReadonlyLane = DeepReadonly<Lane>;
type ReadonlyEntry = DeepReadonly<Entry>;

const SHARES_MAX = 1024;

export function newQueue(): Queue {
  return { entries: new SlotMap(), shares: new Map(), active: [], served: 0, sweepAt: SHARES_MAX };
}

/** Who goes next if a call may go out. */
export function bestTicket(queue: ReadonlyQueue, now: number, agingPerClassMs: number): Ticket | null {
  const { active } = queue;
  if (active.length === 0) return null;
  let best = headOf(active[0] as ReadonlyLane);
  let bestLane = active[0] as ReadonlyLane;
  let bestRank = rankAt(bestLane.rank, best, now, agingPerClassMs);
  for (let index = 1; index < active.length; index++) {
    const lane = active[index] as ReadonlyLane;
    const head = headOf(lane);
    const rank = rankAt(lane.rank, head, now, agingPerClassMs);
    if (rank > bestRank) continue;
    if (rank === bestRank && !goesFirst(head, lane.share.level, best, bestLane.share.level)) continue;
    best = head;
    bestLane = lane;
    bestRank = rank;
  }
  return best;
}

/** The first that wait, in the order in which they would go at today's levels. They are the first of their lines. */
export function ticketsInOrder(queue: ReadonlyQueue, now: number, agingPerClassMs: number, most: number): Ticket[] {
  const ranked: { ticket: Ticket; rank: number; level: number }[] = [];
  for (const lane of queue.active) {
    let taken = 0;
    for (let index = lane.head; index < lane.entries.length && taken < most; index++) {
      const { ticket, live } = lane.entries[index] as ReadonlyEntry;
      if (!live) continue;
      taken++;
      ranked.push({ ticket, rank: rankAt(lane.rank, ticket, now, agingPerClassMs), level: lane.share.level });
    }
  }
  ranked.sort((a, b) => a.rank - b.rank || (goesFirst(a.ticket, a.level, b.ticket, b.level) ? -1 : 1));
  return ranked.slice(0, most).map(({ ticket }) => ticket);
}

/** 1 + the tickets ahead; null if it does not wait here. Those ahead are the front of each line: a binary search. */
export function positionOf(queue: ReadonlyQueue, id: string, now: number, agingPerClassMs: number): number | null {
  const entry = queue.entries.get(id);
  if (entry === undefined) return null;
  const rank = rankAt(entry.lane.rank, entry.ticket, now, agingPerClassMs);
  const level = entry.lane.share.level;
  let position = 1;
  for (const lane of queue.active) {
    const isAhead = (other: ReadonlyEntry): boolean => {
      const otherRank = rankAt(lane.rank, other.ticket, now, agingPerClassMs);
      if (otherRank !== rank) return otherRank < rank;
      return goesFirst(other.ticket, lane.share.level, entry.ticket, level);
    };
    position += liveBefore(lane, lowerBound(lane.entries, null, isAhead, lane.head));
  }
  return position;
}

/** The next instant at which the head of some line grows more urgent. */
export function nextAging(queue: ReadonlyQueue, now: number, agingPerClassMs: number): number | null {
  let next: number | null = null;
  for (const lane of queue.active) {
    const { askedAt } = headOf(lane);
    const steps = stepsWaited(askedAt, now, agingPerClassMs);
    if (steps >= lane.rank) continue;
    const at = askedAt + (steps + 1) * agingPerClassMs;
    if (next === null || at < next) next = at;
  }
  return next;
}

export function enqueue(queue: Queue, ticket: Ticket): void {
  const share = joinShare(queue, ticket.project);
  const rank = CLASS_RANK[ticket.class];
  let lane = share.lanes[rank];
  if (lane === undefined) {
    lane = { share, rank, entries: [], head: 0, live: 0, slot: -1 };
    share.lanes[rank] = lane;
  }
  const entry: Entry = { ticket, lane, live: true };
  insertInLine(lane, entry);
  if (lane.live++ === 0) lane.slot = queue.active.push(lane) - 1;
  share.queued++;
  queue.entries.add(ticket.id, entry);
}

export function takeOut(queue: Queue, id: string): Entry | null {
  const entry = queue.entries.take(id);
  if (entry === undefined) return null;
  const { lane } = entry;
  entry.live = false;
  lane.share.queued--;
  if (--lane.live === 0) closeLine(queue, lane);
  else if (lane.entries[lane.head] === entry) advanceHead(lane);
  else if (lane.entries.length - lane.head > 2 * lane.live) sweepLine(lane);
  return entry;
}

export function clearQueue(queue: Queue): void {
  for (const id of [...queue.entries.keys()]) takeOut(queue, id);
}

/** The project's share, started at the level it may claim if it had nothing here. */
export function joinShare(queue: Queue, project: string): Share {
  const known = queue.shares.get(project);
  if (known !== undefined) {
    if (known.queued === 0 && known.held === 0) known.level = Math.max(known.level, entryLevel(queue));
    return known;
  }
  if (queue.shares.size >= queue.sweepAt) forgetIdleShares(queue);
  const share: Share = { project, level: entryLevel(queue), queued: 0, held: 0, lanes: [] };
  queue.shares.set(project, share);
  return share;
}

export function chargeShare(queue: Queue, share: Share, charge: number, weight: number): void {
  if (share.level > queue.served) queue.served = share.level;
  share.level += charge / weight;
  share.held++;
}

/** What was charged at the start becomes what it came to. */
export function settleShare(queue: Queue, project: string, correction: number, weight: number): void {
  const share = queue.shares.get(project);
  if (share === undefined) return;
  share.level += correction / weight;
  share.held--;
}

function entryLevel(queue: ReadonlyQueue): number {
  let level = queue.served;
  for (const lane of queue.active) if (lane.share.level < level) level = lane.share.level;
  return level;
}

/** First those whose level no longer matters, then the longest known: a bounded memory is worth a forgotten debt. */
function forgetIdleShares(queue: Queue): void {
  const { shares } = queue;
  const level = entryLevel(queue);
  const isIdle = (share: Share): boolean => share.queued === 0 && share.held === 0;
  for (const [project, share] of shares) if (isIdle(share) && share.level <= level) shares.delete(project);
  for (const [project, share] of shares) {
    if (shares.size <= SHARES_MAX / 2) break;
    if (isIdle(share)) shares.delete(project);
  }
  queue.sweepAt = Math.max(SHARES_MAX, 2 * shares.size);
}

function stepsWaited(askedAt: number, now: number, agingPerClassMs: number): number {
  const waited = now - askedAt;
  return waited < agingPerClassMs ? 0 : Math.floor(waited / agingPerClassMs);
}

function rankAt(rank: number, ticket: Ticket, now: number, agingPerClassMs: number): number {
  return Math.max(0, rank - stepsWaited(ticket.askedAt, now, agingPerClassMs));
}

/** Among equals in urgency. */
function goesFirst(a: Ticket, levelOfA: number, b: Ticket, levelOfB: number): boolean {
  return levelOfA === levelOfB ? cameFirst(a, b) : levelOfA < levelOfB;
}

function cameFirst(a: Ticket, b: Ticket): boolean {
  if (a.askedAt !== b.askedAt) return a.askedAt < b.askedAt;
  return a.order === b.order ? a.id < b.id : a.order < b.order;
}

function headOf(lane: ReadonlyLane): Ticket {
  return (lane.entries[lane.head] as ReadonlyEntry).ticket;
}

/** Nearly always the end; a call that comes back with its age goes in near the front. */
function insertInLine(lane: Lane, entry: Entry): void {
  const { entries } = lane;
  const last = entries[entries.length - 1];
  if (last === undefined || cameFirst(last.ticket, entry.ticket)) {
    entries.push(entry);
    return;
  }
  const index = lowerBound(entries, entry.ticket, ({ ticket }, mine) => cameFirst(ticket, mine), lane.head);
  if (index === lane.head && index > 0) {
    lane.head--;
    entries[lane.head] = entry;
  } else entries.splice(index, 0, entry);
}

function liveBefore(lane: ReadonlyLane, end: number): number {
  if (lane.entries.length - lane.head === lane.live) return end - lane.head;
  let count = 0;
  for (let index = lane.head; index < end; index++) if ((lane.entries[index] as ReadonlyEntry).live) count++;
  return count;
}

function closeLine(queue: Queue, lane: Lane): void {
  lane.entries = [];
  lane.head = 0;
  const moved = queue.active.pop() as Lane;
  if (moved !== lane) {
    queue.active[lane.slot] = moved;
    moved.slot = lane.slot;
  }
  lane.slot = -1;
}

function advanceHead(lane: Lane): void {
  const { entries } = lane;
  while (!(entries[lane.head] as Entry).live) lane.head++;
  if (lane.head > 32 && lane.head * 2 > entries.length) {
    entries.splice(0, lane.head);
    lane.head = 0;
  }
}

function sweepLine(lane: Lane): void {
  lane.entries = lane.entries.filter((entry) => entry.live);
  lane.head = 0;
}
