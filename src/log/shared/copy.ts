/**
 * Moving a history from one log to another: a data directory, or a journal, to either.
 *
 * Batches go over as they are, in their sequence. Each is checked on the way: its link to the one before, every event,
 * and every payload against the hash in its event. Whatever the other side has already must be the beginning of the
 * same history; then the copy goes on behind it, so one that was broken off is simply begun again. A directory whose
 * beginning was pruned can go into a journal, which then begins there too, and stays the replica of its node. A journal
 * that was pruned is refused, since what lies before is with the nodes; and so is a directory that would begin late.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { errorText, type Seq } from "../../core/base/index.ts";
import { type Clock, DATABASE_FILE, realClock, restFor, ringAfter } from "../../std/index.ts";
import { toHex } from "../format/chain.ts";
import type { Journal, SealedBatch } from "../journal/journal.ts";
import { knownAnswer, type Patience, passes, untilAnswered } from "../journal/patience.ts";
import { type Anchor, corruptAt, LogFailure } from "../log.ts";
import { isDataLocked } from "../sqlite/data-lock.ts";
import { type HashedBatch, hashesOf } from "../sqlite/sealed-batches.ts";
import { createSqliteLog } from "../sqlite/sqlite-log.ts";
import { startStoreThread } from "../sqlite/thread-client.ts";
import { openJournal, placeOf } from "./by-url.ts";
import { historyOf } from "./from-node.ts";
import { storedBehind } from "./serving.ts";

export type CopyOptions = {
  readonly clock?: Clock;
  readonly onNotice?: Patience["onNotice"];
  /** So many events went over, of so many that will. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
  /** For a node: the token of an admin. */
  readonly token?: string | null;
  /** How long a journal is waited for that cannot be reached at the beginning; without it, for ever. */
  readonly openingMs?: number;
};
export type CopyReport = {
  /** What each is called: no user, no password. */
  readonly from: string;
  readonly to: string;
  /** Where both end now. */
  readonly head: Anchor;
  /** How many events and bytes went over this time. */
  readonly events: number;
  readonly bytes: number;
};

/** Batches that are stored in one transaction take about so much. */
const GROUP_BYTES = 4 * 1024 * 1024;
/** A server that broke off is asked again after so long. */
const AGAIN_MS = 500;

type Place = AsyncDisposable & {
  /** For people. */
  readonly name: string;
  readonly isJournal: boolean;
  readonly base: Anchor;
  readonly head: Anchor;
};
type Source = Place & { read(after: Seq): AsyncIterable<SealedBatch> };
type Target = Place & {
  /** Lets it begin behind an event, if it can and is empty. */
  begin(base: Anchor): Promise<boolean>;
  put(batch: HashedBatch): Promise<void>;
  /** Waits until all is stored, and checks what can be checked of the whole. */
  finish(head: Anchor): Promise<void>;
};

/** Copies everything that `to` does not have yet. Each is a URL as `placeOf` reads it. */
export async function copyLog(from: string, to: string, options: CopyOptions = {}): Promise<CopyReport> {
  await using source = await inTime(options, (opening) => openSource(from, opening));
  await using target = await inTime(options, (opening) => openTarget(to, source, opening));
  const start = await meetingPoint(source, target);
  let at = start;
  let bytes = 0;
  for await (const entry of source.read(start.seq)) {
    options.signal?.throwIfAborted();
    if (entry.firstSeq !== at.seq + 1 || toHex(entry.priorHash) !== at.hash) throw divergedFrom(source, target, at.seq);
    await target.put({ ...entry, hashes: hashesOf(entry) });
    at = { seq: entry.lastSeq, hash: toHex(entry.postHash) };
    bytes += entry.bytes.length + entry.payloads.length;
    options.onProgress?.(at.seq - start.seq, source.head.seq - start.seq);
  }
  if (at.seq !== source.head.seq || at.hash !== source.head.hash)
    throw corruptAt(at.seq, `${source.name} ends there, though its head is at ${source.head.seq}`);
  await target.finish(at);
  return { from: source.name, to: target.name, head: at, events: at.seq - start.seq, bytes };
}

/** Opens something, and gives up waiting for it after a while. */
async function inTime<Opened>(options: CopyOptions, open: (opening: CopyOptions) => Promise<Opened>): Promise<Opened> {
  const { clock = realClock, openingMs, onNotice = () => {} } = options;
  if (openingMs === undefined) return open(options);
  const late = new AbortController();
  let why = "nothing answers";
  const cancel = ringAfter(clock, openingMs, () => late.abort(gaveUp(openingMs, why)));
  const signal = options.signal === undefined ? late.signal : AbortSignal.any([options.signal, late.signal]);
  try {
    return await open({
      ...options,
      signal,
      onNotice: (line, cause) => {
        why = cause ?? why;
        onNotice(line, cause);
      },
    });
  } finally {
    cancel();
  }
}

