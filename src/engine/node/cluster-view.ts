/**
 * The cluster as one node sees it: who leads, how far each node is, how the journal is.
 *
 * Of other nodes it has their last word, which may be two seconds old, and tells how old each is. What follows from
 * it for now is said, and no more: a node that had all then is not behind because others have written since; a
 * leader has all that the journal has; where a word is older than it should be, nobody can say that it is so now. A
 * node that ends in order says so in its last word, and is not waited for. Where the journal does not answer, this
 * is what it said last, of itself and of the nodes at one time, with how long ago that was, and a warning. So that
 * it is never old, it is asked whenever this node tells of itself. Where it has no room for what nodes tell, their
 * silence says nothing: they are what they were, with how long ago that was.
 */
import { seq } from "../../core/base/index.ts";
import { LogFailure } from "../../log/index.ts";
import { type JournalHealth, type LeadSeen, type NodeSeen, type NodesSeen, passes } from "../../log/journal/index.ts";
import type { SharedLog } from "../../log/shared/index.ts";
import type { ClusterNode } from "../../protocol/index.ts";
import { answerWithin, type Clock } from "../../std/index.ts";
import { DroverError } from "../base/drover-error.ts";
import { hashAt } from "../snapshots/snapshotter.ts";
import { awayText, type JournalReach } from "./journal-reach.ts";
import type { ReadOnly } from "./read-only.ts";

/** How often a node tells of itself. */
export const ANNOUNCE_MS = 2000;
/** A node that was silent for so long is down, as far as others can tell. */
export const DOWN_MS = 7000;
/**
 * A word that is older is late: nobody can say that it is still so. One that has said nothing for so long since the
 * lead was lost is down: it may be the one that had it.
 */
const LATE_MS = 3000;
/** A journal that takes longer is not waited for: what is known is shown. */
const ANSWER_MS = 2000;

/** All nodes, and the health of their journal. */
export type ClusterView = {
  readonly nodes: readonly ClusterNode[];
  readonly log: JournalHealth & {
    /** For how long it has not answered; absent if it does. */
    readonly awayMs?: number;
    /** How long ago it said all this, and what is told of other nodes; absent if it answers. */
    readonly ageMs?: number;
    /** Why it takes nothing; absent if it does, as far as this node knows. */
    readonly readOnly?: string;
  };
};

/** What the journal has said, all at about one time, by `clock.elapsed`. */
type Said = NodesSeen & { readonly health: JournalHealth; readonly at: number };

export type ViewDeps = {
  readonly log: SharedLog;
  readonly clock: Clock;
  readonly reach: JournalReach;
  readonly readOnly: ReadOnly;
  /** This node, as it would tell of itself now. */
  readonly own: () => NodeSeen;
  readonly leads: () => boolean;
  /** How long ago this node had all that the journal had, for sure. */
  readonly ageMs: () => number;
};

