/**
 * The journal in memory, for tests and the simulator, with switches for everything that may go wrong on the way to one.
 *
 * What is durable lives in a `MemoryJournalStore`, which nodes share as they would share a database; a journal is one
 * node's handle on it. The store owns the time by which leads run out. Nothing here is left to chance: an append is
 * stored in the very call, unless a switch says otherwise, and answers come as microtasks.
 */
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { type Clock, realClock } from "../../std/index.ts";
import { GENESIS, toHex } from "../format/chain.ts";
import { type Anchor, type AppendResult, closedFailure, type Head, type Lead, LogFailure } from "../log.ts";
import { createWordReading, WORD_BYTES_MAX, type WordReading } from "./announcement.ts";
import type { Journal, JournalOptions, NodeAnnouncement, NodesSeen, SealedBatch } from "./journal.ts";
import { NODE_KEPT_MS } from "./journal.ts";
import { headAfter, judged } from "./judging.ts";
import { keepLease, type Lease } from "./lease.ts";

/** What survives a crash of every node. */
export type MemoryJournalStore = {
  head: Head;
  base: Anchor;
  entries: SealedBatch[];
  lead: { readonly node: string; readonly epoch: number; readonly until: number } | null;
  readonly nodes: Map<string, { readonly told: NodeAnnouncement | null; readonly at: number }>;
  /** How many words of nodes it has got. */
  words: number;
  readonly secret: string;
  readonly clock: Clock;
  /** Called after every change, by every change once. */
  readonly onChange: Set<() => void>;
};

/** What goes wrong between one node and the journal. */
export type JournalFaults = {
  /** `both`: nothing gets there. `answers`: what is asked is done, and nobody hears of it. */
  cut: "none" | "both" | "answers";
  /** So many of the next appends are stored, and their answers lost. */
  loseAnswers: number;
  /** So many of the next appends are lost on their way. */
  loseAppends: number;
  /** So many of the next appends find no room. */
  fullFor: number;
  /** Appends wait for this before they reach the store, if it is set. */
  hold: Promise<void> | null;
};

export type MemoryJournal = Journal & {
  /** Switches faults of this handle on and off. */
  fault(change: Partial<JournalFaults>): void;
};

export function createMemoryJournalStore(clock: Clock = realClock): MemoryJournalStore {
  return {
    head: { ...GENESIS, epoch: 0, batchId: "" },
    base: GENESIS,
    entries: [],
    lead: null,
    nodes: new Map(),
    words: 0,
    secret: "5e".repeat(32),
    clock,
    onChange: new Set(),
  };
}

/** Takes the lead away from whoever has it, as if it had not been renewed. */
export function expireLead(store: MemoryJournalStore): void {
  store.lead = null;
  changed(store);
}

type MemoryJournalOptions = JournalOptions & { readonly store?: MemoryJournalStore };

export function createMemoryJournal(options: MemoryJournalOptions = {}): MemoryJournal {
  const { store = createMemoryJournalStore(options.clock), onNotice = () => {} } = options;
  const clock = options.clock ?? store.clock;
  const faults: JournalFaults = { cut: "none", loseAnswers: 0, loseAppends: 0, fullFor: 0, hold: null };
  const closing = new AbortController();
  const readWords = createWordReading(onNotice);
  let lease: Lease | null = null;

  /** Everything but an append goes through here. */
  async function ask<Answer>(work: () => Answer): Promise<Answer> {
    if (closing.signal.aborted) throw closedFailure();
    if (faults.cut === "both") throw unreachable();
    const answer = work();
    if (faults.cut === "answers") throw unreachable();
    return answer;
  }

  async function append(entry: SealedBatch): Promise<AppendResult> {
    if (closing.signal.aborted) throw closedFailure();
    if (faults.hold !== null) await faults.hold;
    if (faults.cut === "both" || take("loseAppends")) return { type: "unknown", cause: "the append was lost" };
    if (take("fullFor")) throw new LogFailure("journal-full", "the journal in memory was told to be full");
    const answer = appendTo(store, entry);
    if (faults.cut === "answers" || take("loseAnswers")) return { type: "unknown", cause: "the answer was lost" };
    return answer;
  }
  function take(count: "loseAnswers" | "loseAppends" | "fullFor"): boolean {
    if (faults[count] === 0) return false;
    faults[count]--;
    return true;
  }

  async function* read(after: Seq): AsyncGenerator<SealedBatch> {
    const entries = await ask(() => entriesBehind(store, after));
    yield* entries;
  }

  async function* follow(after: Seq, signal: AbortSignal): AsyncGenerator<SealedBatch> {
    const ends = AbortSignal.any([signal, closing.signal]);
    let reached = after;
    while (!ends.aborted) {
      const entry = faults.cut === "none" ? entriesBehind(store, reached)[0] : undefined;
      if (entry === undefined) await nextChange(store, ends);
      else {
        reached = entry.lastSeq;
        yield entry;
      }
    }
    if (!signal.aborted) throw closedFailure();
  }

  async function acquireLead(node: string, ttl: number, signal?: AbortSignal): Promise<Lead> {
    if (closing.signal.aborted) throw closedFailure();
    invariant(node !== "", "a node has a name that is not empty");
    const ends = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
    await lease?.release();
    for (;;) {
      signal?.throwIfAborted();
      if (closing.signal.aborted) throw closedFailure();
      const sentAt = clock.elapsed();
      const epoch = faults.cut === "none" ? takeLead(store, node, ttl) : null;
      if (epoch !== null) {
        const renew = () => ask(() => renewLead(store, epoch, ttl));
        const giveUp = () => ask(() => freeLead(store, epoch));
        lease = keepLease({ epoch, ttlMs: ttl, clock, sentAt, renew, giveUp });
        return lease;
      }
      // A node that is cut off does not see the lead run out: that it is back is a change.
      await nextChange(store, ends, faults.cut === "none" ? store.lead?.until : undefined);
    }
  }

  async function close(): Promise<void> {
    await lease?.release();
    closing.abort();
  }
  return {
    kind: "memory",
    describe: () =>
      ask(() => {
        const { head, base } = store;
        return {
          kind: "memory",
          address: "memory:",
          version: null,
          head,
          base,
          bytes: null,
          warnings: [],
          members: [],
        };
      }),
    append,
    read,
    follow,
    head: () => ask(() => store.head),
    acquireLead,
    announce: (told) => ask(() => keepWord(store, told)),
    nodes: () => ask(() => nodesOf(store, readWords)),
    secret: () => ask(() => store.secret),
    begin: (base) => ask(() => begin(store, base)),
    prune: (before) => ask(() => prune(store, before)),
    beside: () => ask(() => []),
    close,
    [Symbol.asyncDispose]: close,
    fault: (change) => {
      const wasCut = faults.cut !== "none";
      Object.assign(faults, change);
      if (wasCut !== (faults.cut !== "none")) onNotice(wasCut ? "the journal is back" : "the journal is cut off");
      changed(store);
    },
  };
}

