/**
 * What a worker has for tasks beside its slots, and how much of it is taken.
 */

/** Of CPU in millicores, of memory in bytes, of tasks with a worktree at once. Infinity: as much as is asked for. */
export type Room = {
  cpu: number;
  memory: number;
  /** It changes as trees are kept and removed. */
  worktrees: number;
};
/** What the attempts of a worker take of it. */
export type UsedRoom = { usedCpu: number; usedMemory: number; usedWorktrees: number };
