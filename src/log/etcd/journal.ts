/**
 * The journal on etcd: one node's handle on it.
 *
 * etcd decides what comes next, by Raft among its members; `records.ts` says what is kept under which key. Reads and
 * writes go through a majority of the members, so a handle never sees an order that is taken back. Nothing is written
 * by opening it.
 */
import { randomBytes } from "node:crypto";
import { invariant, isSha256, type Seq } from "../../core/base/index.ts";
import { type Clock, realClock } from "../../std/index.ts";
import type { Journal, JournalHealth, JournalOptions, SealedBatch } from "../journal/journal.ts";
import { createOneLead, type Lease, type OneLead } from "../journal/lease.ts";
import { type Patience, untilAnswered } from "../journal/patience.ts";
import { closedFailure, type Lead, LogFailure } from "../log.ts";
import { type AddressOptions, type EtcdAddress, readAddress } from "./address.ts";
import type { KeyValue } from "./answers.ts";
import { createAppender, makeHead, type StoredHead, storedHead } from "./appending.ts";
import { historiesBeside } from "./beside.ts";
import { changesOf } from "./changes.ts";
import { createClient, type EtcdClient } from "./client.ts";
import { saying } from "./failures.ts";
import { createForgetting } from "./forgetting.ts";
import { healthOf } from "./health.ts";
import { isFree, takeLead } from "./lead.ts";
import { createNodes } from "./nodes.ts";
import { beginBehind, pruneBefore } from "./pruning.ts";
import { baseOf, firstPage, readSome } from "./reading.ts";
import { createKeys, foreign, type Keys } from "./records.ts";

export type EtcdJournalOptions = JournalOptions & AddressOptions & { readonly url: string };

const SECRET_BYTES = 32;

type Session = {
  readonly address: EtcdAddress;
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly patience: Patience;
  readonly closing: AbortController;
  readonly lead: OneLead;
};

/** Rejects with `unreachable`, which may pass, or with what does not: an address, a user or keys that are wrong. */
export async function openEtcdJournal(options: EtcdJournalOptions): Promise<Journal> {
  const { clock = realClock, onNotice = () => {}, url } = options;
  const address = readAddress(url, options);
  const client = createClient(address);
  const keys = createKeys(address.prefix);
  const closing = new AbortController();
  const session = { address, client, keys, clock, patience: { clock, onNotice }, closing, lead: createOneLead(clock) };
  try {
    await saying(address, closing.signal, () => checkKeys(session));
  } catch (error) {
    client.close();
    throw error;
  }
  return createHandle(session);
}

/** Keys without a head of ours are somebody else's. Looked at in one transaction: another node may begin just now. */
async function checkKeys({ client, keys }: Session): Promise<void> {
  const ranges = [{ range: { key: keys.head } }, { range: { ...keys.all, limit: 1, keysOnly: true } }];
  const answer = await client.txn({ compare: [], success: ranges });
  const [[head] = [], found = []] = answer.ranges;
  if (storedHead(head).value === null && found.length > 0) throw foreign(keys.all.key);
}

const headIn = async ({ client, keys }: Pick<Session, "client" | "keys">): Promise<StoredHead> =>
  storedHead(await client.get(keys.head));

