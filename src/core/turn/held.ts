/**
 * What holds a queued task, as far as that is known at a glance: no worker that is here could ever run it, its budget
 * has no room for it, or no worker is here at all.
 *
 * It costs no look at any other task. Whoever wants to know everything asks why.
 */
import type { ReadonlyAgent, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { isAffordable, reserveFor, setAside } from "./budget.ts";

export type Held = {
  readonly by: "never-fits" | "budget" | "no-workers";
  /** When the clock alone ends it; null if that takes somebody. */
  readonly until: number | null;
};

const isAnyoneHere = ({ fleet }: ReadonlyState): boolean => fleet.order.some(({ status }) => status !== "unreachable");

/** Whether none of the workers could ever run these tasks. Without any worker nothing is said of a task. */
export const fitsNowhere = (state: ReadonlyState, { shape }: ReadonlyAgent["groups"][number]): boolean =>
  shape.demand.capable === 0 && isAnyoneHere(state);

/** Null for a task that is not queued, too. */
export function heldBy(state: ReadonlyState, task: ReadonlyTask, now: number): Held | null {
  if (task.group === null) return null;
  if (fitsNowhere(state, task.group)) return { by: "never-fits", until: null };
  const tokens = reserveFor(state, task);
  if (isAffordable(state, task.project, tokens, now))
    return isAnyoneHere(state) ? null : { by: "no-workers", until: null };
  const until = Math.max(
    roomAt(task.project, task.project.settings.budget.limit, tokens, now),
    roomAt(state, state.config.budget.limit, tokens, now),
  );
  return { by: "budget", until: until === Number.POSITIVE_INFINITY ? null : until };
}

/** When the clock alone makes room for so many tokens; never, if what is set aside and these exceed the limit. */
function roomAt(
  whose: Parameters<typeof setAside>[0] & Pick<ReadonlyState, "spent">,
  limit: number | null,
  tokens: number,
  now: number,
): number {
  if (limit === null) return now;
  const left = limit - setAside(whose) - tokens;
  return left < 0 ? Number.POSITIVE_INFINITY : whose.spent.belowAt(left + 1, now);
}
