/**
 * The other nodes as witnesses of this node's history.
 *
 * Each tells how far it is, and signs that with its own key, which is a fact of the log. Whoever has changed the
 * directory of one node, with its key at hand or a new one put there, has not changed what the others have signed.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import type { State } from "../../core/model/index.ts";
import { type Log, LogFailure } from "../../log/index.ts";
import { isVouchedBy, type NodeSeen } from "../../log/journal/index.ts";
import type { SharedLog } from "../../log/shared/index.ts";
import { hashAt } from "../snapshots/snapshotter.ts";

/** What other nodes say of a node's history. */
export type Witnessed = {
  /** Others that have signed this history, each up to an event. */
  readonly by: readonly { readonly node: string; readonly seq: number }[];
  /** Where others have signed another history, or did not sign what is told in their name. */
  readonly problems: readonly { readonly seq: Seq; readonly message: string }[];
};

type WitnessInput = { readonly log: SharedLog; readonly state: State; readonly self: string };

/** A journal that is out of reach has no witnesses. */
export async function witnessed({ log, state, self }: WitnessInput): Promise<Witnessed> {
  const { nodes: known } = state.cluster;
  const by: { node: string; seq: number }[] = [];
  const problems: { seq: Seq; message: string }[] = [];
  for (const seen of await othersOf(log, self)) {
    const key = known.get(seen.node)?.key;
    // Of an older version, or of a node whose key the leader has not yet taken down.
    if (key === undefined || seen.signature === undefined || seen.key !== key) continue;
    const found = await hashIn(log, seen.seq);
    if (!isVouchedBy(key, seen)) problems.push({ seq: seen.seq, message: notSigned(seen) });
    else if (found === seen.hash) by.push({ node: seen.node, seq: seen.seq });
    else if (found !== null) problems.push({ seq: seen.seq, message: otherHistory(seen, found) });
  }
  return { by, problems };
}

async function othersOf({ journal }: SharedLog, self: string): Promise<readonly NodeSeen[]> {
  try {
    return (await journal.nodes()).nodes.filter(({ node }) => node !== self);
  } catch (error) {
    if (error instanceof LogFailure && error.code === "unreachable") return [];
    throw error;
  }
}

/** Null where this node is not yet there, or no longer has it. */
async function hashIn(log: Log, at: Seq): Promise<string | null> {
  if (at === 0 || at > (await log.head()).seq) return null;
  try {
    return await hashAt(log, seq(at));
  } catch (error) {
    if (error instanceof LogFailure && error.code === "pruned") return null;
    throw error;
  }
}

const notSigned = ({ node, seq: at }: NodeSeen): string =>
  `what is told of node ${node} at event ${at} is not signed with the key that the log names for it`;
const otherHistory = ({ node, seq: at, hash }: NodeSeen, found: string): string =>
  `at ${at} the log has hash ${found}, and node ${node} has signed ${hash}: it has another history`;
