/** What other layers may use of this room. */

export { awaitedParent } from "./placement.ts";
export { fnv1a } from "./shape.ts";
export {
  actionName,
  commandIn,
  EXEC,
  EXEC_COMMAND,
  EXEC_WORKTREE,
  matches,
  takesSuch,
  workIn,
} from "./worker-filter.ts";
