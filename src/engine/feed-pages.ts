/**
 * Pages of the log for all who read events, read once and shared.
 *
 * A hundred readers from the beginning ask for the same pages, so those that were read last are kept, up to a bound in
 * bytes, and a reader that wants an event of one of them is given that. One page is read at a time, and a small one:
 * an append that comes meanwhile waits for that one only. A reader holds nothing while it waits; what it does not find
 * again when it goes on, it reads again. A page is at least one batch, however large that is.
 */
import { type Seq, seq } from "../core/base/index.ts";
import type { Log, ReadBatch } from "../log/index.ts";

const KEPT_BYTES_MAX = 8 * 1024 * 1024;
const KEPT_MAX = 256;
/** What a record costs in memory besides its bytes. */
const RECORD_OVERHEAD = 200;

type Page = { readonly first: Seq; readonly last: Seq; readonly batches: readonly ReadBatch[]; readonly bytes: number };
export type FeedPages = {
  /** The batch with the event behind `after`, or null at the end of the log; a page read for it has so many bytes. */
  batchBehind(after: Seq, pageBytes: number): Promise<ReadBatch | null>;
  /** Events were pruned: what was read before may not be there any more. */
  forget(): void;
};

export function createFeedPages(log: Pick<Log, "read">): FeedPages {
  const kept: Page[] = [];
  let bytes = 0;
  let prunings = 0;
  let line: Promise<unknown> = Promise.resolve();

  function find(wanted: number): ReadBatch | null {
    const page = kept.find(({ first, last }) => first <= wanted && wanted <= last);
    return page?.batches.find((batch) => wanted <= lastOf(batch)) ?? null;
  }

  async function readBehind(after: Seq, pageBytes: number): Promise<ReadBatch | null> {
    // An earlier reader in the queue may have read it.
    const found = find(after + 1);
    if (found !== null) return found;
    const batches: ReadBatch[] = [];
    const seen = prunings;
    for await (const batch of log.read(after, { payloads: false, bytesMax: pageBytes })) batches.push(batch);
    const [first, last] = [batches[0], batches.at(-1)];
    if (first === undefined || last === undefined) return null;
    if (prunings === seen)
      keep({ first: first.firstSeq, last: lastOf(last), batches, bytes: batches.reduce(addSize, 0) });
    return first;
  }

  function keep(page: Page): void {
    kept.push(page);
    bytes += page.bytes;
    while (kept.length > 1 && (bytes > KEPT_BYTES_MAX || kept.length > KEPT_MAX)) bytes -= kept.shift()?.bytes ?? 0;
  }

  return {
    async batchBehind(after, pageBytes) {
      const found = find(after + 1);
      if (found !== null) return found;
      const turn = line.then(() => readBehind(after, pageBytes));
      line = turn.catch(() => {}); // Its own reader gets the failure; the next one goes on.
      return turn;
    },
    forget() {
      prunings++;
      bytes = 0;
      kept.length = 0;
    },
  };
}

const lastOf = ({ firstSeq, records }: ReadBatch): Seq => seq(firstSeq + records.length - 1);

function addSize(sum: number, { records, hashes }: ReadBatch): number {
  return records.reduce((size, { bytes }) => size + bytes.length + RECORD_OVERHEAD, sum) + hashes.length * 32;
}
