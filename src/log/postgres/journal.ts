/**
 * The journal on PostgreSQL: one node's handle on it.
 *
 * One statement per append: it moves the head if the batch fits there, and puts the batch. The lead is a row that is
 * renewed by the database's own clock. A node has three connections and one that listens; a pooler may lend them for a
 * transaction each (`lanes.ts`). `schema.ts` says what is kept in which table.
 */
import { invariant, isSha256, type Seq, seq } from "../../core/base/index.ts";
import { type Clock, realClock } from "../../std/index.ts";
import { createWordReading, type WordReading } from "../journal/announcement.ts";
import { packEntry, unpackEntry } from "../journal/entry.ts";
import type { Journal, JournalHealth, JournalOptions, NodesSeen, SealedBatch } from "../journal/journal.ts";
import { NODE_KEPT_MS, type NodeAnnouncement } from "../journal/journal.ts";
import { headAfter, judged } from "../journal/judging.ts";
import { createOneLead, keepLease, type Lease, type OneLead } from "../journal/lease.ts";
import { type Patience, untilAnswered } from "../journal/patience.ts";
import { type Anchor, type AppendResult, closedFailure, type Head, type Lead, LogFailure } from "../log.ts";
import { type PostgresAddress, readAddress, shownAddress } from "./address.ts";
import { healthOf } from "./health.ts";
import { createHearing, type Hearing } from "./hearing.ts";
import { createLane, type Lane, type Query } from "./lanes.ts";
import { prepareSchema, schemasBeside } from "./schema.ts";
import { type Statements, statementsFor } from "./statements.ts";

/** How long an answer is waited for: a batch of megabytes takes its time, a renewal must not. */
const APPEND_MS = 30_000;
const READ_MS = 30_000;
const URGENT_MS = 2000;
/** A page of batches is about so large. */
const PAGE_BYTES = 4 * 1024 * 1024;
const PAGE_ROWS = 512;
const PRUNED_AT_ONCE = 500;
/** How often a node that waits for the lead looks whether it is free. */
const LEAD_POLL_MS = 200;

export type PostgresJournalOptions = JournalOptions & { readonly url: string };

type Session = {
  readonly address: PostgresAddress;
  readonly clock: Clock;
  readonly sql: Statements;
  /** Appends and prunes, one at a time; what must not wait; pages. */
  readonly writing: Lane;
  readonly urgent: Lane;
  readonly reading: Lane;
  readonly hearing: Hearing;
  readonly patience: Patience;
  readonly closing: AbortController;
  readonly lead: OneLead;
};

/** Rejects with `unreachable`, which may pass, or with what does not: an address, a user or tables that are wrong. */
export async function openPostgresJournal(options: PostgresJournalOptions): Promise<Journal> {
  const { clock = realClock, onNotice = () => {}, url } = options;
  const address = readAddress(url);
  const lane = (answerMs: number): Lane => createLane({ address, clock, answerMs });
  const lanes = { writing: lane(APPEND_MS), urgent: lane(URGENT_MS), reading: lane(READ_MS) };
  try {
    await prepareSchema(lanes.writing, address);
    const { warnings } = await healthOf(lanes.reading.query, address);
    for (const warning of warnings) onNotice(warning);
    return createHandle({
      ...lanes,
      address,
      clock,
      sql: statementsFor(address.schema),
      hearing: createHearing(address, clock),
      patience: { clock, onNotice },
      closing: new AbortController(),
      lead: createOneLead(clock),
    });
  } catch (error) {
    for (const each of Object.values(lanes)) each.close();
    throw error;
  }
}

