/**
 * The nodes of a cluster, and the journal that they share.
 */
import type * as wire from "../generated/cluster.ts";
import * as s from "../schema/schema.ts";

const HASH = "^[0-9a-f]{64}$";
const seq = (about: string): s.Schema<number> => s.described(s.whole(0), about);
const hash = (about: string): s.Schema<string> => s.described(s.matching(HASH, "64 hex digits"), about);

const ROLES = "down: silent for some seconds; stopped: it has ended in order. Both are listed for an hour.";

const node: s.Schema<wire.ClusterNode> = s.answer({
  id: s.described(s.name(), "Its name: that of --node."),
  url: s.described(s.text(0, 2000), "Where other nodes and clients reach it."),
  role: s.described(s.oneOf("leader", "follower", "down", "stopped"), ROLES),
  epoch: s.described(s.whole(0), "How often the lead has changed, as far as it knows."),
  seq: seq("The last event that it has applied."),
  hash: hash("The hash of the chain there."),
  lagMs: s.described(s.whole(0), "For how long it had been behind the journal when it was heard of last."),
  heardMs: s.optional(
    s.whole(0),
    "How long ago it told this of itself, which it does every two seconds; 0 of the node that answers. What a leader " +
      "has is known from the journal, and is of now.",
  ),
  ageMs: s.optional(
    s.whole(0),
    "How long ago it was so, where nobody can say that it is so now: the journal is away, or has no room for its " +
      "word, or its word is late.",
  ),
  differs: s.optional(
    s.exactly(true),
    "The node that answers has another hash at that event: their histories differ. Stop one of them, and look.",
  ),
});
const member: s.Schema<wire.JournalMember> = s.answer({
  name: s.described(s.text(0, 256), "As it calls itself."),
  address: s.described(s.text(0, 2000), "Where it is."),
  isUp: s.described(s.flag(), "Whether it answers."),
});
const journal: s.Schema<wire.ClusterLog> = s.answer({
  kind: s.described(s.oneOf("memory", "etcd", "postgres"), "What keeps it."),
  address: s.described(s.text(0, 2000), "Where it is, without user and password."),
  version: s.optional(s.text(1, 256), "Of the product that keeps it."),
  seq: seq("The last event in it."),
  hash: hash("The hash of the chain there."),
  epoch: s.described(s.whole(0), "How often the lead has changed."),
  prunedTo: seq("It begins behind this event; nodes have what was before."),
  bytes: s.optional(s.whole(0), "How many it takes, if that is known."),
  awayMs: s.optional(s.whole(0), "For how long it has not answered this node; absent if it does."),
  ageMs: s.optional(
    s.whole(0),
    "How long ago it said what is told here of itself and of other nodes; absent if it answers.",
  ),
  readOnly: s.optional(s.text(1, 10_000), "Why it takes nothing; absent if it does, as far as this node knows."),
  warnings: s.described(s.list(s.text(1, 10_000)), "What is not as it should be, in sentences."),
  members: s.described(s.list(member), "The servers it runs on, where it knows of several."),
});
export const clusterView: s.Schema<wire.ClusterView> = s.namedAnswer("ClusterView", {
  nodes: s.described(s.list(node), "Sorted by id."),
  log: s.described(journal, "The journal that they share."),
});
