/**
 * A log that several nodes share: a journal, which decides what comes next, and a replica, which is this node's own
 * data directory.
 *
 * Appends go to the journal. What it has committed goes into the replica behind that, in order and never before; on a
 * node that does not lead, it comes from `journal.follow`. Everything that reads (events, payloads, snapshots,
 * `verify`) reads the replica, which is an ordinary log with a key and snapshots of its own. Nothing is lost with the
 * process: opening brings the replica up to the journal.
 *
 * A journal that cannot be reached is waited for, here and at opening; one that is full refuses an append at once. An
 * append whose answer was lost is repeated under the same id until it is known what became of it, the lead it was made
 * under is over, or the log is closed; in the two last cases it stays `unknown`, and if it did land it comes back with
 * `follow`. A log that is closed waits a little for answers that are on their way, and not for a journal that hangs.
 */
import { resolve } from "node:path";
import { type Seq, seq } from "../../core/base/index.ts";
import { type Clock, realClock, ringAfter } from "../../std/index.ts";
import { checkAppend, unpackRow } from "../format/batch-row.ts";
import { fromHex } from "../format/chain.ts";
import type { Journal } from "../journal/journal.ts";
import { knownAnswer, type Patience, untilAnswered } from "../journal/patience.ts";
import { prunableSeq } from "../journal/prunable.ts";
import type { AppendResult, Batch, Checkpoint, Lead, Log, ReadBatch } from "../log.ts";
import { closedFailure, LogFailure } from "../log.ts";
import type { HashedBatch } from "../sqlite/sealed-batches.ts";
import { createSqliteLog, packedForThread } from "../sqlite/sqlite-log.ts";
import { type StoreThread, startStoreThread } from "../sqlite/thread-client.ts";
import { bringUp, createFollowing, type Following, type Ground } from "./following.ts";
import { type ReloadGround, reloadFromNodes, storeSnapshot } from "./reloading.ts";
import { createTail, type Tail } from "./tail.ts";

export type SharedLogOptions = {
  /** Is closed with the log; if opening fails, it is left open. */
  readonly journal: Journal;
  /** This node's own data directory. */
  readonly directory: string;
  /** The most the replica may grow to. */
  readonly maxBytes?: number;
  readonly clock?: Clock;
  /** Gets a line when the journal has to be waited for, again every few seconds, and when it is back. */
  readonly onNotice?: (line: string) => void;
  /** Ends an opening that waits for the journal. */
  readonly signal?: AbortSignal;
  /** The name of this node: with it, what the journal no longer has is fetched from other nodes. */
  readonly node?: string;
  /** Whether the directory is known to be of the journal's history. Only then may what it has be replaced. */
  readonly isOfCluster?: boolean;
};

export type SharedLog = Log & {
  readonly journal: Journal;
  /**
   * Everything behind `after`, checked and without payloads, and then every batch as it is committed, until the signal
   * ends it. Rejects with what this node cannot get over: a full disk, a journal that was pruned before it was read.
   */
  follow(after: Seq, signal: AbortSignal): AsyncIterable<ReadBatch>;
  /** The last event that the replica has on disk. */
  stored(): Seq;
  /** Drops of the journal what all that count have on disk (`journal/prunable.ts`); a part of it, if it is much. */
  pruneJournal(self: string): Promise<void>;
};

/** Opens the replica and brings it up to the journal, for which it waits if it must. */
export async function openSharedLog(options: SharedLogOptions): Promise<SharedLog> {
  const { journal, maxBytes, clock = realClock, onNotice = () => {}, signal = new AbortController().signal } = options;
  const directory = resolve(options.directory);
  const thread = await startStoreThread({ directory, readOnly: false, maxBytes: maxBytes ?? null });
  try {
    const replica = createSqliteLog({ directory, readOnly: false, thread });
    const patience = { clock, onNotice };
    const { node: self = "", isOfCluster = false } = options;
    const ground = { journal, thread, directory, clock, signal, self, isOfCluster };
    const tail = await broughtUp(ground, replica, patience);
    return createHandle({ journal, thread, replica, tail, patience, ground });
  } catch (error) {
    await thread.close();
    throw error;
  }
}