function createHandle(session: Session): Journal {
  const { sql, writing, urgent, reading, hearing, closing, lead } = session;
  const readWords = createWordReading(session.patience.onNotice);

  async function acquireLead(node: string, ttl: number, signal?: AbortSignal): Promise<Lead> {
    if (closing.signal.aborted) throw closedFailure();
    invariant(node !== "", "a node has a name that is not empty");
    await lead.release();
    return waitForLead(session, { node, ttl, signal });
  }
  async function close(): Promise<void> {
    if (closing.signal.aborted) return;
    closing.abort();
    await lead.release();
    hearing.close();
    for (const lane of [writing, urgent, reading]) lane.close();
  }
  return {
    kind: "postgres",
    describe: () => describe(session),
    append: (entry) => append(session, entry),
    read: (after) => readBehind(session, after),
    follow: (after, signal) => follow(session, after, signal),
    head: () => headIn(urgent.query, sql),
    acquireLead,
    announce: (told) => announce(session, told),
    nodes: async () => nodesOf(await urgent.query<NodeRow>(sql.nodes, [NODE_KEPT_MS]), readWords),
    secret: () => secretIn(session),
    begin: (base) => begin(session, base),
    prune: (before) => prune(session, before),
    beside: async () => {
      const names = await schemasBeside(reading.query, session.address.schema);
      return names.map((schema) => shownAddress({ ...session.address, schema }));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function describe({ address, sql, reading }: Session): Promise<JournalHealth> {
  const { version, warnings, members } = await healthOf(reading.query, address);
  const head = await headIn(reading.query, sql);
  const base = await baseIn(reading.query, sql);
  const [size] = await reading.query<{ bytes: number }>(sql.bytes);
  const bytes = size?.bytes ?? null;
  return { kind: "postgres", address: address.shown, version, head, base, bytes, warnings, members };
}

type HeadRow = { readonly seq: string; readonly hash: string; readonly epoch: string; readonly batch_id: string };

async function headIn(query: Query, sql: Statements): Promise<Head> {
  const [row] = await query<HeadRow>(sql.head);
  if (row === undefined) throw new LogFailure("corrupt", "the journal in PostgreSQL has lost its head record");
  return { seq: seq(Number(row.seq)), hash: row.hash, epoch: Number(row.epoch), batchId: row.batch_id };
}

async function baseIn(query: Query, sql: Statements): Promise<Anchor> {
  const [row] = await query<{ seq: string; hash: string }>(sql.base);
  if (row === undefined) throw new LogFailure("corrupt", "the journal in PostgreSQL has lost where it begins");
  return { seq: seq(Number(row.seq)), hash: row.hash };
}

async function secretIn({ urgent, sql }: Session): Promise<string> {
  const [row] = await urgent.query<{ secret: string }>(sql.secret);
  if (isSha256(row?.secret)) return row.secret;
  throw new LogFailure("corrupt", "the journal in PostgreSQL has lost the secret of its nodes");
}

async function append({ writing, sql, closing }: Session, entry: SealedBatch): Promise<AppendResult> {
  if (closing.signal.aborted) throw closedFailure();
  const { firstSeq, lastSeq, epoch, batchId, priorHash, postHash } = entry;
  const block = await packEntry(entry);
  const hashes = [priorHash, postHash].map((hash) => Buffer.from(hash));
  const place = [firstSeq - 1, hashes[0], epoch, lastSeq, hashes[1], batchId];
  try {
    const stored = await writing.query(sql.append, [...place, firstSeq, block.length, block]);
    if (stored.length === 1) return { type: "appended", head: headAfter(entry) };
    const head = await headIn(writing.query, sql);
    return judged(head, entry) ?? { type: "conflict", head };
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "unreachable") throw error;
    return { type: "unknown", cause: error.message };
  }
}

type PageRow = { readonly base: string; readonly entry: Buffer | null };

/** Some batches behind an event; none if there are no more up to `until`. */
async function pageBehind({ reading, sql }: Session, after: Seq, until: number): Promise<SealedBatch[]> {
  const rows = await reading.query<PageRow>(sql.page, [after, until, PAGE_BYTES, PAGE_ROWS]);
  const base = Number(rows[0]?.base ?? 0);
  if (after < base)
    throw new LogFailure(
      "pruned",
      `cannot read the journal from ${after}: events up to ${base} were pruned there.`,
      seq(base),
    );
  return Promise.all(rows.flatMap(({ entry }) => (entry === null ? [] : [unpackEntry(entry)])));
}

async function* readBehind(session: Session, after: Seq): AsyncGenerator<SealedBatch> {
  const { seq: until } = await headIn(session.reading.query, session.sql);
  for (let reached = after; ; ) {
    const page = await pageBehind(session, reached, until);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    reached = last.lastSeq;
  }
}

async function* follow(session: Session, after: Seq, signal: AbortSignal): AsyncGenerator<SealedBatch> {
  const { hearing, patience, closing } = session;
  const ends = AbortSignal.any([signal, closing.signal]);
  let reached = after;
  let isHeard = true;
  try {
    while (!ends.aborted) {
      const since = hearing.count();
      const work = () => pageBehind(session, reached, Number.MAX_SAFE_INTEGER);
      const page = await untilAnswered(work, patience, ends);
      for (const entry of page) {
        if (ends.aborted) break;
        reached = entry.lastSeq;
        yield entry;
      }
      if (page.length > 0 && !isHeard) hearing.missed();
      isHeard = page.length > 0 ? isHeard : await hearing.next(since, ends);
    }
  } catch (error) {
    if (!ends.aborted) throw error;
  }
  if (!signal.aborted) throw closedFailure();
}

type LeadWanted = { readonly node: string; readonly ttl: number; readonly signal: AbortSignal | undefined };

async function waitForLead(session: Session, { node, ttl, signal }: LeadWanted): Promise<Lease> {
  const { hearing, patience, closing, lead } = session;
  const ends = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
  const take = (): Promise<Lease | null> => lead.taking(takeLead(session, node, ttl));
  while (!ends.aborted) {
    const since = hearing.count();
    const lease = await untilAnswered(take, patience, ends, (late) => late?.release()).catch((error: unknown) => {
      if (!ends.aborted) throw error;
      return null;
    });
    if (lease !== null) return lease;
    await hearing.next(since, ends, LEAD_POLL_MS);
  }
  signal?.throwIfAborted();
  throw closedFailure();
}

/** Takes the lead if it is free; else null. */
async function takeLead({ urgent, sql, clock }: Session, node: string, ttl: number): Promise<Lease | null> {
  const sentAt = clock.elapsed();
  const [taken] = await urgent.query<{ epoch: string }>(sql.takeLead, [node, ttl]);
  if (taken === undefined) return null;
  const epoch = Number(taken.epoch);
  const renew = async () => (await urgent.query(sql.renewLead, [node, ttl, epoch])).length === 1;
  const giveUp = async (): Promise<void> => void (await urgent.query(sql.freeLead, [epoch]));
  return keepLease({ epoch, ttlMs: ttl, clock, sentAt, renew, giveUp });
}

async function announce({ urgent, sql }: Session, told: NodeAnnouncement): Promise<void> {
  await urgent.query(sql.announce, [told.node, JSON.stringify(told)]);
  await urgent.query(sql.forgetNodes, [NODE_KEPT_MS]);
}

type NodeRow = {
  readonly lead: string;
  readonly epoch: string;
  readonly leads: boolean;
  readonly count: string;
  readonly node: string | null;
  readonly told: unknown;
  readonly age: number | null;
};

function nodesOf(rows: readonly NodeRow[], read: WordReading): NodesSeen {
  const [first] = rows;
  const nodes = read(
    rows.flatMap(({ node: name, told, age }) => (name === null ? [] : [{ name, told, ageMs: age ?? 0 }])),
  );
  const lead = first?.leads === true ? { node: first.lead, epoch: Number(first.epoch) } : null;
  return { lead, nodes, count: Number(first?.count ?? 0) };
}

async function begin({ writing, sql }: Session, { seq: at, hash }: Anchor): Promise<Anchor> {
  await writing.query(sql.begin, [at, Buffer.from(hash, "hex")]);
  return baseIn(writing.query, sql);
}

async function prune({ writing, sql }: Session, before: Seq): Promise<Anchor> {
  for (;;) {
    const [step] = await writing.query<{ dropped: number }>(sql.prune, [before, PRUNED_AT_ONCE]);
    if ((step?.dropped ?? 0) < PRUNED_AT_ONCE) return baseIn(writing.query, sql);
  }
}
