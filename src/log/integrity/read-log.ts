/**
 * Reading over pages.
 *
 * A reader asks for the next page before it hands out the current one, so that checking the chain (in the driver's
 * thread) and applying events (in the reader's) go on side by side. It carries the last hash from page to page: what it
 * sees is one chain, also across appends.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { type Head, LogFailure, type ReadBatch, type VerifyProblem } from "../log.ts";
import { type Cursor, PAGE_BYTES } from "./page.ts";

export type Page = {
  readonly head: Head;
  readonly batches: readonly ReadBatch[];
  readonly break: VerifyProblem | null;
};
export type FetchPage = (cursor: Cursor, bytesMax?: number) => Promise<Page>;

/** Everything behind the cursor up to the head as the first page finds it; or one page of about so many bytes. */
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