const gaveUp = (afterMs: number, why: string): LogFailure =>
  new LogFailure(
    "unreachable",
    `gave up after ${Math.round(afterMs / 1000)} s: ${why}. Nothing was written. ` +
      "See that it runs and that its address is right, and run the same command again.",
  );

/** The last event that both have: the copy goes on behind it. */
async function meetingPoint(source: Source, target: Target): Promise<Anchor> {
  const { base, head } = source;
  const isBegun = target.head.seq > 0 || base.seq === 0 || (!source.isJournal && (await target.begin(base)));
  if (!isBegun) throw prunedIn(source);
  const start = target.head.seq === 0 ? base : target.head;
  if (start.seq > head.seq) throw aheadOf(source, target);
  if (start.seq === head.seq && start.hash !== head.hash) throw divergedFrom(source, target, start.seq);
  if (start.seq < base.seq)
    throw new LogFailure("pruned", `${source.name} begins behind event ${base.seq}, ${target.name} ends before it`);
  return start;
}

const prunedIn = ({ name, base }: Source): LogFailure =>
  new LogFailure(
    "pruned",
    `events up to ${base.seq} of ${name} were pruned, and a copy must begin with the first. Nothing was written. ` +
      "Into a journal, copy from the data directory of a node; into a directory, copy that of a node as files.",
    base.seq,
  );

const divergedFrom = (source: Source, target: Target, at: Seq): LogFailure =>
  new LogFailure(
    "diverged",
    `${target.name} has another history than ${source.name}, as event ${at} shows. Nothing more was written. ` +
      "Copy into an empty log.",
    at,
  );

const aheadOf = (source: Source, target: Target): LogFailure =>
  new LogFailure(
    "diverged",
    `${target.name} ends at event ${target.head.seq}, and ${source.name} at ${source.head.seq} already: it has more, ` +
      "or another history. Nothing was written. Is it the other way round?",
    source.head.seq,
  );

async function openSource(url: string, options: CopyOptions): Promise<Source> {
  if (/^https?:/.test(url)) return nodeSource(url, options);
  const place = placeOf(url);
  if (place.kind === "memory") throw inMemory();
  if (place.kind !== "sqlite") {
    const journal = await openJournal(url, options);
    const { base, head, address } = await described(journal, options);
    const read = (after: Seq) => upTo(head, journal.read(after));
    return { name: address, isJournal: true, base, head, read, [Symbol.asyncDispose]: journal.close };
  }
  const { directory } = place;
  if (!existsSync(join(directory, DATABASE_FILE))) throw new LogFailure("refused", `there is no log in ${directory}`);
  if (isDataLocked(directory))
    throw new LogFailure("locked", `a server runs on ${directory}; stop it, or copy from its URL what it has by now`);
  const thread = await startStoreThread({ directory, readOnly: true, maxBytes: null });
  const { base, head } = await thread.ask("state", undefined);
  const read = (after: Seq) => storedBehind(thread, after);
  return { name: directory, isJournal: false, base, head, read, [Symbol.asyncDispose]: () => thread.close() };
}

/** Others may write meanwhile: a copy ends where its source ended when it began. */
async function* upTo({ seq: last }: Anchor, batches: AsyncIterable<SealedBatch>): AsyncGenerator<SealedBatch> {
  for await (const entry of batches) {
    if (entry.firstSeq > last) return;
    yield entry;
  }
}

/** A node that runs, as far as it is now. */
async function nodeSource(given: string, options: CopyOptions): Promise<Source> {
  const { clock = realClock, onNotice = () => {}, signal = new AbortController().signal, token = null } = options;
  const parsed = URL.parse(given);
  if (parsed === null || given.includes(","))
    throw new LogFailure("refused", "a history is copied from one node: give one address, such as http://HOST:PORT");
  const url = `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}`;
  const node = { url, token, clock, signal };
  const patience = { clock, onNotice, what: "the server" };
  const { base, head } = await untilAnswered(
    async () => {
      await using history = await historyOf(node, null);
      return history;
    },
    patience,
    signal,
  );
  /** What breaks off is asked for again, behind what has come. */
  async function* read(after: Seq): AsyncGenerator<SealedBatch> {
    for (let at = after; at < head.seq; )
      try {
        await using history = await untilAnswered(() => historyOf(node, at), patience, signal);
        if (history.base.seq > at) throw prunedMeanwhile(url, history.base);
        for await (const entry of upTo(head, history.batches)) {
          yield entry;
          at = entry.lastSeq;
        }
        return;
      } catch (error) {
        if (signal.aborted || !passes(error)) throw error;
        onNotice(`${errorText(error)}; it is asked again for what comes behind event ${at}`);
        await restFor(clock, AGAIN_MS, { signal });
      }
  }
  return { name: url, isJournal: false, base, head, read, [Symbol.asyncDispose]: async () => {} };
}

