/**
 * Long work in slices: between two of them everything else has its turn.
 *
 * The work is a generator that yields after each small step, or what it has to wait for; how many steps make a slice is
 * decided here. So the same work is done in one go where nobody waits, and short work is done when the call returns.
 */
import { type Clock, nextTurn } from "./clock.ts";

/** A slice is over when this has passed; where time stands still meanwhile, after so many steps. */
const SLICE_MS = 4;
const SLICE_STEPS = 256;

/** What the steps come to. */
export async function inSlices<Done>(steps: Iterator<unknown, Done>, clock: Pick<Clock, "stopwatch">): Promise<Done> {
  const isOver = slicesOf(clock);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    if (step.value instanceof Promise) await step.value;
    else if (isOver()) await nextTurn();
  }
}

/** Answers after each step whether a slice ends with it. The next begins when it is asked for the first time. */
function slicesOf({ stopwatch }: Pick<Clock, "stopwatch">): () => boolean {
  let startedAt: number | null = null;
  let count = 0;
  return () => {
    count++;
    startedAt ??= stopwatch?.() ?? 0;
    if (stopwatch === undefined ? count < SLICE_STEPS : stopwatch() - startedAt < SLICE_MS) return false;
    startedAt = null;
    count = 0;
    return true;
  };
}

/** The same in one go. */
export function atOnce<Done>(steps: Iterator<unknown, Done>): Done {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}
