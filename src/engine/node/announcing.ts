/**
 * What nodes know of each other: each tells of itself every two seconds, when its role changes and when it ends, and
 * the journal keeps that for an hour. The leader takes down in the log who there is, and with which key each signs, and
 * drops of the journal what they have.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { type NodeSeen, type NodesSeen, vouchFor } from "../../log/journal/index.ts";
import type { SharedLog, Signer } from "../../log/shared/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import { DroverError } from "../base/drover-error.ts";
import { ANNOUNCE_MS, type ClusterView, createClusterView, DOWN_MS } from "./cluster-view.ts";
import { createJournalReach, type JournalReach } from "./journal-reach.ts";
import type { AppliedHead, NodeFacts } from "./lives.ts";
import type { OwnWarnings } from "./own-warnings.ts";
import type { ReadOnly } from "./read-only.ts";

/** Of a node that is further behind, only the oldest count. */
const MARKS_MAX = 30;
/** What a journal takes longer to write or to read says nothing of clocks: it is older than it seems. */
const SLOW_MS = 1000;
/** How often a leader drops of the journal what the nodes have. */
const PRUNE_MS = 60_000;

/** A node, and where it is reached. */
export type NodePlace = { readonly id: string; readonly url: string };
/** A node that has said nothing for so long. */
export type NodeDown = { readonly id: string; readonly silentMs: number };

export type Announcing = {
  /** Tells of this node now. */
  tell(): Promise<void>;
  view(): Promise<ClusterView>;
  /** Other nodes that are not down, as far as this one has heard. */
  peers(): readonly NodePlace[];
  /** Nodes that are silent for longer than one that is up, and have not said that they end. */
  down(): readonly NodeDown[];
  /** How long ago this node had all that the journal had, for sure. */
  ageMs(): number;
  /** Whether the journal answers; whoever else asks it says so when it does not. */
  readonly reach: Pick<JournalReach, "away" | "failed">;
  /** Resolves when another process, begun earlier, is this node too: this one must end. */
  readonly twin: Promise<DroverError>;
  /** Something was applied. */
  onApplied(): void;
  stop(): void;
  /** Says that this node has ended in order: others need not wait for another word of it. */
  leave(): Promise<void>;
};

type AnnouncingDeps = {
  readonly log: SharedLog;
  readonly clock: Clock;
  /** When the log began to be opened: what the journal had then, this node has. */
  readonly openedAt: number;
  /** What no other process has: it tells apart two that are the same node. */
  readonly process: string;
  readonly self: () => NodeFacts;
  readonly applied: () => AppliedHead;
  /** What nodes tell of themselves: for a leader to take down, and to compare with what is so here. */
  readonly onSeen: (nodes: readonly NodeSeen[]) => void;
  /** Whether this node leads for sure: then it also prunes the journal. */
  readonly leads: () => boolean;
  readonly readOnly: ReadOnly;
  /** What this node finds wrong with itself. */
  readonly warnings: OwnWarnings;
  /** Signs how far this node is; absent where it has no key of its own. */
  readonly signer?: Pick<Signer, "sign"> | undefined;
};

