/**
 * The headers by which nodes of a cluster and their callers speak about the log: how far it is, and who leads.
 *
 * A caller that sends the highest seq it was told as `X-Drover-After` sees its own writes on every node.
 */

/** On a request: a node has sent it on, and this is its id. It is sent on once. */
export const FORWARDED_HEADER = "x-drover-forwarded";
/** On a read: the number of an event that is to be applied before it is answered. */
export const AFTER_HEADER = "x-drover-after";
/** For how long such a read is held back at most. */
export const AFTER_WAIT_MS = 5000;

/** On an answer: where the leader is reached. */
export const LEADER_HEADER = "x-drover-leader";
/** On an answer: the number of an event that is durable. All that a write has changed is at or below it. */
export const SEQ_HEADER = "x-drover-seq";
/** On the answer of a node that follows: for how long it may have missed what the leader has done, in milliseconds. */
export const AGE_HEADER = "x-drover-age-ms";
