/**
 * How far a journal may be pruned.
 *
 * What a majority of the nodes has on disk can be had from them; only that may go. Those count that have told of
 * themselves within the hour, and this one: a node that is silent for longer may be gone for good, and ids of replaced
 * machines must not keep a journal from ever being pruned. So a node alone prunes below its own. Beyond that, a node
 * that is not far behind is waited for: what it reads next stays. One that is further behind, or was away for long,
 * gets the rest from another node. Where the journal has become large, only the majority counts.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import type { JournalHealth, NodeSeen } from "./journal.ts";

/** A node that is behind by no more events is waited for. */
const BEHIND_EVENTS_MAX = 100_000;
/** A journal of so many bytes waits for nobody: half of what etcd takes unless it is told otherwise. */
const LARGE_BYTES: number = 1024 * 1024 * 1024;

type Standing = {
  /** As the journal has them. This node's own word may be old, and is not looked at. */
  readonly nodes: readonly Pick<NodeSeen, "node" | "stored">[];
  readonly self: string;
  /** What this node has on disk now. */
  readonly stored: Seq;
  readonly journal: Pick<JournalHealth, "head" | "bytes">;
};

/** The last event that need not stay. */
export function prunableSeq({ nodes, self, stored, journal }: Standing): Seq {
  const others = nodes.filter(({ node }) => node !== self).map((node) => node.stored);
  const have = [...others, stored].sort((left, right) => right - left);
  const ofMajority = have[Math.floor(have.length / 2)] ?? seq(0);
  if ((journal.bytes ?? 0) > LARGE_BYTES) return ofMajority;
  const near = have.filter((at) => at >= journal.head.seq - BEHIND_EVENTS_MAX);
  return seq(Math.min(ofMajority, ...near));
}
