/**
 * Slots that all callers share, such as those of calls that wait.
 *
 * The last tenth of them is kept for holders that have few (reserve.ts), so no token takes all of them. A
 * slot that is needed may be given to anybody as long as there is one.
 */
import { isKeptForOthers } from "../core/base/index.ts";
import type { Holder } from "./tokens.ts";

type SharedSlots = {
  /** Answers how to give the slots back; null if there are not as many for this holder. */
  take(holder: Holder, options?: { readonly isNeeded?: boolean; readonly slots?: number }): (() => void) | null;
  count(): number;
};

export function createSharedSlots(max: number): SharedSlots {
  const held = new Map<Holder, number>();
  let count = 0;

  function giveBack(holder: Holder, slots: number): void {
    const mine = (held.get(holder) as number) - slots;
    if (mine === 0) held.delete(holder);
    else held.set(holder, mine);
    count -= slots;
  }

  return {
    take(holder, { isNeeded = false, slots = 1 } = {}) {
      const mine = held.get(holder) ?? 0;
      if (count + slots > max || (!isNeeded && isKeptForOthers(max, count, mine))) return null;
      held.set(holder, mine + slots);
      count += slots;
      return () => giveBack(holder, slots);
    },
    count: () => count,
  };
}
