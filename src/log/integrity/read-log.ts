/**
 * Reading and following, over pages.
 *
 * A reader asks for the next page before it hands out the current one, so that checking the chain (in
 * the driver's thread) and applying events (in the reader's) go on side by side. It carries the last hash
 * from page to page: what it sees is one chain, also across appends. A follower reads to the head, then
 * sleeps until the bell rings.
 */
import { type Seq, seq } from "../../core/base/index.ts";
import { type Head, LogFailure, type ReadBatch } from "../log.ts";
import { type Break, type Cursor, PAGE_BYTES } from "./page.ts";

export type Page = { readonly head: Head; readonly batches: readonly ReadBatch[]; readonly break: Break | null };
export type FetchPage = (cursor: Cursor, bytesMax?: number) => Promise<Page>;

export const startAfter = (after: Seq): Cursor => ({ after, prior: null });

/** Everything behind the cursor up to the head as the first page finds it; or one page of about so many bytes. */
export async function* readBatches(
  fetch: FetchPage,
  start: Cursor,
  bytesMax?: number,
): AsyncGenerator<ReadBatch, void, undefined> {
  let page = await fetch(start, Math.min(bytesMax ?? PAGE_BYTES, PAGE_BYTES));
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

export type Following = {
  readonly fetch: FetchPage;
  readonly bell: Bell;
  readonly after: Seq;
  /** Any of these ends the following. */
  readonly until: readonly AbortSignal[];
};

export async function* followBatches({
  fetch,
  bell,
  after,
  until,
}: Following): AsyncGenerator<ReadBatch, void, undefined> {
  const isOver = () => until.some((signal) => signal.aborted);
  let cursor = startAfter(after);
  try {
    while (!isOver()) {
      const heard = bell.rings();
      for await (const batch of readBatches(fetch, cursor)) {
        if (isOver()) return;
        yield batch;
        cursor = cursorBehind(batch);
      }
      await bell.waitPast(heard, until);
    }
  } catch (error) {
    if (!(error instanceof LogFailure) || error.code !== "closed") throw error;
  }
}

/** Wakes whoever waits for something to be appended. */
export type Bell = {
  rings(): number;
  ring(): void;
  /** Resolves once the bell has rung more often than `heard`, or a signal fires. */
  waitPast(heard: number, until: readonly AbortSignal[]): Promise<void>;
};

export type BellOptions = {
  /** For a log that others write to: how long to wait before looking again, in milliseconds. */
  readonly lookAgainMs?: number;
};

export function createBell({ lookAgainMs }: BellOptions = {}): Bell {
  const waiting = new Set<() => void>();
  let count = 0;
  function ring(): void {
    count++;
    for (const wake of [...waiting]) wake();
  }
  function waitPast(heard: number, until: readonly AbortSignal[]): Promise<void> {
    if (count !== heard || until.some((signal) => signal.aborted)) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = lookAgainMs === undefined ? undefined : setTimeout(wake, lookAgainMs);
      function wake(): void {
        clearTimeout(timer);
        waiting.delete(wake);
        for (const signal of until) signal.removeEventListener("abort", wake);
        resolve();
      }
      waiting.add(wake);
      for (const signal of until) signal.addEventListener("abort", wake);
    });
  }
  return { rings: () => count, ring, waitPast };
}

function cursorBehind({ firstSeq, hashes, priorHash }: ReadBatch): Cursor {
  return { after: seq(firstSeq + hashes.length - 1), prior: hashes.at(-1) ?? priorHash };
}
