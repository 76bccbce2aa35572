/**
 * What nodes know of each other: each tells of itself every two seconds and when its role changes, and the journal
 * keeps that for an hour. The leader takes down in the log who there is, and with which key each signs, and drops of
 * the journal what they have.
 */
import { seq } from "../../core/base/index.ts";
import type { JournalHealth, NodeSeen } from "../../log/journal/index.ts";
import type { SharedLog } from "../../log/shared/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import { DroverError } from "../base/drover-error.ts";
import { hashAt } from "../snapshots/snapshotter.ts";
import type { AppliedHead, NodeFacts } from "./lives.ts";
import type { ReadOnly } from "./read-only.ts";

export const ANNOUNCE_MS = 2000;
/** Of a node that is further behind, only the oldest count. */
const MARKS_MAX = 30;
/** How often a leader drops of the journal what the nodes have. */
const PRUNE_MS = 60_000;
/** A node that was silent for so long is down, as far as others can tell. */
export const DOWN_MS = 7000;

/** A node as this one sees it. */
export type ClusterNode = {
  readonly id: string;
  readonly url: string;
  readonly role: "leader" | "follower" | "down";
  readonly epoch: number;
  /** The last event it has applied, and the chain's hash there. */
  readonly seq: number;
  readonly hash: string;
  /** For how long it has been behind the journal, as far as is known. */
  readonly lagMs: number;
  /** At that event this node has another hash: their histories differ. */
  readonly differs?: true;
};
/** All nodes, and the health of their journal. */
export type ClusterView = { readonly nodes: readonly ClusterNode[]; readonly log: JournalHealth };

/** A node, and where it is reached. */
export type NodePlace = { readonly id: string; readonly url: string };

export type Announcing = {
  /** Tells of this node now. */
  tell(): Promise<void>;
  view(): Promise<ClusterView>;
  /** Other nodes that are not down, as far as this one has heard. */
  peers(): readonly NodePlace[];
  /** How long ago this node had all that the journal had, for sure. */
  ageMs(): number;
  /** Resolves when another process, begun earlier, is this node too: this one must end. */
  readonly twin: Promise<DroverError>;
  /** Something was applied. */
  onApplied(): void;
  stop(): void;
};