export function startAnnouncing(deps: AnnouncingDeps): Announcing {
  const { log, clock, self, applied, readOnly, warnings, signer } = deps;
  const { journal } = log;
  const twins = createTwinWatch(self, deps.process);
  const reach = createJournalReach(clock);
  const hearing = createHearing(deps, () => reach.away() !== null || readOnly.reason() !== null);
  const own = (): NodeSeen => {
    const { id: node, url } = self();
    const words = warnings.all();
    const told = { node, url, ...applied(), stored: log.stored(), behindMs: behindNow(), now: clock.now(), ageMs: 0 };
    return words.length === 0 ? told : { ...told, warnings: words };
  };
  const ageNow = (): number => Math.max(0, clock.elapsed() - upToDateAt);
  const { view, learn } = createClusterView({ log, clock, reach, readOnly, own, leads: deps.leads, ageMs: ageNow });
  let upToDateAt = deps.openedAt;
  /** Where the journal was when it was asked, as far as that is not applied here. The newest is the last. */
  const marks: { readonly at: number; readonly seq: number }[] = [];
  /** How far it said that it was when it signed that last. */
  let word = { seq: seq(0), hash: "", signature: "" };
  let isSlowToWrite = false;
  let pruneAt = clock.elapsed() + PRUNE_MS;
  let isStopped = false;
  let telling: Promise<void> = Promise.resolve();
  let cancel = ringAfter(clock, ANNOUNCE_MS, goOn, { keepAlive: false });

  async function goOn(): Promise<void> {
    await tell();
    if (!isStopped) cancel = ringAfter(clock, ANNOUNCE_MS, goOn, { keepAlive: false });
  }

  /** Signed once for each event that this node was found at. */
  function vouched(told: { readonly node: string; readonly seq: Seq; readonly hash: string }): Partial<NodeSeen> {
    if (signer === undefined) return {};
    if (word.seq !== told.seq || word.hash !== told.hash) word = { ...told, signature: vouchFor(signer, told) };
    return { signature: word.signature };
  }

  /** A journal that has no room for it can still be read. */
  async function announce(head: { readonly seq: number }, start: string, last: Partial<NodeSeen> = {}): Promise<void> {
    const { ageMs: _, ...facts } = own();
    const told = isSlowToWrite ? withoutClock(facts) : facts;
    const sentAt = clock.elapsed();
    try {
      await journal.announce({ ...told, ...last, key: self().key, start, ...vouched(told) });
      twins.told();
      readOnly.heard();
    } catch (error) {
      if (!readOnly.isFull(error, head.seq)) throw error;
    } finally {
      isSlowToWrite = clock.elapsed() - sentAt > SLOW_MS;
    }
  }

  /** One word after the other. */
  function tell(): Promise<void> {
    telling = telling.then(tellNow);
    return telling;
  }

  async function tellNow(): Promise<void> {
    if (isStopped) return;
    try {
      const askedAt = clock.elapsed();
      hearing.asks(askedAt);
      const head = await journal.head();
      if (marks.length < MARKS_MAX) marks.push({ at: askedAt, seq: head.seq });
      passMarks();
      const readAt = clock.elapsed();
      const seen = await journal.nodes();
      const isSlowToRead = clock.elapsed() - readAt > SLOW_MS;
      const { nodes } = seen;
      reach.answered();
      learn(seen);
      // How old each word is was counted until now: what is written next may take its time.
      hearing.took(nodes);
      deps.onSeen(isSlowToRead ? nodes.map(withoutClock) : nodes);
      await announce(head, twins.look(seen));
      // Nobody leads over a full journal, and to prune it may be what makes room.
      if ((deps.leads() || readOnly.reason() !== null) && askedAt >= pruneAt) {
        pruneAt = askedAt + PRUNE_MS;
        await log.pruneJournal(self().id);
      }
    } catch (error) {
      // Out of reach: others see for how long this node has said nothing, and what waits for the journal says so.
      reach.failed(error);
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

  function stop(): void {
    isStopped = true;
    cancel();
  }
  void twins.found.then(stop);

  async function leave(): Promise<void> {
    stop();
    await telling;
    try {
      await announce(applied(), twins.look(await journal.nodes()), { isStopped: true });
    } catch (error) {
      reach.failed(error);
    }
  }

  /** Of what it knows that the journal has; others may write all the time. */
  const behindNow = (): number => (marks.length === 0 ? 0 : Math.ceil(ageNow()));

  return {
    tell,
    view,
    peers: hearing.peers,
    down: hearing.down,
    ageMs: ageNow,
    reach,
    twin: twins.found,
    onApplied: () => {
      passMarks();
      readOnly.committed(applied().seq);
    },
    stop,
    leave,
  };
}

/** Whom this node has heard of, and when. `isMute`: one that is up could not say so, and silence says nothing. */
function createHearing({ self, clock, openedAt }: AnnouncingDeps, isMute: () => boolean) {
  /** When by `clock.elapsed`. */
  let heard: readonly (NodePlace & { readonly at: number })[] = [];
  let heardAt = openedAt;
  /** Since when nodes can say that they are up. */
  let since = openedAt;
  return {
    asks(at: number): void {
      if (isMute()) since = at;
    },
    /** What nodes have told; of those that have ended no more is to be heard. */
    took(nodes: readonly NodeSeen[]): void {
      heardAt = clock.elapsed();
      const others = nodes.filter(({ node, isStopped }) => node !== self().id && isStopped !== true);
      heard = others.map(({ node: id, url, ageMs }) => ({ id, url, at: heardAt - ageMs }));
    },
    down(): readonly NodeDown[] {
      if (isMute()) return [];
      const silent = heard.filter(({ at }) => heardAt - Math.max(at, since) > DOWN_MS);
      return silent.map(({ id, at }) => ({ id, silentMs: clock.elapsed() - at }));
    },
    peers: (): readonly NodePlace[] => heard.filter(({ at }) => clock.elapsed() - at <= DOWN_MS),
  };
}

function withoutClock<Told extends { readonly now?: number }>({ now: _, ...told }: Told): Omit<Told, "now"> {
  return told;
}

/** What is told late by a process that has ended comes once. */
const TWIN_SEEN = 2;
/** As many digits as a whole number may have, so that text sorts as numbers do. */
const COUNT_DIGITS = 16;

/**
 * Two processes that are one node (a data directory that was copied) would take the lead from each other for ever. Each
 * tells of itself in the same place, so what stands there of another start, after this one has told, is of a twin. The
 * one that looked into the journal first stays. Its clock says nothing: a copy may run where that is behind.
 */
function createTwinWatch(self: () => NodeFacts, process: string) {
  const found = Promise.withResolvers<DroverError>();
  let start: string | null = null;
  let hasTold = false;
  let seen = 0;
  return {
    found: found.promise,
    told(): void {
      hasTold = true;
    },
    /** Answers which start of the node this is. */
    look({ nodes, count }: NodesSeen): string {
      start ??= `${String(count).padStart(COUNT_DIGITS, "0")} ${process}`;
      const { id } = self();
      const there = nodes.find(({ node }) => node === id);
      if (hasTold && there?.start !== undefined && there.start < start && ++seen === TWIN_SEEN)
        found.resolve(isTwin(id, there.url));
      return start;
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
