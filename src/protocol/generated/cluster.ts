/**
 * Types of the wire: those of shapes/cluster.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** All nodes of a cluster, and their journal. */
export type ClusterView = {
  /** Sorted by id. */
  readonly nodes: readonly ClusterNode[];
  /** The journal that they share. */
  readonly log: ClusterLog;
};

/** A node of a cluster, as another one sees it. */
export type ClusterNode = {
  /** Its name: that of --node. */
  readonly id: string;
  /** Where other nodes and clients reach it. */
  readonly url: string;
  /** down: silent for some seconds; stopped: it has ended in order. Both are listed for an hour. */
  readonly role: "leader" | "follower" | "down" | "stopped";
  /** How often the lead has changed, as far as it knows. */
  readonly epoch: number;
  /** The last event that it has applied. */
  readonly seq: number;
  /** The hash of the chain there. */
  readonly hash: string;
  /** For how long it had been behind the journal when it was heard of last. */
  readonly lagMs: number;
  /**
   * How long ago it told this of itself, which it does every two seconds; 0 of the node that answers.
   * What a leader has is known from the journal, and is of now.
   */
  readonly heardMs?: number;
  /**
   * How long ago it was so, where nobody can say that it is so now: the journal is away, or has no room
   * for its word, or its word is late.
   */
  readonly ageMs?: number;
  /**
   * The node that answers has another hash at that event: their histories differ. Stop one of them, and
   * look.
   */
  readonly differs?: true;
};

/** The journal that they share. */
export type ClusterLog = {
  /** What keeps it. */
  readonly kind: "memory" | "etcd" | "postgres";
  /** Where it is, without user and password. */
  readonly address: string;
  /** Of the product that keeps it. */
  readonly version?: string;
  /** The last event in it. */
  readonly seq: number;
  /** The hash of the chain there. */
  readonly hash: string;
  /** How often the lead has changed. */
  readonly epoch: number;
  /** It begins behind this event; nodes have what was before. */
  readonly prunedTo: number;
  /** How many it takes, if that is known. */
  readonly bytes?: number;
  /** For how long it has not answered this node; absent if it does. */
  readonly awayMs?: number;
  /** How long ago it said what is told here of itself and of other nodes; absent if it answers. */
  readonly ageMs?: number;
  /** Why it takes nothing; absent if it does, as far as this node knows. */
  readonly readOnly?: string;
  /** What is not as it should be, in sentences. */
  readonly warnings: readonly string[];
  /** The servers it runs on, where it knows of several. */
  readonly members: readonly JournalMember[];
};

/** A server that keeps a journal. */
export type JournalMember = {
  /** As it calls itself. */
  readonly name: string;
  /** Where it is. */
  readonly address: string;
  /** Whether it answers. */
  readonly isUp: boolean;
};
