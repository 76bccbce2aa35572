/** What other layers may use of this room: the calls by tag. */

export type * from "./calls.ts";
export type { ClusterCalls, ServerCalls } from "./server-calls.ts";
