/**
 * Reading batches out of etcd, in order, up to a head.
 *
 * Pages adapt to the size of what they bring. A batch is never changed, so no revision of the store is pinned: what is
 * pruned between two pages shows as a gap, and is answered `pruned`.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { toHex } from "../format/chain.ts";
import { unpackEntry } from "../journal/entry.ts";
import type { SealedBatch } from "../journal/journal.ts";
import { prunedJournal } from "../journal/memory-journal.ts";
import { type Anchor, corruptAt, type Head } from "../log.ts";
import type { KeyValue } from "./answers.ts";
import type { EtcdClient, Limits } from "./client.ts";
import { firstPartOf, type Keys } from "./records.ts";

const PAGE_FIRST = 16;
const PAGE_MAX = 256;
/** A page that brought less may be larger next time; one that brought four times as much is made smaller. */
const PAGE_BYTES: number = 1024 * 1024;

export type Source = { readonly client: EtcdClient; readonly keys: Keys };
/** How many batches the next page asks for. */
export type Pages = { limit: number };
export const firstPage = (): Pages => ({ limit: PAGE_FIRST });

/** The next batches behind `reached`, which is before the head: at least one. */
export async function readSome(
  source: Source,
  reached: Seq,
  head: Head,
  pages: Pages,
  limits?: Limits,
): Promise<SealedBatch[]> {
  const entries: SealedBatch[] = [];
  let next = reached + 1;
  for (const found of await readPage(source, reached, head, pages, limits)) {
    const entry = await readEntry(source, found);
    // Pruned between the two: the next page says so.
    if (entry.firstSeq > next) break;
    next = entry.lastSeq + 1;
    entries.push(entry);
  }
  return entries;
}

/** The batches behind `reached`: at least one, the first of which holds the next event. */
async function readPage(
  { client, keys }: Source,
  reached: Seq,
  head: Head,
  pages: Pages,
  limits?: Limits,
): Promise<readonly KeyValue[]> {
  const span = keys.batches(reached + 1, head.seq + 1);
  const { found } = await client.range({ ...span, limit: pages.limit }, limits);
  const bytes = found.reduce((sum, { value }) => sum + value.length, 0);
  if (bytes < PAGE_BYTES) pages.limit = Math.min(PAGE_MAX, pages.limit * 2);
  else if (bytes > 4 * PAGE_BYTES) pages.limit = Math.max(1, Math.floor(pages.limit / 4));
  const [first] = found;
  if (first !== undefined && keys.firstOf(first.key) === reached + 1) return found;
  return [await holderOf({ client, keys }, reached, head)];
}

/** The batch that began before the next event and holds it. */
async function holderOf({ client, keys }: Source, reached: Seq, head: Head): Promise<KeyValue> {
  const { found } = await client.range({ ...keys.batches(0, reached + 1), limit: 1, isDescending: true });
  const [holder] = found;
  if (holder !== undefined && (await readEntry({ client, keys }, holder)).lastSeq > reached) return holder;
  throw prunedJournal(reached, await baseSeq({ client, keys }, head));
}

/** Where the journal begins: the last event that is no longer there, and the hash behind it. */
export async function baseOf({ client, keys }: Source, head: Head): Promise<Anchor> {
  const { found } = await client.range({ ...keys.batches(0, head.seq + 1), limit: 1 });
  const [first] = found;
  if (first === undefined) return { seq: head.seq, hash: head.hash };
  const { firstSeq, priorHash } = await readEntry({ client, keys }, first);
  return { seq: seq(firstSeq - 1), hash: toHex(priorHash) };
}

/** The last event that is no longer there. */
async function baseSeq({ client, keys }: Source, head: Head): Promise<Seq> {
  const { found } = await client.range({ ...keys.batches(0, head.seq + 1), limit: 1, keysOnly: true });
  const [first] = found;
  return first === undefined ? head.seq : seq(keys.firstOf(first.key) - 1);
}

export async function readEntry({ client, keys }: Source, { key, value }: KeyValue): Promise<SealedBatch> {
  const first = keys.firstOf(key);
  const { furtherParts, hash, part } = firstPartOf(value, key);
  const parts = [part];
  for (let index = 1; index <= furtherParts; index++) {
    const further = await client.get(keys.part(first, hash, index));
    // Pruned since its key was read, or damaged: in either case it cannot be had here.
    if (further === null) throw prunedJournal(seq(first - 1), first);
    parts.push(further.value);
  }
  const entry = await unpackEntry(Buffer.concat(parts));
  if (entry.firstSeq !== first)
    throw corruptAt(first, `the journal has a batch there that begins at ${entry.firstSeq}`);
  return entry;
}
