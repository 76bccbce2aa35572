/**
 * Trees that grow, as the state keeps them: of what a task submits while it runs (lifecycle/growth.ts).
 */

/** A tree that grows: a task that no running task submitted, and all that came of it while it ran. */
export type Tree = {
  /** The event that submitted its root. */
  readonly root: number;
  /** How many tasks have grown on it, also those that are forgotten. */
  grown: number;
};
/** What a task has to do with a tree that grows. */
export type Growth = {
  readonly tree: Tree;
  /** How many children it submitted while it ran, and how many of those have not ended. */
  children: number;
  open: number;
};