function createHandle(session: Session): Journal {
  const { address, client, keys, clock, closing, lead } = session;
  const forgetting = createForgetting(client);
  const appender = createAppender(client, keys, forgetting);
  const { announce, nodes } = createNodes({ client, keys, clock, forgetting, onNotice: session.patience.onNotice });
  const ask = <Answer>(work: () => Promise<Answer>): Promise<Answer> => saying(address, closing.signal, work);

  async function* read(after: Seq): AsyncGenerator<SealedBatch> {
    const { head } = await ask(() => headIn(session));
    const pages = firstPage();
    for (let reached = after; reached < head.seq; ) {
      for (const entry of await ask(() => readSome(session, reached, head, pages))) {
        reached = entry.lastSeq;
        yield entry;
      }
    }
  }

  async function acquireLead(node: string, ttlMs: number, signal?: AbortSignal): Promise<Lead> {
    if (closing.signal.aborted) throw closedFailure();
    invariant(node !== "", "a node has a name that is not empty");
    await lead.release();
    return waitForLead(session, { node, ttlMs, ...(signal === undefined ? {} : { signal }) });
  }

  async function close(): Promise<void> {
    if (closing.signal.aborted) return;
    closing.abort();
    await lead.release();
    client.close();
  }

  return {
    kind: "etcd",
    describe: () => ask(() => describe(session)),
    append: (entry) => ask(() => appender.append(entry)),
    read,
    follow: (after, signal) => follow(session, after, signal),
    head: () => ask(async () => (await headIn(session)).head),
    acquireLead,
    announce: (told) => ask(() => announce(told)),
    nodes: () => ask(nodes),
    secret: () => ask(() => secretIn(session)),
    begin: (base) => ask(() => beginBehind(session, base)),
    prune: (before) => ask(() => pruneBefore(session, before)),
    beside: () => ask(() => historiesBeside(client, address)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function describe({ address, client, keys }: Session): Promise<JournalHealth> {
  const { head } = await headIn({ client, keys });
  const [health, base] = await Promise.all([healthOf(client), baseOf({ client, keys }, head)]);
  return { kind: "etcd", address: address.shown, head, base, ...health };
}

/** One that is there is only read, so an etcd without room gives it too. */
async function secretIn(session: Session): Promise<string> {
  const { client, keys } = session;
  const found = (await client.get(keys.secret)) ?? (await makeSecret(session));
  const secret = found?.value.toString("utf8");
  if (isSha256(secret)) return secret;
  throw new LogFailure("corrupt", `the record ${keys.secret} of the journal makes no sense. Nothing was repaired.`);
}

/** Of two that make one at the same time, one is first, and the other finds it. */
async function makeSecret({ client, keys }: Session): Promise<KeyValue | undefined> {
  await makeHead({ client, keys });
  const { ranges } = await client.txn({
    compare: [{ key: keys.secret, modRevision: 0 }],
    success: [
      { put: keys.secret, value: Buffer.from(randomBytes(SECRET_BYTES).toString("hex"), "utf8") },
      { range: { key: keys.secret } },
    ],
    failure: [{ range: { key: keys.secret } }],
  });
  return ranges.flat()[0];
}

/** Asks again until there is an answer. When it is to end, it rejects, with whatever. */
const steadilyIn =
  ({ address, closing, patience }: Session, ends: AbortSignal) =>
  <Answer>(work: () => Promise<Answer>, onLate?: (answer: Answer) => unknown): Promise<Answer> => {
    const asking = (): Promise<Answer> =>
      saying(address, closing.signal, work).catch((error: unknown) => {
        ends.throwIfAborted();
        throw error;
      });
    return untilAnswered(asking, patience, ends, onLate);
  };

/** The head as it changes, and what lies behind the last batch that was told, until the signal ends it. */
async function* follow(session: Session, after: Seq, signal: AbortSignal): AsyncGenerator<SealedBatch> {
  const { client, keys, clock, closing } = session;
  const ends = AbortSignal.any([signal, closing.signal]);
  const steadily = steadilyIn(session, ends);
  let reached = after;
  try {
    for await (const found of changesOf({ client, key: keys.head, clock, signal: ends, steadily })) {
      const { head } = storedHead(found);
      const pages = firstPage();
      while (reached < head.seq && !ends.aborted) {
        const entries = await steadily(() => readSome(session, reached, head, pages, { signal: ends }));
        for (const entry of entries) {
          reached = entry.lastSeq;
          yield entry;
        }
      }
    }
  } catch (error) {
    if (!ends.aborted) throw error;
  }
  if (!signal.aborted) throw closedFailure();
}

type LeadWanted = { readonly node: string; readonly ttlMs: number; readonly signal?: AbortSignal };

async function waitForLead(session: Session, { node, ttlMs, signal }: LeadWanted): Promise<Lease> {
  const { client, keys, clock, closing, lead } = session;
  const ends = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
  const steadily = steadilyIn(session, ends);
  const take = (): Promise<Lease | null> => lead.taking(takeLead({ client, keys, clock, node, ttlMs, ends }));
  try {
    while (!ends.aborted)
      for await (const found of changesOf({ client, key: keys.lead, clock, signal: ends, steadily })) {
        if (!isFree(found, node)) continue;
        const lease = await steadily(take, (late) => late?.release());
        if (lease !== null) return lease;
        // Another was first, and may have given it up already: free twice in a row is no change, so it is read anew.
        break;
      }
  } catch (error) {
    if (!ends.aborted) throw error;
  }
  signal?.throwIfAborted();
  throw closedFailure();
}
