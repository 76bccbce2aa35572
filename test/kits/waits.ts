/**
 * Waiting in tests: for an event, for something to be so, for turns of the event loop.
 *
 * A wait that ends by an event alone hangs when the event does not come. These say what was waited for and fail. The
 * limit is far above what any machine needs, so that it decides nothing else.
 */
import { nextTurn } from "../../src/std/clock.ts";

const LIMIT_MS = 60_000;
/** Those of the machine, whatever a test puts in their place. */
const { setTimeout, clearTimeout } = globalThis;
/** So many looks one turn apart, and no longer; what is still not so then waits for others, who need the core more. */
const QUICK_LOOKS = 200;
const QUICK_MS = 20;
/** Between further looks: more each time, so that what takes seconds is not asked for a thousand times. */
const LOOK_MS = 5;
const LOOK_MS_MAX = 25;

/** What the promise gives, or an error that says what did not come. */
export async function within<Value>(what: string, awaited: Promise<Value>, limitMs: number = LIMIT_MS): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${limitMs / 1000} s have passed without ${what}`)), limitMs);
  try {
    return await Promise.race([awaited, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks until it is so. `look` is what is done before each further look, such as a call that takes a while. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  look: () => Promise<unknown> = restingMore(),
  limitMs: number = LIMIT_MS,
): Promise<void> {
  let isLate = false;
  const looking = async (): Promise<void> => {
    while (!(await isSo()) && !isLate) await look();
  };
  await within(what, looking(), limitMs).finally(() => {
    isLate = true;
  });
}

/** A turn between the first looks, a pause between all that follow. */
function restingMore(): () => Promise<unknown> {
  const quickUntil = performance.now() + QUICK_MS;
  let looks = 0;
  let pauseMs = LOOK_MS;
  return () => {
    if (++looks <= QUICK_LOOKS && performance.now() < quickUntil) return nextTurn();
    pauseMs = Math.min(pauseMs + 1, LOOK_MS_MAX);
    return new Promise((resolve) => setTimeout(resolve, pauseMs));
  };
}

/** What comes in and is taken out one by one, in the order it came. */
export type Inbox<Item> = { put(item: Item): void; next(): Promise<Item> };
export function inbox<Item>(what: string): Inbox<Item> {
  const items: Item[] = [];
  const asked: ((item: Item) => void)[] = [];
  return {
    put(item) {
      const take = asked.shift();
      if (take === undefined) items.push(item);
      else take(item);
    },
    next() {
      if (items.length > 0) return Promise.resolve(items.shift() as Item);
      const { promise, resolve } = Promise.withResolvers<Item>();
      asked.push(resolve);
      return within(what, promise);
    },
  };
}

/** A few turns of the event loop: long enough for everything that waits for nothing outside. */
export async function fewTurns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn();
}

/** Whether a promise is still open after a few turns. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const done = (): void => {
    pending = false;
  };
  promise.then(done, done);
  await fewTurns();
  return pending;
}

/** How often the event loop turns until the work is done. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work.finally(() => {
    isOver = true;
  });
  return turns;
}