export function startAnnouncing(deps: {
  readonly log: SharedLog;
  readonly clock: Clock;
  /** When the log began to be opened: what the journal had then, this node has. */
  readonly openedAt: number;
  /** Which start of the node this is: of two, the later is the greater as text. */
  readonly start: string;
  readonly self: () => NodeFacts;
  readonly applied: () => AppliedHead;
  /** What nodes tell of themselves, for a leader to take down. */
  readonly onSeen: (nodes: readonly NodeSeen[]) => void;
  /** Whether this node leads for sure: then it also prunes the journal. */
  readonly leads: () => boolean;
  readonly readOnly: ReadOnly;
}): Announcing {
  const { log, clock, start, self, applied, readOnly } = deps;
  const { journal } = log;
  const twins = createTwinWatch(self, start);
  let upToDateAt = deps.openedAt;
  /** Where the journal was when it was asked, as far as that is not applied here. The newest is the last. */
  const marks: { readonly at: number; readonly seq: number }[] = [];
  /** What others told, and when, by `clock.elapsed`. */
  let heard: readonly (NodePlace & { readonly at: number })[] = [];
  let pruneAt = clock.elapsed() + PRUNE_MS;
  let isStopped = false;
  let cancel = ringAfter(clock, ANNOUNCE_MS, goOn, { keepAlive: false });

  async function goOn(): Promise<void> {
    await tell();
    if (!isStopped) cancel = ringAfter(clock, ANNOUNCE_MS, goOn, { keepAlive: false });
  }

  /** A journal that has no room for it can still be read. */
  async function announce(head: { readonly seq: number }): Promise<void> {
    const { id: node, url, key } = self();
    try {
      await journal.announce({ node, url, key, ...applied(), stored: log.stored(), behindMs: behindNow(head), start });
      twins.told();
      readOnly.heard();
    } catch (error) {
      if (!readOnly.isFull(error, head.seq)) throw error;
    }
  }

  async function tell(): Promise<void> {
    try {
      const askedAt = clock.elapsed();
      const head = await journal.head();
      if (marks.length < MARKS_MAX) marks.push({ at: askedAt, seq: head.seq });
      passMarks();
      const { nodes } = await journal.nodes();
      twins.look(nodes);
      await announce(head);
      const now = clock.elapsed();
      heard = nodes.map(({ node: id, url, ageMs }) => ({ id, url, at: now - ageMs }));
      deps.onSeen(nodes);
      // Nobody leads over a full journal, and to prune it may be what makes room.
      if ((deps.leads() || readOnly.reason() !== null) && askedAt >= pruneAt) {
        pruneAt = askedAt + PRUNE_MS;
        await log.pruneJournal(self().id);
      }
    } catch {
      // Out of reach: others see for how long this node has said nothing, and what waits for the journal says so.
    }
  }

  /** A batch that comes in may be an old one: only what the journal had when it was asked says how far this node is. */
  function passMarks(): void {
    const { seq: at } = applied();
    for (let [first] = marks; first !== undefined && first.seq <= at; [first] = marks) {
      upToDateAt = Math.max(upToDateAt, first.at);
      marks.shift();
    }
  }

  async function view(): Promise<ClusterView> {
    const [{ lead, nodes }, health] = await Promise.all([journal.nodes(), journal.describe()]);
    const { id, url } = self();
    const behindMs = behindNow(health.head);
    const own: NodeSeen = { node: id, url, ...applied(), stored: log.stored(), behindMs, ageMs: 0 };
    const all = [...nodes.filter(({ node }) => node !== id), own].sort((a, b) => (a.node < b.node ? -1 : 1));
    const shown = all.map(async (seen): Promise<ClusterNode> => {
      const { node, seq: at, hash, epoch, behindMs = 0, ageMs } = seen;
      const role = lead?.node === node ? "leader" : ageMs > DOWN_MS ? "down" : "follower";
      const lagMs = at >= health.head.seq ? 0 : behindMs + ageMs;
      const differs = await isOther(at, hash);
      return { id: node, url: seen.url, role, epoch, seq: at, hash, lagMs, ...(differs ? { differs } : {}) };
    });
    return { nodes: await Promise.all(shown), log: { ...health, warnings: [...health.warnings, ...silence()] } };
  }

  /** What a journal without room does to this view. */
  function silence(): string[] {
    const reason = readOnly.reason();
    return reason === null ? [] : [`READ-ONLY: ${reason} Meanwhile nodes cannot say that they are up.`];
  }

  /** Whether this node has another hash there; what it does not have it cannot compare. */
  async function isOther(at: number, hash: string): Promise<boolean> {
    if (at === 0 || at > applied().seq) return false;
    const own = await hashAt(log, seq(at)).catch(() => hash);
    return own !== hash;
  }

  function stop(): void {
    isStopped = true;
    cancel();
  }
  void twins.found.then(stop);

  const ageNow = (): number => Math.max(0, clock.elapsed() - upToDateAt);
  const behindNow = (head: { readonly seq: number }): number => (applied().seq >= head.seq ? 0 : Math.ceil(ageNow()));

  return {
    tell,
    view,
    peers: () => heard.filter(({ id, at }) => id !== self().id && clock.elapsed() - at <= DOWN_MS),
    ageMs: ageNow,
    twin: twins.found,
    onApplied: () => {
      passMarks();
      readOnly.committed(applied().seq);
    },
    stop,
  };
}

/** What is told late by a process that has ended comes once. */
const TWIN_SEEN = 2;

/**
 * Two processes that are one node (a data directory that was copied) would take the lead from each other for ever. Each
 * tells of itself in the same place, so what stands there of another start, after this one has told, is of a twin.
 */
function createTwinWatch(self: () => NodeFacts, start: string) {
  const found = Promise.withResolvers<DroverError>();
  let hasTold = false;
  let seen = 0;
  return {
    found: found.promise,
    told(): void {
      hasTold = true;
    },
    look(nodes: readonly NodeSeen[]): void {
      const { id } = self();
      const there = nodes.find(({ node }) => node === id);
      if (!hasTold || there?.start === undefined || there.start >= start) return;
      if (++seen === TWIN_SEEN) found.resolve(isTwin(id, there.url));
    },
  };
}

const isTwin = (id: string, url: string): DroverError =>
  new DroverError(
    "log_failed",
    `another process is node ${id} too, the one at ${url}, and was so before this one. ` +
      "Give this one a name and a data directory of its own; a copy of another node's directory is none.",
    { details: { log: "refused" } },
  );
