/** What other layers may use of this room. */

export { setAside } from "./budget.ts";
export { sharesOf, shownLevel } from "./fairness.ts";
export { compareRanks, effectivePriority, shownScore } from "./priority.ts";
export { countAhead, fixedOf, taskRank } from "./queue.ts";
