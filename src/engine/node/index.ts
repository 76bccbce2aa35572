/** What other layers may use of this room. */

export type { ClusterNode, ClusterView } from "./announcing.ts";
export type { AppliedHead, NodeLife, NodeRole } from "./lives.ts";
export { type DroverNode, type NodeOptions, openNode } from "./node.ts";
export { type NodeByUrlOptions, openNodeByUrl } from "./open-by-url.ts";
export { type ReplicaSource, replicaSource } from "./replica-source.ts";
