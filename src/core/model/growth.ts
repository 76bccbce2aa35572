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
  /** How many children it submitted while it ran. */
  children: number;
  /** How many tasks that grew below it, at any depth, have not ended. */
  open: number;
};
/** Of a task that is not done before all that grew below it has ended. */
export type Wait = {
  /** What its attempt has answered, from then until the task has ended or runs again. */
  answer: Answer | null;
};
/** What an attempt left that was done, and the event that says so. */
export type Answer = {
  readonly attempt: number;
  readonly seq: number;
  readonly resultHash: string | null;
  readonly resultSize: number;
};