export function createClusterView({ log, clock, reach, readOnly, own, leads, ageMs }: ViewDeps): {
  view(): Promise<ClusterView>;
  /** Takes what the journal has just said of the nodes, and what it says of itself, to be shown when it is away. */
  learn(seen: NodesSeen): void;
} {
  const { journal } = log;
  let said: Said | null = null;
  let underWay: Promise<Said> | null = null;

  async function askJournal(known: NodesSeen | null): Promise<Said> {
    const at = clock.elapsed();
    // In this order: no node has more than the journal has when it is asked for that.
    const seen = known ?? (await journal.nodes());
    said = { ...seen, health: await journal.describe(), at };
    reach.answered();
    return said;
  }
  /** However many want to know: one question at a time. */
  function asked(known: NodesSeen | null = null): Promise<Said> {
    underWay ??= askJournal(known).finally(() => {
      underWay = null;
    });
    return underWay;
  }

  async function known(): Promise<Said> {
    if (said !== null && reach.away() !== null) return said;
    try {
      return await answerWithin(clock, ANSWER_MS, asked(), noAnswer);
    } catch (error) {
      reach.failed(error);
      if (!passes(error)) throw error;
      if (said !== null) return said;
      throw new DroverError("log_failed", error.message, { cause: error, details: { log: error.code } });
    }
  }

  async function view(): Promise<ClusterView> {
    const { lead, nodes, health, at: saidAt } = await known();
    const away = reach.away();
    const self = own();
    const isNewer = self.seq > health.head.seq;
    const head = isNewer ? { ...health.head, seq: self.seq, hash: self.hash } : health.head;
    const all = [...nodes.filter(({ node }) => node !== self.node), self].sort((a, b) => (a.node < b.node ? -1 : 1));
    const silentMs = readOnly.forMs();
    const roleNow = (seen: NodeSeen): ClusterNode["role"] => {
      if (seen !== self || away === null) return roleOf({ ...seen, ageMs: Math.max(0, seen.ageMs - silentMs) }, lead);
      return leads() ? "leader" : "follower";
    };
    /** How long ago it was so, if nobody can say that it is so now. */
    const sinceWhen = (seen: NodeSeen, role: ClusterNode["role"]): { readonly ageMs?: number } => {
      if (seen === self) return {};
      if (away !== null) return { ageMs: clock.elapsed() - saidAt };
      const isUnsure =
        silentMs > 0 ? seen.ageMs > DOWN_MS && lead?.node !== seen.node : seen.ageMs > LATE_MS && isUp(role);
      return isUnsure ? { ageMs: seen.ageMs } : {};
    };
    const heardMs = (seen: NodeSeen): number =>
      seen === self ? 0 : seen.ageMs + (away === null ? 0 : clock.elapsed() - saidAt);
    const lagNow = (seen: NodeSeen, role: ClusterNode["role"]): number => {
      if (role === "leader") return 0;
      return seen === self && away !== null ? ageMs() : lagOf(seen, head.seq);
    };
    const shown = all.map(async (seen): Promise<ClusterNode> => {
      const { node: id, url, epoch, hash, seq: at } = seen;
      const role = roleNow(seen);
      const differs = (await isOther(at, hash)) ? { differs: true as const } : {};
      // It has said of itself where it was; all that was written since, it wrote.
      const place = role === "leader" && !("differs" in differs) ? head : seen;
      const when = { lagMs: lagNow(seen, role), heardMs: heardMs(seen), ...sinceWhen(seen, role) };
      return { id, url, role, epoch, seq: place.seq, hash: place.hash, ...when, ...differs };
    });
    const old = away === null ? {} : { awayMs: away.forMs, ageMs: clock.elapsed() - saidAt };
    const isOut = away === null ? [] : [outOfReach(awayText(away), clock.elapsed() - saidAt)];
    const ofNodes = all.filter((seen) => isUp(roleNow(seen))).flatMap(wordsOf);
    const warnings = [...isOut, ...silence(), ...health.warnings, ...ofNodes];
    const reason = readOnly.reason();
    const isFull = reason === null ? {} : { readOnly: reason };
    return { nodes: await Promise.all(shown), log: { ...health, head, warnings, ...old, ...isFull } };
  }

  /** What a journal without room does to this view. */
  function silence(): string[] {
    const reason = readOnly.reason();
    return reason === null ? [] : [`READ-ONLY: ${reason} Meanwhile nodes cannot say that they are up.`];
  }

  /** Whether this node has another hash there; what it does not have it cannot compare. */
  async function isOther(at: number, hash: string): Promise<boolean> {
    if (at === 0 || at > own().seq) return false;
    const here = await hashAt(log, seq(at)).catch(() => hash);
    return here !== hash;
  }

  return {
    view,
    learn: (seen) => void asked(seen).catch(reach.failed),
  };
}

const isUp = (role: ClusterNode["role"]): boolean => role === "leader" || role === "follower";

const wordsOf = ({ node, warnings = [] }: NodeSeen): string[] => warnings.map((text) => `node ${node}: ${text}`);

const outOfReach = (text: string, ageMs: number): string =>
  `${text} Until it is back, this node can be read; a change goes through only if it reaches a node that leads. ` +
  `The log and the other nodes are shown as they were ${Math.round(ageMs / 1000)} s ago.`;

function roleOf({ node, epoch, ageMs, isStopped }: NodeSeen, lead: LeadSeen | null): ClusterNode["role"] {
  if (isStopped) return "stopped";
  if (lead?.node === node) return "leader";
  const hasSpokenSince = lead !== null && epoch >= lead.epoch;
  return ageMs > (hasSpokenSince ? DOWN_MS : LATE_MS) ? "down" : "follower";
}

/** That of its last word, and for how long it owes us the next. */
const lagOf = ({ seq: at, behindMs = 0, ageMs }: NodeSeen, last: number): number =>
  at >= last ? 0 : behindMs + Math.max(0, ageMs - ANNOUNCE_MS);

const noAnswer = (): LogFailure => new LogFailure("unreachable", `it did not answer within ${ANSWER_MS} ms`);