async function openTarget(url: string, source: Source, options: CopyOptions): Promise<Target> {
  if (/^https?:/.test(url)) throw intoServer();
  const place = placeOf(url);
  if (place.kind === "memory") throw inMemory();
  // A directory that is opened is made.
  const isNew = place.kind === "sqlite" && !existsSync(join(place.directory, DATABASE_FILE));
  if (isNew && source.base.seq > 0) throw prunedIn(source);
  return place.kind === "sqlite" ? directoryTarget(place.directory) : journalTarget(url, options);
}

async function journalTarget(url: string, options: CopyOptions): Promise<Target> {
  const { clock = realClock, onNotice = () => {}, signal = new AbortController().signal } = options;
  const journal = await openJournal(url, options);
  const { base, head, address } = await described(journal, options);
  const patience = { clock, onNotice };
  const { lead } = await untilAnswered(() => journal.nodes(), patience, signal);
  if (lead !== null) {
    await journal.close();
    throw isLed(address, lead.node);
  }
  return {
    name: address,
    isJournal: true,
    base,
    head,
    begin: async (wanted) => (await untilAnswered(() => journal.begin(wanted), patience, signal)).hash === wanted.hash,
    put: async ({ hashes: _, ...entry }) => {
      const answer = await untilAnswered(() => knownAnswer(journal, entry), patience, signal);
      if (answer.type === "conflict") throw othersWrite(address);
    },
    finish: async (expected) => {
      const found = await untilAnswered(() => journal.head(), patience, signal);
      if (found.seq !== expected.seq || found.hash !== expected.hash) throw othersWrite(address);
    },
    [Symbol.asyncDispose]: () => journal.close(),
  };
}

const isLed = (address: string, node: string): LogFailure =>
  new LogFailure(
    "locked",
    `the node ${node} leads at ${address}. Nothing was written. Stop its nodes before a log is copied there; if they ` +
      "have just ended, try again in a few seconds.",
  );

const othersWrite = (address: string): LogFailure =>
  new LogFailure("diverged", `somebody else writes to ${address}: stop its nodes before a log is copied there`);

async function directoryTarget(directory: string): Promise<Target> {
  const thread = await startStoreThread({ directory, readOnly: false, maxBytes: null });
  const { base, head } = await thread.ask("state", undefined);
  const waiting: HashedBatch[] = [];
  let bytes = 0;
  async function store(): Promise<void> {
    await thread.ask(
      "store",
      waiting.splice(0).map((batch) => ({ ...batch, sign: null })),
    );
    bytes = 0;
  }
  return {
    name: directory,
    isJournal: false,
    base,
    head,
    begin: async () => false,
    put: async (batch) => {
      waiting.push(batch);
      bytes += batch.bytes.length + batch.payloads.length;
      if (bytes >= GROUP_BYTES) await store();
    },
    finish: async (expect) => {
      await store();
      const log = createSqliteLog({ directory, readOnly: false, thread });
      const { problems } = await log.verify({ expect });
      if (problems[0] !== undefined) throw corruptAt(problems[0].seq, problems[0].message);
    },
    [Symbol.asyncDispose]: () => thread.close(),
  };
}

async function described(journal: Journal, options: CopyOptions) {
  const { clock = realClock, onNotice = () => {}, signal = new AbortController().signal } = options;
  return untilAnswered(() => journal.describe(), { clock, onNotice }, signal);
}

const prunedMeanwhile = (name: string, { seq: at }: Anchor): LogFailure =>
  new LogFailure("pruned", `events up to ${at} of ${name} were pruned while it was read. Copy into an empty log.`, at);

const intoServer = (): LogFailure =>
  new LogFailure("refused", "no history is copied into a server: stop it, and name its data directory, or its journal");

const inMemory = (): LogFailure =>
  new LogFailure("refused", "a log in memory cannot be copied: it ends with its process");
