/**
 * Pruning: batches that every reader can do without are deleted, and the history of etcd behind them is forgotten.
 *
 * A delete alone gives nothing back: etcd keeps what keys were before. Compaction forgets it for the whole of etcd, all
 * prefixes, which is what its own automatic compaction does too; the room is then used again. It is asked for only with
 * what is in our way: up to the revision of our own delete.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import type { Anchor } from "../log.ts";
import { compareHead, storedHead } from "./appending.ts";
import { CODE, EtcdFault } from "./fault.ts";
import { baseOf, readEntry, type Source } from "./reading.ts";
import { writeHead } from "./records.ts";

const BATCHES_PER_STEP = 500;

export async function pruneBefore({ client, keys }: Source, before: Seq): Promise<Anchor> {
  const { head } = storedHead(await client.get(keys.head));
  const first = await firstKept({ client, keys }, seq(Math.min(before, head.seq)));
  let revision = 0;
  for (let end = 0; end < first; ) {
    end = await endOfStep({ client, keys }, first);
    const removed = await client.txn({
      compare: [],
      success: [keys.batches(0, end), keys.parts(0, end)].map((span) => ({ remove: span.key, end: span.end })),
    });
    revision = removed.revision;
  }
  await client.compact(revision).catch(unlessDenied);
  return baseOf({ client, keys }, head);
}

/** Nothing from this event on is removed in the next step: a removal of very much would hold up every append. */
async function endOfStep({ client, keys }: Source, first: Seq): Promise<number> {
  const { found } = await client.range({ ...keys.batches(0, first), limit: BATCHES_PER_STEP, keysOnly: true });
  const last = found[BATCHES_PER_STEP - 1];
  return last === undefined ? first : keys.firstOf(last.key) + 1;
}

/** Lets a journal in which nothing was ever appended begin behind this event; answers where it begins. */
export async function beginBehind({ client, keys }: Source, { seq: at, hash }: Anchor): Promise<Anchor> {
  const stored = storedHead(await client.get(keys.head));
  if (stored.head.seq === 0) {
    const value = writeHead({ ...stored.head, seq: at, hash });
    await client.txn({ compare: [compareHead(keys, stored)], success: [{ put: keys.head, value }] });
  }
  return baseOf({ client, keys }, storedHead(await client.get(keys.head)).head);
}

/** The first event of the batch that holds the one behind `before`; where that is not there yet, its own number. */
async function firstKept(source: Source, before: Seq): Promise<Seq> {
  const { client, keys } = source;
  const { found } = await client.range({ ...keys.batches(0, before + 1), limit: 1, isDescending: true });
  const [last] = found;
  if (last === undefined) return seq(before + 1);
  const { firstSeq, lastSeq } = await readEntry(source, last);
  return lastSeq <= before ? seq(lastSeq + 1) : firstSeq;
}

/** Who may not compact leaves it to etcd's own compaction. */
function unlessDenied(error: unknown): void {
  if (!(error instanceof EtcdFault && error.code === CODE.denied)) throw error;
}
