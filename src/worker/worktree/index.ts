/** What other layers may use of this room. */

export {
  createWorktrees,
  findRepository,
  probeWorktree,
  type TreeRoom,
  WorkspaceRefusal,
  type Worktrees,
} from "./worktree.ts";
