/** What other layers may use of this room. */

export { cleanTree, findTrees, type LeftTree, mergeInto, patchOf, relocateTrees } from "./left-trees.ts";
export { WorkspaceRefusal } from "./refusal.ts";
export { createWorktrees, findRepository, probeWorktree, type TreeRoom, type Worktrees } from "./worktree.ts";
