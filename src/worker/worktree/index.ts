/** What other layers may use of this room. */

export { WorkspaceRefusal } from "./refusal.ts";
export { createWorktrees, findRepository, probeWorktree, type TreeRoom, type Worktrees } from "./worktree.ts";