/** The end of the replica, once it has all that the journal has; what that has no longer comes from another node. */
async function broughtUp(ground: ReloadGround, replica: Log, patience: Patience): Promise<Tail> {
  const { journal, thread, clock, signal, self } = ground;
  let snapshot: Checkpoint | null = null;
  for (;;) {
    const { head, base, checkpoints } = await thread.ask("state", undefined);
    const tail = createTail({ thread, clock, head });
    // A reload that was broken off has left a log that begins late, with nothing to begin from.
    const isAnew: boolean = base.seq > 0 && checkpoints.length === 0 && snapshot === null;
    const work = (): Promise<boolean> => isBroughtUp({ journal, thread, tail }, signal, self);
    if (!isAnew && (await untilAnswered(work, patience, signal))) {
      if (snapshot !== null) await storeSnapshot(ground, replica, snapshot);
      return tail;
    }
    patience.onNotice("the journal no longer has what comes next here: it is fetched from another node");
    snapshot =
      (await untilAnswered(() => reloadFromNodes(ground, tail, { isAnew, mayBeginAnew: true }), patience, signal)) ??
      snapshot;
  }
}

/** False if the journal begins behind the end of the replica, and others could be asked. */
async function isBroughtUp(ground: Ground, signal: AbortSignal, self: string): Promise<boolean> {
  try {
    await bringUp(ground, signal);
    return true;
  } catch (error) {
    if (self !== "" && error instanceof LogFailure && error.code === "pruned") return false;
    throw error;
  }
}

type Parts = {
  readonly journal: Journal;
  readonly thread: StoreThread;
  readonly replica: Log;
  readonly tail: Tail;
  readonly patience: Patience;
  readonly ground: ReloadGround;
};

function createHandle(parts: Parts): SharedLog {
  const { journal, replica, tail } = parts;
  const closing = new AbortController();
  const following = createFollowing(parts, closing.signal, (...call) => fetchMissing(parts, ...call));
  const appending = createAppending(parts, following, closing.signal);
  following.start();

  /** The replica, with everything that was committed. */
  async function upToDate(): Promise<Log> {
    if (closing.signal.aborted) throw closedFailure();
    await tail.flush();
    return replica;
  }
  async function* read(...call: Parameters<Log["read"]>): ReturnType<Log["read"]> & AsyncGenerator<ReadBatch> {
    yield* (await upToDate()).read(...call);
  }

  async function* follow(after: Seq, signal: AbortSignal): AsyncGenerator<ReadBatch> {
    const ends = AbortSignal.any([signal, closing.signal]);
    for (let at = after; !ends.aborted; ) {
      tail.check();
      const batches = tail.behind(at);
      if (batches?.length === 0) await tail.moved(ends);
      for await (const batch of batches?.map((row) => unpackRow(row, at)) ?? read(at, { payloads: false })) {
        if (ends.aborted) break;
        at = seq(batch.firstSeq + batch.hashes.length - 1);
        yield batch;
      }
    }
    if (!signal.aborted) throw closedFailure();
  }

  async function acquireLead(...[node, ttl, signal]: Parameters<Log["acquireLead"]>): Promise<Lead> {
    const lead = await journal.acquireLead(node, ttl, signal);
    await following.stop();
    try {
      await untilAnswered(() => bringUp(parts, closing.signal), parts.patience, closing.signal);
    } catch (error) {
      await lead.release();
      following.start();
      throw closing.signal.aborted ? closedFailure() : error;
    }
    tail.raise(lead.epoch);
    appending.leads(lead);
    void lead.lost.then(() => following.start());
    return lead;
  }

  let closed: Promise<void> | null = null;
  async function close(): Promise<void> {
    closing.abort();
    await appending.close();
    await following.stop();
    // What is not stored is in the journal: a replica that cannot be written must not keep a node from ending.
    await tail.flush().catch(() => {});
    await journal.close();
    await replica.close();
  }
  return {
    directory: replica.directory,
    journal,
    append: async (...call) => appending.append(call),
    read,
    follow,
    readRecord: async (wanted) => (await upToDate()).readRecord(wanted),
    head: async () => {
      if (closing.signal.aborted) throw closedFailure();
      return tail.head();
    },
    stored: tail.stored,
    pruneJournal: (self) => pruneJournal(parts, self),
    bytes: async () => (await upToDate()).bytes(),
    saveSnapshot: async (snapshot) => (await upToDate()).saveSnapshot(snapshot),
    loadSnapshot: async (before) => (await upToDate()).loadSnapshot(before),
    checkpoints: async () => (await upToDate()).checkpoints(),
    acquireLead,
    prune: async (before, keep) => (await upToDate()).prune(before, keep),
    sign: async (rule) => (await upToDate()).sign?.(rule),
    verify: async (given) => (await upToDate()).verify(given),
    close: () => {
      closed ??= close();
      return closed;
    },
    [Symbol.asyncDispose]() {
      return this.close();
    },
  };
}

