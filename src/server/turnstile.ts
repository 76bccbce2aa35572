/**
 * So many at a time, in the order they came.
 *
 * An answer is many times as large while it is made as when it leaves. Whoever asks for a thousand pages at once must
 * not have a thousand of them made at once, so what is large is made a few at a time. A place is free again in the next
 * turn of the event loop: then what was made has left, and what is small and came meanwhile has gone first.
 *
 * Whoever waits is a function and not a promise. A promise that has waited is old, and what is made for it would be
 * kept alive by it until the next collection of everything old: page upon page, hundreds of megabytes of them.
 */
import { type Fifo, fifo, push, shift } from "../core/fifo.ts";

/** Begins the work, now or when its turn comes; the work says when it is over. */
export type Turnstile = (begin: (over: () => void) => void) => void;

export function createTurnstile(atOnce: number): Turnstile {
  const waiting: Fifo<(over: () => void) => void> = fifo();
  let room = atOnce;
  const over = (): void => void setImmediate(giveUpPlace);

  function giveUpPlace(): void {
    const next = shift(waiting);
    if (next === undefined) room++;
    else next(over);
  }

  return (begin) => {
    if (room === 0) return push(waiting, begin);
    room--;
    begin(over);
  };
}
