/** What other layers may use of this room. */

export { answerIn, isQuestion, type NodeWord, newQuestion, WORD_MS, WORD_PATH } from "../../log/shared/index.ts";
export { type ClusterView, DOWN_MS } from "./cluster-view.ts";
export { awayText } from "./journal-reach.ts";
export type { AppliedHead, NodeLife, NodeRole } from "./lives.ts";
export { type DroverNode, type NodeOptions, openNode } from "./node.ts";
export { type NodeByUrlOptions, openNodeByUrl } from "./open-by-url.ts";
export { type ReplicaSource, replicaSource } from "./replica-source.ts";
export type { Witnessed } from "./witnesses.ts";
