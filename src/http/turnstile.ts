/**
 * So many at a time, in the order they came.
 *
 * An answer is many times as large while it is made as when it leaves. Whoever asks for a thousand pages at once must
 * not have a thousand of them made at once, so what is large is made a few at a time. A place is free again in the next
 * turn of the event loop: then what was made has left, and what is small and came meanwhile has gone first.
 *
 * Nothing is made for a caller that has hung up: it is passed over when its turn comes. The line has an end, and where
 * it is reached those that have gone leave it first, so they keep nobody out.
 *
 * Whoever waits is a function and not a promise. A promise that has waited is old, and what is made for it would be
 * kept alive by it until the next collection of everything old: page upon page, hundreds of megabytes of them.
 */
import { type Fifo, fifo, push, retain, shift } from "../core/collections/index.ts";
import { ServerRefusal } from "./problem.ts";

export type Visit = {
  /** Begins the work; the work says when it is over. */
  begin(over: () => void): void;
  /** Whether nobody waits for it any more. */
  isGone(): boolean;
  /** It was passed over. */
  leave(): void;
};
/** The visit begins now or when its turn comes. Throws if the line is full. */
export type Turnstile = (visit: Visit) => void;

const LINE_MAX = 1000;

export function createTurnstile(atOnce: number, lineMax: number = LINE_MAX): Turnstile {
  const waiting: Fifo<Visit> = fifo();
  let room = atOnce;
  const over = (): void => void setImmediate(giveUpPlace);

  /** Answers whether it has gone, and then it has left. */
  function hasLeft(visit: Visit): boolean {
    const isGone = visit.isGone();
    if (isGone) visit.leave();
    return isGone;
  }

  function giveUpPlace(): void {
    let next = shift(waiting);
    while (next !== undefined && hasLeft(next)) next = shift(waiting);
    if (next === undefined) room++;
    else next.begin(over);
  }

  return (visit) => {
    if (room > 0) {
      room--;
      return visit.begin(over);
    }
    if (waiting.length >= lineMax) retain(waiting, (other) => !hasLeft(other));
    if (waiting.length >= lineMax)
      throw new ServerRefusal(
        "overloaded",
        `${lineMax} calls of this kind wait for their turn already; try again later`,
      );
    push(waiting, visit);
  };
}
