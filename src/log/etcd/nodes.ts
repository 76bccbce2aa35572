/**
 * What nodes tell of themselves: a key for each, under a lease of an hour that every word renews.
 *
 * How old a word is, is read from what is left of its lease: by the clock of etcd, which is one for all. etcd gives
 * leases anew in full when it gets another leader; so a handle also remembers since when it sees the same word, and the
 * longer of the two counts.
 */
import type { Clock } from "../../std/index.ts";
import { createWordReading, type KeptWord, NODES_MAX, WORD_BYTES_MAX } from "../journal/announcement.ts";
import { NODE_KEPT_MS, type NodeAnnouncement, type NodesSeen } from "../journal/journal.ts";
import type { KeyValue } from "./answers.ts";
import { makeHead } from "./appending.ts";
import type { EtcdClient } from "./client.ts";
import type { Forgetting } from "./forgetting.ts";
import { type Keys, readLead, recordIn } from "./records.ts";

const SECOND_MS = 1000;

type NodesInput = {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly forgetting: Forgetting;
  readonly onNotice: (line: string) => void;
};

export type Nodes = {
  announce(told: NodeAnnouncement): Promise<void>;
  nodes(): Promise<NodesSeen>;
};

export function createNodes({ client, keys, clock, forgetting, onNotice }: NodesInput): Nodes {
  const read = createWordReading(onNotice);
  let lease: string | null = null;
  let isHeadMade = false;
  /** By key: the revision of the last word, and when this handle first saw it. */
  let seen = new Map<string, { readonly revision: number; readonly since: number }>();

  async function announce(told: NodeAnnouncement): Promise<void> {
    if (!isHeadMade) await makeHead({ client, keys });
    isHeadMade = true;
    if (lease === null || !(await client.keepAlive(lease))) lease = await client.grantLease(NODE_KEPT_MS / SECOND_MS);
    forgetting.wrote(await client.put(keys.node(told.node), Buffer.from(JSON.stringify(told), "utf8"), lease));
  }

  async function nodes(): Promise<NodesSeen> {
    const ranges = [{ range: { ...keys.nodes, limit: NODES_MAX } }, { range: { key: keys.lead } }];
    const answer = await client.txn({ compare: [], success: ranges });
    const [found = [], [lead] = []] = answer.ranges;
    const now = clock.elapsed();
    seen = new Map(
      found.map(({ key, modRevision: revision }) => {
        const before = seen.get(key);
        return [key, before?.revision === revision ? before : { revision, since: now }];
      }),
    );
    const words = await Promise.all(found.map(wordIn));
    return {
      lead: lead === undefined ? null : readLead(lead.value),
      nodes: read(words),
      count: answer.revision,
    };
  }
  async function wordIn(each: KeyValue): Promise<KeptWord> {
    const told = each.value.length > WORD_BYTES_MAX ? null : recordIn(each.value);
    return { name: keys.nameIn(each.key), told, ageMs: Math.max(watched(each), await aged(each)) };
  }
  const watched = ({ key }: KeyValue): number => clock.elapsed() - (seen.get(key)?.since ?? clock.elapsed());
  async function aged({ lease: of }: KeyValue): Promise<number> {
    const time = await client.timeToLive(of);
    // Whole seconds, rounded down: the word may be almost a second younger.
    return time === null ? 0 : Math.max(0, time.granted - time.left - 1) * SECOND_MS;
  }

  return { announce, nodes };
}
