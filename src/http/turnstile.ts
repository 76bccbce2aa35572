/**
 * So many at a time, and callers take turns.
 *
 * An answer is many times as large while it is made as when it leaves. A caller that asks for a thousand pages at once
 * must not have a thousand of them made at once, so what is large is made a few at a time. A slot is free again in the
 * next turn of the event loop: then what was made has left, and what is small and came meanwhile has gone first.
 *
 * Each holder has a line of its own, first come first served, and the lines take turns: who asks for one page waits for
 * one page of each other holder, however many those want. All lines together have an end, and its last tenth is kept
 * for holders with few calls in it.
 *
 * Where the caller says how long a visit takes, by reading what is sent, a holder has so many slots at most and not all
 * of them: one that reads nothing stands in its own way.
 *
 * Nothing is made for a caller that has hung up: it is passed over when its turn comes. Where the end of the lines is
 * reached those that have gone leave first, so they keep no other out.
 *
 * What waits is a function and not a promise. A promise that has waited is old, and what is made for it would be kept
 * alive by it until the next collection of everything old: page upon page, hundreds of megabytes of them.
 */
import { isKeptForOthers } from "../core/base/index.ts";
import { type Fifo, fifo, push, retain, shift } from "../core/collections/index.ts";
import { PollEnded, type Polled } from "./long-polls.ts";
import { ServerRefusal } from "./problem.ts";
import { type Holder, holderOf } from "./tokens.ts";

export type Visit = {
  /** In whose line it waits. */
  readonly holder: Holder;
  /** Begins the work; the work says when it is over. */
  begin(over: () => void): void;
  /** Whether its caller has hung up. */
  isGone(): boolean;
  /** It was passed over. */
  leave(): void;
};
/** The visit begins now or when its turn comes. Throws if there is no room for it in the lines. */
export type Turnstile = (visit: Visit) => void;

const LINES_MAX = 1000;

export function createTurnstile(atOnce: number, linesMax: number = LINES_MAX, ofEachMax: number = atOnce): Turnstile {
  const lines = new Map<Holder, Fifo<Visit>>();
  /** Those with a line, the next first. */
  const turns: Fifo<Holder> = fifo();
  let waiting = 0;
  let room = atOnce;
  /** Slots that a holder has; counted where it may not have all. */
  const taken = new Map<Holder, number>();
  const over = (): void => void setImmediate(giveUpSlot);

  function begin(visit: Visit): void {
    if (ofEachMax >= atOnce) return visit.begin(over);
    const { holder } = visit;
    taken.set(holder, (taken.get(holder) ?? 0) + 1);
    visit.begin(() => {
      const left = (taken.get(holder) ?? 0) - 1;
      if (left > 0) taken.set(holder, left);
      else taken.delete(holder);
      over();
    });
  }

  const mayBegin = (holder: Holder): boolean => ofEachMax >= atOnce || (taken.get(holder) ?? 0) < ofEachMax;

  /** Answers whether it has gone, and then it has left. */
  function hasLeft(visit: Visit): boolean {
    const isGone = visit.isGone();
    if (isGone) visit.leave();
    return isGone;
  }

  function nextOf(line: Fifo<Visit>): Visit | undefined {
    for (let next = shift(line); next !== undefined; next = shift(line)) {
      waiting--;
      if (!hasLeft(next)) return next;
    }
    return undefined;
  }

  function giveUpSlot(): void {
    for (let left = turns.length; left > 0; left--) {
      const holder = shift(turns) as Holder;
      const line = lines.get(holder) as Fifo<Visit>;
      const next = mayBegin(holder) ? nextOf(line) : undefined;
      if (line.length === 0) lines.delete(holder);
      else push(turns, holder);
      if (next !== undefined) return begin(next);
    }
    room++;
  }

  /** A line that is empty now goes when its turn comes. */
  function sendHomeGone(): void {
    waiting = 0;
    for (const line of lines.values()) {
      retain(line, (other) => !hasLeft(other));
      waiting += line.length;
    }
  }

  const isFullFor = (holder: Holder): boolean =>
    waiting >= linesMax || isKeptForOthers(linesMax, waiting, lines.get(holder)?.length ?? 0);

  return (visit) => {
    const { holder } = visit;
    if (room > 0 && mayBegin(holder)) {
      room--;
      return begin(visit);
    }
    if (isFullFor(holder)) sendHomeGone();
    if (isFullFor(holder))
      throw new ServerRefusal(
        "overloaded",
        `${waiting} calls of this kind wait for their turn already; try again later`,
      );
    let line = lines.get(holder);
    if (line === undefined) {
      line = fifo();
      lines.set(holder, line);
      push(turns, holder);
    }
    push(line, visit);
    waiting++;
  };
}

/** Does the work in its turn. For what is small when it is made: see above on promises that wait. */
export async function inItsTurn<Made>(
  inTurn: Turnstile,
  { caller, request, response }: Polled,
  work: () => Promise<Made>,
): Promise<Made> {
  const { promise: turn, resolve: begin, reject } = Promise.withResolvers<() => void>();
  inTurn({
    holder: holderOf(caller, request),
    begin,
    isGone: () => response.destroyed,
    leave: () => reject(new PollEnded("hung-up")),
  });
  const over = await turn;
  try {
    return await work();
  } finally {
    over();
  }
}