/** What the journal dropped before this node had read it, from another that has it. */
async function fetchMissing({ ground, tail, patience }: Parts, pruned: LogFailure, signal: AbortSignal): Promise<void> {
  if (ground.self === "") throw pruned;
  patience.onNotice("the journal no longer has what comes next here: it is fetched from another node");
  const how = { isAnew: false, mayBeginAnew: false };
  await untilAnswered(() => reloadFromNodes({ ...ground, signal }, tail, how), patience, signal);
}

/** Room is made by people, and nobody waits for them: the one failure that is the answer to an append at once. */
function asAnswer(error: unknown): LogFailure {
  if (error instanceof LogFailure && error.code === "journal-full") return error;
  throw error;
}

/** What one call drops at most. */
const PRUNED_EVENTS_MAX = 100_000;

async function pruneJournal({ journal, thread, tail }: Parts, self: string): Promise<void> {
  const [{ nodes }, health] = await Promise.all([journal.nodes(), journal.describe()]);
  const dispensable = prunableSeq({ nodes, self, stored: tail.stored(), journal: health });
  // PostgreSQL has room for the history, and keeps what a replica keeps.
  const { base } = await thread.ask("state", undefined);
  const before = journal.kind === "postgres" ? Math.min(dispensable, base.seq) : dispensable;
  if (before > health.base.seq) await journal.prune(seq(Math.min(before, health.base.seq + PRUNED_EVENTS_MAX)));
}

/** What is on its way to the journal when the log is closed may take so long to be answered. */
const LAST_ANSWER_MS = 2000;

/** Appends, one at a time: each is linked to the one before. */
function createAppending(parts: Parts, following: Following, closing: AbortSignal) {
  const { journal, thread, tail, patience } = parts;
  let last: Promise<unknown> = Promise.resolve();
  let isClosing = false;
  let lead: Lead | null = null;
  /** Ends with the lead of the newest epoch. */
  let leading = new AbortController();
  /** Ends when the log was closed and the last answers have not come. */
  const overdue = new AbortController();

  function append(call: Parameters<Log["append"]>): Promise<AppendResult> {
    if (isClosing) throw closedFailure();
    checkAppend(...call);
    const [after, epoch, batch, batchId] = call;
    const { packed, moved } = packedForThread(batch);
    const turn = last.then(async (): Promise<AppendResult> => {
      tail.check();
      await tail.room();
      const prior = await priorOf(after, packed.count, batchId);
      if (prior === null) return { type: "conflict", head: tail.head() };
      const input = { firstSeq: seq(after + 1), epoch, batchId, ...packed, priorHash: fromHex(prior) };
      return commit(await thread.ask("seal", input, moved), batch);
    });
    last = turn.catch(() => {}); // Its own caller hears of a failure; the next in line goes on.
    return turn;
  }

  /** The hash that a batch behind this event is linked to; null if it can only be a conflict. */
  async function priorOf(after: Seq, count: number, batchId: string): Promise<string | null> {
    const head = tail.head();
    if (after === head.seq) return head.hash;
    if (head.batchId !== batchId || head.seq !== after + count) return null;
    await tail.flush();
    return thread.ask("hashAt", after);
  }

  async function commit({ packed, ...batch }: HashedBatch, { sign }: Batch): Promise<AppendResult> {
    const { hashes: _, ...unpacked } = batch;
    const entry = packed === undefined ? unpacked : { ...unpacked, packed };
    const led = lead?.epoch === entry.epoch ? leading.signal : null;
    const isOver = (): boolean => closing.aborted || led?.aborted === true;
    // Whoever appends after that is asked for once all the same: it is told that it is refused.
    const ends = AbortSignal.any([overdue.signal, ...(led?.aborted === false ? [led] : [])]);
    const ask = () =>
      knownAnswer(journal, entry).catch((error: unknown) => {
        if (isOver()) throw closedFailure();
        return asAnswer(error);
      });
    try {
      const answer = await untilAnswered(ask, patience, ends);
      if (answer instanceof LogFailure) throw answer;
      if (answer.type === "appended") tail.take(batch, sign ?? null);
      else following.start();
      tail.raise(answer.head.epoch);
      return answer;
    } catch (error) {
      if (!isOver()) throw error;
      return { type: "unknown", cause: "the lead was over, or the log closed, before the journal answered" };
    }
  }
  return {
    append,
    leads(given: Lead): void {
      lead = given;
      const own = new AbortController();
      leading = own;
      void given.lost.then(() => own.abort());
    },
    /** No more are taken. Those that were asked for are answered, if the journal does so once more, and soon. */
    close: async (): Promise<void> => {
      isClosing = true;
      const cancel = ringAfter(patience.clock, LAST_ANSWER_MS, () => overdue.abort());
      await last;
      cancel();
    },
  };
}
