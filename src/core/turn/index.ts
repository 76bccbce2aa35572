/** What other layers may use of this room. */

export { setAside } from "./budget.ts";
export { chargeFor, sharesOf, shownLevel } from "./fairness.ts";
export { fitsNowhere, type Held, heldBy } from "./held.ts";
export {
  compareRanks,
  EXPRESS_PRIORITY,
  effectivePriority,
  isOverdue,
  shownScore,
  type TaskRank,
} from "./priority.ts";
export { countAhead, fixedOf, taskRank } from "./queue.ts";
export { compareProjects } from "./total-orders.ts";
