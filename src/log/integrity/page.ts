/**
 * One page of the log: some batches, each checked against the chain before anybody sees it.
 *
 * This is the whole of reading, for every driver that stores rows. It is synchronous: the sqlite driver
 * runs it in its thread, the memory driver in place. A page is about a megabyte, so that an append never
 * waits long behind a reader.
 *
 * Three things must fit together: each row with the row before it, each row's hashes with its bytes, and
 * the last row with the head record. When something does not, the page ends before it and says so: a
 * reader gets every event up to the break and then learns exactly where it is.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { type BatchRow, checkRow, checkSeq } from "../format/batch-row.ts";
import { fromHex, hashOf, toHex } from "../format/chain.ts";
import { type Anchor, corruptAt, type Head, LogFailure, type ReadBatch, type VerifyProblem } from "../log.ts";

const PAGE_BYTES: number = 1024 * 1024;

/** The end of a row: what the next one must be linked to. */
export type RowEnd = Pick<BatchRow, "epoch" | "batchId"> & { readonly seq: Seq; readonly hash: Uint8Array };

/** What a driver must be able to look up. All answers of one page come from one moment. */
export type RowSource = {
  readonly head: Head;
  /** Where the log begins: the last event that was pruned. */
  readonly base: Anchor;
  /** Rows in order, from the last one that begins at or before `from`. */
  rowsFrom(from: Seq): Iterable<BatchRow>;
  /** The end of the last row that begins before `first`; of the last of all if `first` is null. */
  endBefore(first: Seq | null): RowEnd | null;
};

/** Where a reader stands, and the hash there if it knows it. */
export type Cursor = { readonly after: Seq; readonly prior: Uint8Array | null };

/** `break` is what is wrong behind the last row. */
export type RowPage = { readonly head: Head; readonly rows: readonly BatchRow[]; readonly break: VerifyProblem | null };

export function readPage(source: RowSource, { after, prior }: Cursor, bytesMax: number = PAGE_BYTES): RowPage {
  checkSeq(after);
  const { head, base } = source;
  if (after < base.seq) throw prunedFailure(after, base);
  const rows: BatchRow[] = [];
  try {
    const reached = takeRows(source, { after, prior }, rows, bytesMax);
    if (reached >= head.seq || rows.length === 0) checkHead(source);
    // A page that ends before the head has something in it: else a reader would take the log to end here.
    if (rows.length === 0 && reached < head.seq) throw corruptAt(seq(reached + 1), "it is missing");
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "corrupt" || rows.length === 0) throw error;
    return { head, rows, break: { seq: error.seq ?? seq(after + 1), message: error.message } };
  }
  return { head, rows, break: null };
}

/** The chain's hash after an event, or null if the log does not reach there or no longer does. */
export function hashAt(source: RowSource, at: Seq): string | null {
  if (at === source.base.seq) return source.base.hash;
  if (at < source.base.seq || at > source.head.seq) return null;
  for (const row of source.rowsFrom(at)) {
    return row.lastSeq < at || row.firstSeq > at ? null : toHex(hashOf(row.hashes, at - row.firstSeq));
  }
  return null;
}

/** The head record and the last row are written together; if they differ, somebody changed one. */
export function checkHead({ head, base, endBefore }: RowSource): void {
  const last = endBefore(null);
  const end = last === null ? base : { seq: last.seq, hash: toHex(last.hash) };
  if (end.seq !== head.seq) {
    throw corruptAt(seq(Math.min(end.seq, head.seq) + 1), `the head is at ${head.seq}, the batches end at ${end.seq}`);
  }
  if (end.hash !== head.hash) throw corruptAt(head.seq, "the head record has another hash");
  if (last !== null && last.batchId !== head.batchId) throw corruptAt(head.seq, "the head names another batch");
}

/** Fills `rows` with checked rows until the page is full; answers the last seq it reached. */
function takeRows(source: RowSource, { after, prior }: Cursor, rows: BatchRow[], bytesMax: number): Seq {
  let link = prior;
  let expected = seq(after + 1);
  let size = 0;
  for (const row of source.rowsFrom(expected)) {
    if (row.lastSeq < expected) continue;
    if (row.lastSeq > source.head.seq) {
      throw corruptAt(expected, `its batch says that it ends at ${row.lastSeq}, but the head is at ${source.head.seq}`);
    }
    const first = rows.length === 0 && row.firstSeq < expected ? row.firstSeq : expected;
    checkRow(row, first, link ?? linkBefore(source, first));
    rows.push(row);
    link = row.postHash;
    expected = seq(row.lastSeq + 1);
    size += row.bytes.length + row.hashes.length;
    if (size >= bytesMax) break;
  }
  return seq(expected - 1);
}

/** The hash that the event numbered `first` must be linked to. */
export function linkBefore({ base, endBefore }: RowSource, first: Seq): Uint8Array {
  if (first === base.seq + 1) return fromHex(base.hash);
  const before = endBefore(first);
  if (before === null || before.seq !== first - 1) throw corruptAt(seq(first - 1), "it is missing");
  return before.hash;
}

const prunedFailure = (after: Seq, base: Anchor): LogFailure =>
  new LogFailure(
    "pruned",
    `cannot read from ${after}: events up to ${base.seq} were pruned. Load the snapshot and read on from there.`,
    base.seq,
  );

export type Page = {
  readonly head: Head;
  readonly batches: readonly ReadBatch[];
  readonly break: VerifyProblem | null;
};
export type FetchPage = (cursor: Cursor, bytesMax?: number) => Promise<Page>;

/**
 * Everything behind the event up to the head as the first page finds it; or one page of about so many bytes.
 *
 * A reader asks for the next page before it hands out the current one, so that checking the chain (in the driver's
 * thread) and applying events (in the reader's) go on side by side. It carries the last hash from page to page: what it
 * sees is one chain, also across appends.
 */
export async function* readBatches(
  fetch: FetchPage,
  after: Seq,
  bytesMax?: number,
): AsyncGenerator<ReadBatch, void, undefined> {
  let page = await fetch({ after, prior: null }, Math.min(bytesMax ?? PAGE_BYTES, PAGE_BYTES));
  const until = page.head.seq;
  for (;;) {
    const last = page.batches.at(-1);
    if (last === undefined) return;
    const cursor = cursorBehind(last);
    const readsOn = bytesMax === undefined && cursor.after < until && page.break === null;
    const next = readsOn ? fetch(cursor) : null;
    next?.catch(() => {}); // Awaited below, unless the reader stops first.
    yield* page.batches;
    if (page.break !== null) throw new LogFailure("corrupt", page.break.message, page.break.seq);
    if (next === null) return;
    page = await next;
  }
}

function cursorBehind({ firstSeq, hashes, priorHash }: ReadBatch): Cursor {
  return { after: seq(firstSeq + hashes.length - 1), prior: hashes.at(-1) ?? priorHash };
}
