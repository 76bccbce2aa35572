/** What other layers may use of this room. */

export type { AppliedHead, NodeLife, NodeRole, SharedLog } from "./lives.ts";
export { type DroverNode, type NodeOptions, openNode } from "./node.ts";