function appendTo(store: MemoryJournalStore, entry: SealedBatch): AppendResult {
  const answer = judged(store.head, entry);
  if (answer !== null) return answer;
  const bytes = Uint8Array.from(entry.bytes);
  store.entries.push({ ...entry, bytes, payloads: Uint8Array.from(entry.payloads) });
  store.head = headAfter(entry);
  changed(store);
  return { type: "appended", head: store.head };
}

function entriesBehind({ entries, base }: MemoryJournalStore, after: Seq): SealedBatch[] {
  if (after < base.seq) throw prunedJournal(after, base.seq);
  return entries.filter(({ lastSeq }) => lastSeq > after);
}

/** What a driver says of events that its journal no longer has. */
export const prunedJournal = (after: Seq, base: Seq): LogFailure =>
  new LogFailure("pruned", `cannot read the journal from ${after}: events up to ${base} were pruned there.`, base);

function takeLead(store: MemoryJournalStore, node: string, ttl: number): number | null {
  const { lead, clock, head } = store;
  if (lead !== null && lead.node !== node && lead.until > clock.elapsed()) return null;
  const epoch = head.epoch + 1;
  store.head = { ...head, epoch };
  store.lead = { node, epoch, until: clock.elapsed() + ttl };
  changed(store);
  return epoch;
}

function renewLead(store: MemoryJournalStore, epoch: number, ttl: number): boolean {
  if (store.lead?.epoch !== epoch) return false;
  store.lead = { ...store.lead, until: store.clock.elapsed() + ttl };
  return true;
}

function freeLead(store: MemoryJournalStore, epoch: number): void {
  if (store.lead?.epoch !== epoch) return;
  store.lead = null;
  changed(store);
}

function keepWord(store: MemoryJournalStore, told: NodeAnnouncement): void {
  store.words++;
  const isLarge = JSON.stringify(told).length > WORD_BYTES_MAX;
  store.nodes.set(told.node, { told: isLarge ? null : told, at: store.clock.elapsed() });
}

function nodesOf({ nodes, lead, clock, words: count }: MemoryJournalStore, read: WordReading): NodesSeen {
  const now = clock.elapsed();
  const words = [...nodes].map(([name, { told, at }]) => ({ name, told, ageMs: now - at }));
  const leads = lead !== null && lead.until > now;
  return {
    lead: leads ? { node: lead.node, epoch: lead.epoch } : null,
    nodes: read(words.filter(({ ageMs }) => ageMs <= NODE_KEPT_MS)),
    count,
  };
}

function begin(store: MemoryJournalStore, { seq: at, hash }: Anchor): Anchor {
  if (store.head.seq > 0) return store.base;
  store.head = { ...store.head, seq: at, hash };
  store.base = { seq: at, hash };
  changed(store);
  return store.base;
}

function prune(store: MemoryJournalStore, before: Seq): Anchor {
  const dropped = store.entries.filter(({ lastSeq }) => lastSeq <= before);
  const last = dropped.at(-1);
  if (last === undefined) return store.base;
  store.base = { seq: seq(last.lastSeq), hash: toHex(last.postHash) };
  store.entries = store.entries.slice(dropped.length);
  return store.base;
}

function changed({ onChange }: MemoryJournalStore): void {
  for (const ring of [...onChange]) ring();
}

/** Resolves with the next change, when the signal ends the wait, or at an instant of the store's clock. */
function nextChange({ onChange, clock }: MemoryJournalStore, signal: AbortSignal, until?: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = until === undefined ? () => {} : clock.ringAt(until, done);
    function done(): void {
      onChange.delete(done);
      signal.removeEventListener("abort", done);
      cancel();
      resolve();
    }
    onChange.add(done);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

const unreachable = (): LogFailure => new LogFailure("unreachable", "the journal in memory is cut off");
